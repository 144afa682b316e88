// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Slices: readers one after the other, while readers and writers have turns.
 *
 * What each of several readers has in their turn (spell.c) is what its requests get from
 * one another inside the device, which for unlike ones is next to nothing for some of
 * them: order does not help where nobody waits, and what requests cost is badly known
 * where writes are in the way most of the time. But what a group does alone is seen while
 * it is alone; and who has the device for itself for as long as is due to it has its
 * share, whatever its requests are.
 *
 * So in the first turn of the readers each has the device for itself, as long as it takes to
 * see what it does then, and later one of them has it from the beginning of the drain,
 * that the next one may have the rest. What a group did is what it had, as a time,
 *
 *	had_i	= units_i / alone_i
 *
 * since the writers' turn began, in which it may have done much or hardly anything, and
 * the next is who lacks most of
 *
 *	share_i * (all that readers had + what is left of their turn) - had_i - ahead_i
 *
 * where ahead_i is what it had more than was due to it in turns before this. Drains are
 * over when the one who has the device is as quick as it is alone.
 *
 * Who is ahead waits in the writers' turn as well: large reads lose little there and have
 * more than their share of all before their turn has come. And nobody has more in the
 * device than it does in a few milliseconds, or a drain and each slice begin with what
 * another has left in there, 256 MB of it with 256 reads of 1 MB.
 *
 * How long the readers' turn is (dt_slices_had): with H the sum of all that readers had of
 * the writers' turn, and w the writers' share, each reader that has less for its share than
 * the writers, (1 - H) / w, is to have as much in the end. That is what spell.c says of
 * one reader. It pays to go on (dt_slices_kept) while any of them has less than its share.
 *
 * Those who do not fill the device do more side by side. How well they did either way is
 * seen, as the least that one of them had of what was due to it, in the mean over turns,
 * and the better is taken; now and then the other is tried. All this only where several
 * read and each asks for some at a time: nobody waits for another's slice with one
 * request. The bound: who reads waits for the writers' turn and its drain, and 32 ms for
 * each of the others, or 64 the first time.
 *
 * What it is worth (docs/DESIGN.md has more): 16 reads of 4 KB and 32 of 256 KB beside 32
 * writes of 4 KB, on the server's drive, have 0.34, 0.35 and 0.21 of what each does alone,
 * where it were 0.03, 0.35 and 0.62.
 *
 * Rejected: slices in the readers' turn alone, after a part for all of them (which large
 * reads have had their share of by then); the mean loss of readers for the length of their
 * turn (the writers have 0.02 to 0.17); the least that one had of a single turn as what
 * tells whether slices are better (it is another's turn then).
 */
#include "commit.h"
#include "entity.h"
#include "flash.h"
#include "park.h"
#include "slice.h"

/* Who asks for less waits for nobody. */
#define ASKS			4
/* No more readers than that. */
#define SLICE_READERS		16
/* A slice is no longer, and no shorter. */
#define SLICE_NS		(32 * DT_NSEC_PER_MSEC)
#define SLICE_SHORT_NS		(4 * DT_NSEC_PER_MSEC)
/* What one does alone is seen in so long from when others' requests are done, or it is given up. */
#define SEE_NS			(8 * DT_NSEC_PER_MSEC)
#define SEE_MOST_NS		(64 * DT_NSEC_PER_MSEC)
/* And all of them beyond the end of the turn. */
#define SEE_ALL_NS		(512 * DT_NSEC_PER_MSEC)
/* It is forgotten by this part with each slice that shows less. */
#define FORGET_ALONE		32
/* In so many turns, if it does not show. */
#define UNKNOWN_TURNS		4
/* By so much slices are to be better, 9 to 8, and so many turns later the other way is tried. */
#define BETTER			8
#define OTHER_WAY		16
/* Who is ahead by more waits while writers have their turn; it is remembered up to. */
#define LEADS_NS		((s64)DT_NSEC_PER_MSEC)
#define LEADS_MOST_NS		(100 * (s64)DT_NSEC_PER_MSEC)
/*
 * One has no more in the device than it does in this, or longer where a read takes longer;
 * behind a network in so many of the least that a read takes.
 */
#define PIPE_NS			(4 * DT_NSEC_PER_MSEC)
#define PIPE_QUICK		32
#define PIPE_LEAST		2
#define WHOLE_TIME		65536

void dt_slices_init(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;
	const struct dt_list *pos;

	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		dt_active_group(pos)->reads = (struct dt_reads) { 0 };
	slices->on = false;
	slices->nr_turns = 0;
	slices->nr_unknown = 0;
	slices->passes = 1;
	slices->value[false] = 0;
	slices->value[true] = 0;
}

static bool is_reader(const struct dt_group *grp)
{
	return dt_outstanding_of(grp) && !dt_in_party(grp);
}

/* Of those that write: it reads as well. */
static bool does_both(const struct dt_dev *dev, const struct dt_group *grp)
{
	return grp->reads.turn == dev->spells.slices.turn && dt_in_party(grp);
}

static struct dt_group *next_reader(const struct dt_dev *dev,
				    const struct dt_list **pos)
{
	struct dt_group *grp;

	while (*pos != &dev->active) {
		grp = dt_active_group(*pos);
		*pos = (*pos)->next;
		if (is_reader(grp))
			return grp;
	}
	return NULL;
}

#define FOR_EACH_READER(dev, pos, grp) \
	for ((pos) = (dev)->active.next; ((grp) = next_reader((dev), &(pos)));)

/* There are several, and each asks for some at a time. */
static bool may_slice(const struct dt_dev *dev)
{
	const struct dt_list *pos;
	const struct dt_group *grp;
	u32 nr = 0;

	if (dev->nr_active > SLICE_READERS)
		return false;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		grp = dt_active_group(pos);
		if (does_both(dev, grp))
			return false;
		if (!is_reader(grp))
			continue;
		/* Nor who has not read at all, and writes too little to be parked. */
		if (dt_outstanding_of(grp) + 1 < ASKS || !dt_share_of(grp) ||
		    !grp->reads.turn)
			return false;
		nr++;
	}
	return nr > 1;
}

static bool all_seen(const struct dt_dev *dev)
{
	const struct dt_list *pos;
	const struct dt_group *grp;

	FOR_EACH_READER(dev, pos, grp)
		if (!grp->reads.alone ||
		    grp->reads.nr_seen < dev->spells.slices.passes)
			return false;
	return true;
}

bool dt_slices_unknown(const struct dt_dev *dev)
{
	return dev->spells.slices.nr_unknown < UNKNOWN_TURNS &&
	       may_slice(dev) && !all_seen(dev);
}

/* ---- what each had ---- */

/* What was read in slots that were not quick after all was read in the writers' turn. */
static void catch_up(struct dt_dev *dev, struct dt_group *grp)
{
	const struct dt_slices *slices = &dev->spells.slices;
	struct dt_reads *reads = &grp->reads;

	if (reads->run == slices->run)
		return;
	if (reads->turn == slices->turn)
		reads->theirs += reads->quick;
	else
		reads->theirs = 0;
	reads->quick = 0;
	reads->run = slices->run;
	reads->turn = slices->turn;
}

void dt_slices_note(struct dt_dev *dev, struct dt_group *grp, u64 units,
		    bool theirs)
{
	struct dt_slices *slices = &dev->spells.slices;

	catch_up(dev, grp);
	if (theirs)
		grp->reads.theirs += units;
	else
		grp->reads.quick += units;
	if (slices->grp != grp)
		return;
	slices->units += units;
	/* What others had in there is done. */
	if (!slices->quiet_ns &&
	    dev->nr_inflight == grp->own->nr_inflight) {
		slices->quiet_ns = dev->clock_ns;
		slices->units = 0;
	}
}

void dt_slices_slow(struct dt_dev *dev)
{
	dev->spells.slices.run++;
}

/* As a time in which it does as much alone. */
static u64 time_of(const struct dt_group *grp, u64 units)
{
	return dt_div(units << DT_SPELL_SHIFT, dt_max(grp->reads.alone, 1));
}

static u64 had_ns(struct dt_dev *dev, struct dt_group *grp)
{
	catch_up(dev, grp);
	return time_of(grp, grp->reads.theirs + grp->reads.quick);
}

/* What it did in the writers' turn of what it does alone in that time, 2^-16. */
static u64 had_of(struct dt_dev *dev, struct dt_group *grp, u64 theirs_ns)
{
	catch_up(dev, grp);
	return dt_min(dt_div(time_of(grp, grp->reads.theirs) << 16,
			     dt_max(theirs_ns, 1)), WHOLE_TIME);
}

u64 dt_slices_kept(struct dt_dev *dev, u64 theirs_ns, u64 had)
{
	u64 shares = 0, least = ~0ull;
	const struct dt_list *pos;
	struct dt_group *grp;

	if (!may_slice(dev) || !all_seen(dev))
		return had;
	FOR_EACH_READER(dev, pos, grp)
		shares += dt_share_of(grp);
	FOR_EACH_READER(dev, pos, grp)
		least = dt_min(least, dt_div(had_of(dev, grp, theirs_ns) *
					     shares, dt_share_of(grp)));
	return least;
}

u64 dt_slices_had(struct dt_dev *dev, u64 theirs_ns, u64 part, u64 had)
{
	u64 shares = 0, sum = 0, share, due;
	const struct dt_list *pos;
	struct dt_group *grp;

	if (!may_slice(dev) || !all_seen(dev))
		return had;
	FOR_EACH_READER(dev, pos, grp) {
		shares += dt_share_of(grp);
		sum += had_of(dev, grp, theirs_ns);
	}
	sum = dt_min(sum, WHOLE_TIME);
	had = part;
	FOR_EACH_READER(dev, pos, grp) {
		share = dt_div(part * dt_share_of(grp), shares);
		due = (WHOLE_TIME - sum) * share >> 16;
		due -= dt_min(due, (WHOLE_TIME - part) *
				   had_of(dev, grp, theirs_ns) >> 16);
		had -= dt_min(had, due);
	}
	return had;
}

/*
 * The least that one had of what was due to it while they were sliced, or were not; 2^-16.
 * In one turn it is one of them that has the most, and in the next another.
 */
static u64 worst(struct dt_dev *dev, bool sliced)
{
	u64 ns = dev->clock_ns - dev->spells.from_ns, least = ~0ull, part;
	const struct dt_list *pos;
	struct dt_group *grp;
	u64 *mean;

	FOR_EACH_READER(dev, pos, grp) {
		part = dt_div(had_ns(dev, grp) << 16,
			      dt_max(ns * dt_share_of(grp) >> 16, 1));
		mean = &grp->reads.part[sliced];
		*mean = *mean ? (7 * *mean + part) / 8 : dt_max(part, 1);
		least = dt_min(least, *mean);
	}
	return least;
}

/* ---- slices ---- */

static void end_slice(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;
	struct dt_reads *reads = &slices->grp->reads;
	u64 ns, rate;

	ns = dev->clock_ns - slices->quiet_ns;
	if (slices->quiet_ns && 2 * ns >= SLICE_SHORT_NS && slices->units) {
		rate = dt_div(slices->units << DT_SPELL_SHIFT, ns);
		/* What was left behind is in the way, and nothing makes it quicker. */
		if (!reads->nr_seen)
			reads->alone = rate;
		else if (reads->nr_seen < slices->passes)
			reads->alone = dt_max(reads->alone, rate);
		else if (rate > reads->alone)
			reads->alone = (reads->alone + rate) / 2;
		else
			reads->alone -= (reads->alone - rate) / FORGET_ALONE;
		reads->nr_seen += reads->nr_seen < slices->passes;
	}
	slices->grp = NULL;
	dev->light.first = NULL;
	dev->limit = dev->depth;
}

static void begin_slice(struct dt_dev *dev, struct dt_group *grp, u64 ns)
{
	struct dt_slices *slices = &dev->spells.slices;

	slices->grp = grp;
	slices->until_ns = dev->clock_ns + ns;
	slices->quiet_ns = 0;
	slices->units = 0;
	dev->light.first = grp;
	dev->limit = 0;
}

/* Who lacks most, with for how long it may have the device. */
static struct dt_group *who_lacks(struct dt_dev *dev, u64 rest, u64 *ns)
{
	struct dt_group *grp, *found = NULL;
	const struct dt_list *pos;
	u64 shares = 0, all = rest;
	s64 lacks, most = 0;

	FOR_EACH_READER(dev, pos, grp) {
		shares += dt_share_of(grp);
		all += had_ns(dev, grp);
	}
	FOR_EACH_READER(dev, pos, grp) {
		lacks = (s64)dt_div(all * dt_share_of(grp), dt_max(shares, 1)) -
			(s64)had_ns(dev, grp) - grp->reads.ahead_ns;
		if (!found || lacks > most) {
			most = lacks;
			found = grp;
		}
	}
	*ns = most > 0 ? dt_min((u64)most, SLICE_NS) : 0;
	return *ns >= SLICE_SHORT_NS || dev->spells.phase == DT_SPELLS_DRAIN ?
		found : NULL;
}

/* Of the readers' turn; before it has begun, as much as there was in the last one. */
static u64 rest_ns(const struct dt_dev *dev)
{
	const struct dt_spells *spells = &dev->spells;

	if (spells->phase != DT_SPELLS_READ)
		return spells->drain_ns + spells->read_ns;
	return dt_before(dev->clock_ns, spells->until_ns) ?
		spells->until_ns - dev->clock_ns : 0;
}

static struct dt_group *first_unseen(const struct dt_dev *dev)
{
	struct dt_group *grp, *found = NULL;
	const struct dt_list *pos;

	FOR_EACH_READER(dev, pos, grp)
		if (grp->reads.nr_seen < dev->spells.slices.passes &&
		    (!found || grp->reads.nr_seen < found->reads.nr_seen))
			found = grp;
	return found;
}

/* Whether each has the device for itself in this turn. */
static bool is_better(struct dt_slices *slices)
{
	u64 together = slices->value[false], sliced = slices->value[true];

	slices->nr_turns++;
	if (!together || !sliced)
		return together;
	return (BETTER * sliced > (BETTER + 1) * together) ==
	       !!(slices->nr_turns % OTHER_WAY);
}

static bool slice_goes_on(const struct dt_dev *dev)
{
	const struct dt_slices *slices = &dev->spells.slices;

	if (!is_reader(slices->grp) || !may_slice(dev))
		return false;
	/* Until it is quick. */
	if (dev->spells.phase == DT_SPELLS_DRAIN)
		return true;
	return dt_before(dev->clock_ns, slices->until_ns) &&
	       (slices->grp->reads.nr_seen >= slices->passes ||
		!slices->quiet_ns || !slices->units ||
		dt_before(dev->clock_ns, slices->quiet_ns + SEE_NS));
}

void dt_slices_tick(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;
	struct dt_group *grp;
	u64 ns = SEE_MOST_NS;

	if (slices->grp) {
		if (slice_goes_on(dev))
			return;
		end_slice(dev);
	}
	if (!slices->on || !may_slice(dev))
		return;
	grp = dev->spells.phase == DT_SPELLS_READ ? first_unseen(dev) : NULL;
	if (!grp)
		grp = who_lacks(dev, rest_ns(dev), &ns);
	if (grp)
		begin_slice(dev, grp, ns);
}

/* ---- who is ahead waits in the writers' turn ---- */

/* Not where somebody commits, who would wait for his reads before that. */
static bool may_hold(const struct dt_dev *dev, const struct dt_queue *queue)
{
	return queue->sync && !dt_committed_lately(dev);
}

static void hold_back(struct dt_dev *dev, struct dt_group *grp, bool held)
{
	const struct dt_list *pos;
	struct dt_queue *queue;

	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next) {
		queue = DT_CONTAINER(pos, struct dt_queue, link);
		if (!dt_list_empty(&queue->party) || queue->spent == held ||
		    (held && !may_hold(dev, queue)))
			continue;
		queue->spent = held;
		if (held)
			dt_park(dev, queue);
		else
			dt_unpark(dev, queue);
	}
}

void dt_slices_sent(struct dt_dev *dev, struct dt_queue *queue, u64 units)
{
	struct dt_group *grp = queue->grp;
	u64 ns, most;

	if (!dev->spells.slices.pipes || !grp->reads.alone ||
	    !dt_list_empty(&queue->party))
		return;
	ns = dt_is_flash(dev) ?
	     dt_flash_slower(dev, PIPE_NS) :
	     dt_max(PIPE_NS, PIPE_QUICK * dev->quick[DT_READ].ns);
	most = dt_div(grp->reads.alone * ns >> DT_SPELL_SHIFT, units);
	if (grp->own->nr_inflight < dt_max(most, PIPE_LEAST))
		return;
	grp->reads.full = grp->own->nr_inflight;
	queue->spent = true;
	dt_park(dev, queue);
}

void dt_slices_back(struct dt_dev *dev, struct dt_group *grp)
{
	if (!grp->reads.full || grp->reads.held ||
	    2 * grp->own->nr_inflight > grp->reads.full)
		return;
	grp->reads.full = 0;
	hold_back(dev, grp, false);
}

static void let_all_go(struct dt_dev *dev)
{
	const struct dt_list *pos;
	struct dt_group *grp;

	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		grp = DT_CONTAINER(pos, struct dt_group, link);
		grp->reads.held = false;
		grp->reads.full = 0;
		hold_back(dev, grp, false);
	}
	dev->spells.slices.holds = false;
}

/* How far each is ahead of its share, or behind. */
static void note_ahead(struct dt_dev *dev)
{
	s64 ns = (s64)(dev->clock_ns - dev->spells.from_ns), ahead;
	const struct dt_list *pos;
	struct dt_group *grp;

	FOR_EACH_READER(dev, pos, grp) {
		ahead = grp->reads.ahead_ns + (s64)had_ns(dev, grp) -
			((ns * (s64)dt_share_of(grp)) >> 16);
		grp->reads.ahead_ns = dt_max(dt_min(ahead, LEADS_MOST_NS),
					     -LEADS_MOST_NS);
	}
}

void dt_slices_begin(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;
	const struct dt_list *pos;
	struct dt_group *grp;

	slices->pipes = may_slice(dev) && all_seen(dev);
	if (slices->on && may_slice(dev)) {
		FOR_EACH_READER(dev, pos, grp) {
			if (grp->reads.ahead_ns < LEADS_NS)
				continue;
			grp->reads.held = true;
			hold_back(dev, grp, true);
			slices->holds = true;
		}
	}
	slices->on = false;
	slices->run++;
	slices->turn = slices->run;
}

/* It has read in this turn, and asks for several. What file systems read all may wait for. */
static bool may_be_held(const struct dt_dev *dev, const struct dt_group *grp)
{
	return grp != dev->root && grp->reads.turn == dev->spells.slices.turn &&
	       dt_outstanding_of(grp) + 1 >= ASKS && dt_share_of(grp);
}

void dt_slices_hold(struct dt_dev *dev, u64 units)
{
	const struct dt_list *pos;
	struct dt_group *grp;
	u64 shares = 0;

	if (dt_committed_lately(dev))
		return;
	FOR_EACH_READER(dev, pos, grp)
		if (may_be_held(dev, grp))
			shares += dt_share_of(grp);
	FOR_EACH_READER(dev, pos, grp) {
		if (!may_be_held(dev, grp) || grp->reads.theirs * shares <
					   units * dt_share_of(grp))
			continue;
		grp->reads.held = true;
		hold_back(dev, grp, true);
		dev->spells.slices.holds = true;
	}
}

void dt_slices_drain(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;

	if (slices->holds)
		let_all_go(dev);
	if (!dev->spells.good || !may_slice(dev) || !all_seen(dev))
		return;
	slices->nr_unknown = 0;
	slices->on = is_better(slices);
	dt_slices_tick(dev);
}

void dt_slices_read(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;
	struct dt_group *grp;
	u64 ns;

	if (slices->grp) {
		/* What it does alone begins to be seen. */
		grp = who_lacks(dev, rest_ns(dev), &ns);
		begin_slice(dev, slices->grp, slices->grp == grp ? ns : 0);
	} else if (dt_slices_unknown(dev)) {
		slices->on = true;
		slices->nr_unknown++;
	}
	dt_slices_tick(dev);
}

void dt_slices_late(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;

	/* The first slice may be no more than the rest of the drain. */
	slices->passes = 2;
	if (slices->grp)
		slices->grp->reads.nr_seen = 0;
}

u64 dt_slices_most(const struct dt_dev *dev, u64 most)
{
	const struct dt_slices *slices = &dev->spells.slices;

	return slices->grp && slices->grp->reads.alone ?
		slices->grp->reads.alone : most;
}

bool dt_slices_go_on(const struct dt_dev *dev)
{
	return dev->spells.slices.on &&
	       dt_before(dev->clock_ns, dev->spells.until_ns + SEE_ALL_NS) &&
	       may_slice(dev) && first_unseen(dev);
}

void dt_slices_end(struct dt_dev *dev)
{
	struct dt_slices *slices = &dev->spells.slices;

	if (slices->grp)
		end_slice(dev);
	if (slices->holds || slices->pipes)
		let_all_go(dev);
	slices->pipes = false;
	if (!may_slice(dev) || !all_seen(dev))
		return;
	note_ahead(dev);
	slices->value[slices->on] = dt_max(worst(dev, slices->on), 1);
}

void dt_slices_forget(struct dt_dev *dev, const struct dt_group *grp)
{
	if (dev->spells.slices.grp == grp)
		end_slice(dev);
}
