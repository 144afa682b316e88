// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Spells: readers and writers of a flash drive by turns.
 *
 * A drive with a cache says at once that a write is done, and writes it later.
 * Who writes has the cache full for ever, however few of his requests are let in
 * at a time, and a read waits for what flash does with it: on a server's drive
 * eight readers had an 85th of what they do alone, and the best division of its
 * slots makes that a 76th. Nor does it help to let the writer write half as
 * much: one collection of garbage takes 17 ms, and there is always one.
 *
 * So where readers are late they and the writers have the drive in turns:
 *
 *	IDLE ---- reads take some times as long as they can ----> WRITE
 *	WRITE	all go on, and the cache fills, for some drains or until as much is
 *		written as is due; on a drive that takes many, sent
 *	DRAIN	writers are parked (park.c) until reads are quick again
 *	READ	parked still, as long by the readers' weight as that took;
 *		then WRITE
 *
 * What the writers have done to the drive ends with the drain, so that no cost of
 * a request and no size of a cache need be known. How quick reads can be is what
 * they were in the quickest slots of READ; a slot is some tens of the least that
 * a read takes. Reads are not parked, but of who is ahead of other readers, or has had all
 * that is due to it where several write that are unlike (slice.c). What they do in the writers' turn, h of what they can,
 * shortens their own, and they are charged no more for it than they would be alone; the
 * rest is the writers' to pay.
 *
 * With p for the part that is due to readers, each side then has as much as it is
 * due by what it does alone, and the product of what both do, each to the power
 * of its part, is greater than without turns, unless h = p. So it pays where
 *
 *	h < p
 *
 * which is tried, at the cost of one drain, and that is over when reads have been
 * quick for some slots in a row: between two collections they seem to be. Later one slot
 * is enough, as long as reads go on like that in their turn. Where
 * it does not hold, spells end and are not tried for 1 s, and then for four times
 * as long, unless writers are unlike (quota.c). So they do where hardly anybody reads: p is no more than a tenth for
 * each request that readers have outstanding, and for less than four the depth is
 * looked after instead (depth.c). Who has a few writes in flight is never parked,
 * nor who reads and writes, nor who commits, and it is not tried where there is
 * nobody else.
 *
 * Who reads in bursts has nothing outstanding when a slot ends, as often as not: whether
 * anybody reads, and how many at a time, is by what was read in the slots. And where
 * the cache had room in the first writers' turn that did no harm, so that it is tried
 * again after a second, and after each failure four times as long.
 *
 * Where several groups write each has its part of a turn, and is parked when it has had
 * that (quota.c).
 *
 * Who comes to a drive whose cache is full already has never seen how quick reads can be,
 * and is late until it has: turns are tried.
 *
 * The bound: a writer waits for no longer than READ_MOST_NS and a drain, and for a turn of
 * another's with the same after it where several write; once for what each of several
 * readers does alone to be seen (slice.c).
 *
 * What it is worth (docs/DESIGN.md has more): on the server's drive, 8 reads of
 * 4 KB at a time beside 8 writes, each side has 0.47 to 0.50 of what it does
 * alone, where it were 0.012 and 1.00.
 */
#include "commit.h"
#include "depth.h"
#include "entity.h"
#include "flash.h"
#include "line.h"
#include "park.h"
#include "quota.h"
#include "select.h"
#include "slice.h"
#include "solo.h"
#include "spell.h"

/* Reads are slow that take so many times the least, the mean of so many. */
#define SLOW_READS		4
#define SLOW_SAMPLES		4
/* How quick they can be is known by so many that nobody's writes were in the way of. */
#define UNHARMED		4
/* None before it has been so for so long, nor where nobody writes enough. */
#define FIRST_NS		(50 * DT_NSEC_PER_MSEC)
/* Of a drive that takes so many it may be long before all that it has taken is done. */
#define DEEP			64
/* A writer is parked who has so many outstanding. */
#define MANY			4
/* Times are in so many of the least that a read takes, and within bounds. */
#define SLOT			32
#define SLOT_LEAST		4
#define SLOT_LEAST_NS		DT_NSEC_PER_MSEC
#define SLOT_MOST_NS		(3 * DT_NSEC_PER_MSEC)
/* So many times longer, at most, where a read takes so many times what it does of flash. */
#define SLOT_TIMES		4
#define WRITE_SLOTS		4
#define WRITE_SLOTS_MOST	32
/* And so many drains, of which each loses a part. */
#define WRITE_DRAINS		3
/* And with the drain, as far as what is written decides: this, or so many spans; */
#define THEIRS_NS		(64 * DT_NSEC_PER_MSEC)
#define THEIRS_SPANS		20
/* no less than. */
#define THEIRS_LEAST_NS		(32 * DT_NSEC_PER_MSEC)
/*
 * A drain takes no more of them when all that was in the device is done, nor does it to
 * see that there is none;
 */
#define DRAIN_SLOTS		64
/* no longer than this in all, */
#define DRAIN_MOST_NS		DT_NSEC_PER_SEC
/* nor does a turn of the readers. */
#define READ_MOST_NS		(2 * DT_NSEC_PER_SEC)
/* A drain is over when reads do so much of the most that they can; 2^-3. */
#define QUICK			6
/* The first time in so many slots in a row: there is nothing yet to go by. */
#define FIRST_SLOTS		4
/* And later in as many as it takes: by readers' turns of so many, no more than these. */
#define JUDGED_SLOTS		2
#define QUICK_SLOTS_MOST	8
/* After so many nothing else will come, and if that does not pay it is over. */
#define SURE_SLOTS		16
/* Unless the drive still writes, as it seems: it does no more reads than this at a time. */
#define BUSY_READS		8
#define SMALL_UNITS		(UNITS + 8)
/* What they can do is seen in no more slots at a time. */
#define RUN_SLOTS		4
/* Which are two of those, and a rest. */
#define SEEN_SLOTS		(2 * RUN_SLOTS + 1)
/* And go on while they do more than before by this part. */
#define GREW_PART		16
/* What they can do is forgotten by this part with each turn. */
#define FORGET_MOST		64
/* What one outstanding request may cost the writers; 2^-16. */
#define READ_LOSS		6000
#define WHOLE			65536
/* To begin with h is to be less than p by this part of it. */
#define MARGIN			8
/* So many turns in a row did not pay, but for those that were cut short. */
#define FAILURES		2
#define TRY_AGAIN_NS		(DT_NSEC_PER_SEC / 4)
#define TRY_AGAIN_TIMES		4
#define TRY_AGAIN_MOST_NS	(256 * DT_NSEC_PER_SEC)
/* What a request is worth beside its sectors. */
#define UNITS			16

void dt_spells_init(struct dt_spells *spells)
{
	*spells = (struct dt_spells) { .off_ns = TRY_AGAIN_NS };
	dt_list_init(&spells->queues);
}

static u64 units_of(const struct dt_item *item)
{
	return UNITS + item->sectors;
}

static u64 rate_of(u64 units, u64 ns)
{
	return dt_div(units << DT_SPELL_SHIFT, dt_max(ns, 1));
}

static bool parks_writers(const struct dt_spells *spells)
{
	return spells->phase == DT_SPELLS_DRAIN ||
	       spells->phase == DT_SPELLS_READ;
}

/* A drive that takes few is soon done with them. */
static bool is_deep(const struct dt_dev *dev)
{
	return dev->depth_hw >= DEEP;
}

/*
 * A drive that is slow collects garbage for longer as well, and when it has all reads that
 * had to wait are done in one slot, if that is short.
 */
static u64 slot_most_ns(const struct dt_dev *dev)
{
	if (!is_deep(dev) || !dt_takes_writes(dev))
		return SLOT_MOST_NS;
	return dt_min(dt_flash_slower(dev, SLOT_MOST_NS),
		      SLOT_TIMES * SLOT_MOST_NS);
}

static u64 slot_ns(const struct dt_dev *dev)
{
	u64 quick = dev->quick[DT_READ].ns;

	return dt_max(dt_min(SLOT * quick, slot_most_ns(dev)),
		      dt_max(SLOT_LEAST * quick, SLOT_LEAST_NS));
}

/* What takes as many of these is longer where all takes longer. */
static u64 span_ns(const struct dt_dev *dev)
{
	u64 slot = slot_ns(dev);

	return is_deep(dev) ? dt_max(slot, SLOT * dev->quick[DT_READ].ns) :
			      slot;
}

/* ---- charges ---- */

u64 dt_spells_charge(struct dt_dev *dev, const struct dt_item *item,
		     u64 time_ns)
{
	struct dt_spells *spells = &dev->spells;
	u64 alone;

	if (spells->phase == DT_SPELLS_READ || !spells->good)
		return time_ns;
	alone = dt_div(units_of(item) << DT_SPELL_SHIFT, spells->most);
	if (time_ns <= alone)
		return time_ns;
	spells->owed_ns += time_ns - alone;
	dev->excess_ns += time_ns - alone;
	return alone;
}

/* The writers pay what the reads were not charged, by what they wrote. */
static void pay_for_reads(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	struct dt_list *pos;
	struct dt_queue *queue;
	u64 time;

	for (pos = spells->queues.next; pos != &spells->queues;
	     pos = pos->next) {
		queue = DT_CONTAINER(pos, struct dt_queue, party);
		if (!queue->wrote)
			continue;
		time = dt_div(spells->owed_ns * queue->wrote, spells->wrote);
		spells->wrote -= queue->wrote;
		spells->owed_ns -= time;
		queue->wrote = 0;
		queue->nr_done = 0;
		dev->excess_ns -= time;
		dev->charged_ns += time;
		queue->grp->stats.time_ns[DT_WRITE] += time;
		dt_path_charge(dev, &queue->ent, (s64)time);
	}
	spells->owed_ns = 0;
}

/* ---- the writers ---- */

/* Who waits for a commit, and for its writes before that, is not made to. */
static bool commits(const struct dt_dev *dev, const struct dt_queue *queue)
{
	return queue->sync && dt_committed_lately(dev);
}

static bool is_many(const struct dt_queue *queue)
{
	return queue->ent.nr_queued + queue->ent.nr_inflight >= MANY;
}

/* A write of it came, or is done. */
static void add_writer(struct dt_dev *dev, struct dt_queue *queue)
{
	if (!dt_list_empty(&queue->party) || !is_many(queue) ||
	    commits(dev, queue))
		return;
	/* It has read until now, and waits as others do (slice.c). */
	if (queue->spent)
		dt_unpark(dev, queue);
	queue->wrote = 0;
	queue->nr_done = 0;
	queue->sent = 0;
	queue->part = 0;
	queue->spent = dt_quota_none(dev, queue->grp);
	if (queue->spent)
		dt_park(dev, queue);
	dt_party_add(&dev->spells.queues, queue);
}

static void drop_writer(struct dt_dev *dev, struct dt_queue *queue)
{
	queue->spent = false;
	dt_unpark(dev, queue);
	dev->spells.wrote -= queue->wrote;
	queue->wrote = 0;
	dt_list_del(&queue->party);
}

void dt_spells_queued(struct dt_dev *dev, struct dt_item *item, u64 now)
{
	struct dt_spells *spells = &dev->spells;
	struct dt_queue *queue = item->queue;

	if (item->dir == DT_WRITE && !item->express) {
		add_writer(dev, queue);
		if (!dt_list_empty(&queue->party) &&
		    (queue->spent || parks_writers(spells))) {
			dt_park_new(dev, queue);
			return;
		}
	} else if (item->dir == DT_READ && !dt_list_empty(&queue->party)) {
		drop_writer(dev, queue);
	}
	if (unlikely(queue->spent) && !item->express) {
		if (item->dir == DT_READ) {
			dt_park_new(dev, queue);
			return;
		}
		/* A few writes of who reads wait for nobody, as ever. */
		queue->spent = false;
		dt_unpark(dev, queue);
	}
	dt_path_queued(dev, queue, now);
}

void dt_spells_forget(struct dt_dev *dev, struct dt_queue *queue)
{
	dev->spells.wrote -= queue->wrote;
}

/* ---- phases ---- */

static void begin_run(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;

	spells->run_ns = dev->clock_ns;
	spells->run_units = 0;
	spells->run_reads = 0;
	spells->run_slots = 0;
}

static void begin_phase(struct dt_dev *dev, enum dt_spells_phase phase)
{
	struct dt_spells *spells = &dev->spells;

	spells->phase = phase;
	spells->since_ns = dev->clock_ns;
	/* The last slot of a drain was as quick as those after it. */
	if (phase != DT_SPELLS_READ) {
		spells->rate = 0;
		begin_run(dev);
	}
	spells->slot_ns = dev->clock_ns;
	spells->units = 0;
	spells->nr_reads = 0;
	spells->reads_ns = 0;
	spells->read_units = 0;
	spells->nr_quick = 0;
	spells->quick_units = 0;
	spells->look_ns = dev->clock_ns + slot_ns(dev);
	dt_quota_reset(dev);
	dt_party_park(dev, &spells->queues, parks_writers(spells));
	dt_dev_derive(dev);
}

/* Turns are what is shared, and not what they are charged. */
static void level_writers(struct dt_dev *dev)
{
	struct dt_list *party = &dev->spells.queues, *pos;

	for (pos = party->next; pos != party; pos = pos->next)
		dt_path_level(dev, &DT_CONTAINER(pos, struct dt_queue,
						 party)->ent);
}

static void end_spells(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;

	dt_slices_end(dev);
	pay_for_reads(dev);
	level_writers(dev);
	spells->quota.own = NULL;
	begin_phase(dev, DT_SPELLS_IDLE);
	spells->look_ns = 0;
	spells->again_ns = dev->clock_ns + spells->off_ns;
	dt_solo_unwritten(dev, dev->clock_ns - spells->from_ns);
	dt_party_clear(&spells->queues);
	dt_depth_resume(dev);
	dev->fit.settle = 2 * dev->depth;
}

/* A turn that is shorter where the readers' after it would be much longer. */
static u64 shorter(const struct dt_spells *spells, u64 ns, u64 least)
{
	if (spells->ratio > 1 << DT_RATIO_SHIFT)
		ns = dt_div(ns << DT_RATIO_SHIFT, spells->ratio);
	return dt_max(ns, least);
}

/* The writers' turn and its drain are to take about as long. */
static u64 due_ns(const struct dt_dev *dev)
{
	u64 ns = dt_max(THEIRS_NS, THEIRS_SPANS * span_ns(dev));

	return shorter(&dev->spells, dt_min(ns, DRAIN_MOST_NS / 2),
		       THEIRS_LEAST_NS);
}

/* The part that is the readers', as it was seen last; 2^-16. */
static u64 readers_of(const struct dt_spells *spells)
{
	return dt_div((u64)spells->ratio << 16,
		      spells->ratio + (1 << DT_RATIO_SHIFT));
}

/* What readers are due of a turn of the writers and its drain that take @ns. */
static u64 reads_due(const struct dt_spells *spells, u64 ns)
{
	ns = ns * readers_of(spells) >> 16;
	return dt_max(spells->most * ns >> DT_SPELL_SHIFT, 1);
}

static void enter_write(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	u64 ns;

	level_writers(dev);
	/* What all do together was not seen where they were one after the other, or had no turn. */
	if (!spells->slices.on && (spells->best || !spells->quota.unlike))
		spells->most -= spells->most / FORGET_MOST;
	dt_slices_begin(dev);
	spells->best = 0;
	spells->theirs = 0;
	spells->cut = false;
	spells->nr_most -= (spells->nr_most + 3) / 4;
	spells->from_ns = dev->clock_ns;
	begin_phase(dev, DT_SPELLS_WRITE);
	dt_quota_begin(dev, due_ns(dev));
	ns = dt_max(WRITE_DRAINS * spells->drain_ns,
		    WRITE_SLOTS * slot_ns(dev));
	ns = dt_min(ns, WRITE_SLOTS_MOST * slot_ns(dev));
	ns = shorter(spells, ns, SLOT_LEAST_NS);
	spells->look_ns = dev->clock_ns + ns;
	spells->reads_most = spells->good && spells->quota.unlike ?
		reads_due(spells, dt_min(ns + spells->drain_ns,
					 spells->took_ns)) : ~0ull;
}

/* Of the writers' requests, those in line and those in the device. */
static u32 nr_theirs(const struct dt_dev *dev, bool inflight)
{
	const struct dt_list *pos;
	const struct dt_queue *queue;
	u32 nr = 0;

	for (pos = dev->spells.queues.next; pos != &dev->spells.queues;
	     pos = pos->next) {
		queue = DT_CONTAINER(pos, struct dt_queue, party);
		nr += inflight ? queue->ent.nr_inflight : queue->ent.nr_queued;
	}
	return nr;
}

static u32 nr_parked_of(const struct dt_spells *spells)
{
	const struct dt_list *pos;
	u32 nr = 0;

	for (pos = spells->queues.next; pos != &spells->queues; pos = pos->next)
		nr += DT_CONTAINER(pos, struct dt_queue, party)->nr_parked;
	return nr;
}

/* Requests of all others. */
static u32 nr_others(const struct dt_dev *dev)
{
	return dev->nr_queued + dev->nr_inflight + dev->nr_parked -
	       nr_theirs(dev, false) - nr_theirs(dev, true) -
	       nr_parked_of(&dev->spells);
}

/* The same, or as many as were seen of late: who thinks has none just now. */
static u32 nr_lately(const struct dt_dev *dev)
{
	return dt_max(nr_others(dev), dev->spells.nr_most);
}

/* Whether there are any, or were in this slot. */
static bool anybody_reads(const struct dt_dev *dev)
{
	return dev->spells.nr_reads || nr_others(dev);
}

/* Of readers and writers of the same group: flushers have their floor. */
static u32 ratio_within(const struct dt_spells *spells)
{
	const struct dt_queue *queue;

	if (dt_list_empty(&spells->queues))
		return 0;
	queue = DT_CONTAINER(spells->queues.next, struct dt_queue, party);
	return (queue->ent.class == DT_WRITEBACK ? DT_WRITEBACK_FLOOR : 1)
	       << DT_RATIO_SHIFT;
}

/* The part of the time that is the readers', 2^-16. */
static u64 readers_part(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	u32 ratio = dt_party_ratio(dev, &spells->queues, spells->from_ns,
				   ratio_within(spells));
	u64 part = dt_div((u64)ratio << 16, ratio + (1 << DT_RATIO_SHIFT));
	u64 most = READ_LOSS * (u64)nr_lately(dev);

	part = dt_min(part, most);
	spells->ratio = (u32)dt_div(part << DT_RATIO_SHIFT, WHOLE - part);
	return part;
}

/* What reads did in the writers' turn of what they can, 2^-16. */
static u64 harmed(const struct dt_spells *spells, u64 theirs_ns)
{
	return dt_min(dt_div(rate_of(spells->theirs, theirs_ns) << 16,
			     dt_max(spells->most, 1)), WHOLE);
}

/* The readers' turn, less what they had of the writers'. */
static void enter_read(struct dt_dev *dev, u64 theirs_ns, u64 had)
{
	struct dt_spells *spells = &dev->spells;
	u64 ns = theirs_ns * (WHOLE - had) >> 16;

	ns = ns * spells->ratio >> DT_RATIO_SHIFT;
	ns -= dt_min(ns, theirs_ns * had >> 16);
	/* It began with the slot in which they were seen to be quick. */
	if (spells->nr_quick)
		ns -= dt_min(ns, dev->clock_ns - spells->quick_ns);
	if (!spells->quota.own)
		spells->took_ns = theirs_ns;
	/* What they can is seen where nobody writes, and may take longer than is left to them. */
	spells->sees = spells->quota.own;
	if (spells->sees)
		ns = dt_max(ns, SEEN_SLOTS * slot_ns(dev));
	dt_quota_end(dev, theirs_ns, due_ns(dev),
		     theirs_ns * (WHOLE - dt_min(harmed(spells, theirs_ns),
						 readers_of(spells))) >> 16);
	spells->drain_ns = dev->clock_ns - spells->since_ns;
	pay_for_reads(dev);
	begin_phase(dev, DT_SPELLS_READ);
	spells->read_ns = dt_min(ns, READ_MOST_NS);
	spells->until_ns = dev->clock_ns + spells->read_ns;
	dt_slices_read(dev);
	/* A turn may be shorter than a slot. */
	spells->look_ns = dt_min(spells->look_ns, spells->until_ns);
}

static void give_up(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;

	spells->failed = true;
	spells->off_ns = dt_min(TRY_AGAIN_TIMES * spells->off_ns,
				TRY_AGAIN_MOST_NS);
	end_spells(dev);
}

/* As many since then as one at a time would be, were each half as quick as it can be. */
static bool many_reads(const struct dt_dev *dev, u64 nr, u64 since_ns)
{
	return 2 * nr * dev->quick[DT_READ].ns >= dev->clock_ns - since_ns;
}

/* So many reads were there at a time since the slot began, in the mean. */
static void note_most(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	u64 mean = dt_div(spells->reads_ns,
			  dt_max(dev->clock_ns - spells->slot_ns, 1));

	spells->nr_most = dt_max(spells->nr_most, (u32)mean);
}

/*
 * In one slot alone requests may end that had waited for each other, and in more where as
 * many wait as are done in more.
 */
static void end_run(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	u64 rate = rate_of(spells->run_units, dev->clock_ns - spells->run_ns);

	spells->best = dt_max(spells->best, dt_min(rate, spells->rate));
	if (spells->best > spells->most + spells->most / GREW_PART)
		spells->grew_ns = dev->clock_ns;
	spells->most = dt_max(spells->most, spells->best);
	spells->rate = rate;
	begin_run(dev);
}

/* A slot has gone by. */
static u64 end_slot(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	u64 rate = rate_of(spells->units, dev->clock_ns - spells->slot_ns);

	/* What one does alone says nothing of all. */
	if (!dt_is_sliced(dev)) {
		note_most(dev);
		spells->run_units += spells->units;
		spells->run_reads += spells->nr_reads;
		if (++spells->run_slots == RUN_SLOTS ||
		    spells->run_reads >= dt_min(spells->nr_most, dev->depth))
			end_run(dev);
	}
	spells->read_units += spells->units;
	spells->units = 0;
	spells->nr_reads = 0;
	spells->reads_ns = 0;
	spells->slot_ns = dev->clock_ns;
	spells->look_ns = dev->clock_ns + slot_ns(dev);
	return rate;
}

/*
 * What a drain may take, from when the last write of theirs was done. It is seen sooner
 * where a write is done when it is written.
 */
static u64 drain_most_ns(const struct dt_dev *dev, u64 slot_ns)
{
	bool patient = dev->spells.good || dt_has_cache(dev);

	return dt_min((patient ? DRAIN_SLOTS : DRAIN_SLOTS / 4) * slot_ns,
		      DRAIN_MOST_NS);
}

static void end_write(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;

	if (is_deep(dev) && dt_takes_writes(dev))
		dt_quota_look(dev, UNITS);
	else
		spells->quota.unlike = false;
	note_most(dev);
	spells->theirs = spells->units;
	spells->taken_ns = dev->clock_ns;
	spells->nr_drain = 0;
	begin_phase(dev, DT_SPELLS_DRAIN);
	dt_slices_drain(dev);
}

/*
 * Once it is sent it is written, whenever the turn is over, and a deep drive takes more than
 * is due in a turn.
 */
void dt_spells_sent(struct dt_dev *dev, struct dt_item *item)
{
	struct dt_spells *spells = &dev->spells;

	if (item->dir == DT_READ)
		dt_slices_sent(dev, item->queue, units_of(item));
	if (dt_list_empty(&item->queue->party))
		return;
	/* One that went express has let all others of its queue go. */
	if (parks_writers(spells) || item->queue->spent) {
		if (item->express)
			dt_park(dev, item->queue);
		return;
	}
	if (dt_quota_sent(dev, item->queue, units_of(item)) && is_deep(dev)) {
		spells->cut = true;
		end_write(dev);
	}
}

static void tick_write(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;

	/* A turn that is shorter than a write is none. */
	if (!spells->wrote && nr_theirs(dev, true) &&
	    dev->clock_ns - spells->since_ns <
	    drain_most_ns(dev, slot_ns(dev))) {
		spells->look_ns = dev->clock_ns + slot_ns(dev);
	} else if (!spells->wrote && spells->quota.own) {
		dt_quota_open(dev);
		spells->look_ns = dev->clock_ns + slot_ns(dev);
	} else if (!spells->wrote) {
		end_spells(dev);
	} else {
		end_write(dev);
	}
}

static bool is_quick(const struct dt_dev *dev, u64 rate)
{
	return 8 * rate >= QUICK * dt_slices_most(dev, dev->spells.most);
}

/* A slot of a drain is over. Whether reads are quick, as long as they should be. */
static bool end_drain_slot(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	/* What is not even taken is not written. */
	bool done = many_reads(dev, spells->nr_reads, spells->slot_ns) &&
		    !nr_theirs(dev, true);
	u64 from_ns = spells->slot_ns, units = spells->units;
	u64 rate;
	bool quick;

	spells->nr_drain += spells->nr_reads;
	rate = end_slot(dev);
	quick = done && is_quick(dev, rate);

	/* By what is known now those before were not. */
	if (!quick || !is_quick(dev, spells->quick_rate)) {
		spells->theirs += spells->quick_units;
		spells->quick_units = 0;
		spells->nr_quick = 0;
		dt_slices_slow(dev);
	}
	if (!quick) {
		spells->theirs += units;
		dt_slices_slow(dev);
		return false;
	}
	if (!spells->nr_quick++) {
		spells->quick_ns = from_ns;
		spells->quick_rate = rate;
	}
	spells->quick_rate = dt_min(spells->quick_rate, rate);
	spells->quick_units += units;
	return spells->nr_quick >= (spells->good ? spells->nr_due : FIRST_SLOTS);
}

/*
 * Where reads are few slots do not tell, and it is no use to see more of them; but a cache
 * that still is written is what makes them few.
 */
static bool drains_long(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	u64 took = dev->clock_ns - spells->since_ns;

	if (nr_theirs(dev, true))
		spells->taken_ns = dev->clock_ns;
	if (!is_deep(dev) ||
	    (!spells->good && !dt_takes_writes(dev) &&
	     !many_reads(dev, spells->nr_drain, spells->since_ns)))
		return took > drain_most_ns(dev, slot_ns(dev));
	return took > DRAIN_MOST_NS || dev->clock_ns - spells->taken_ns >
				       drain_most_ns(dev, span_ns(dev));
}

/*
 * Reads that are as slow as before may be all that the drive does for them, or what it is
 * still writing: one that takes many does more than a few small ones at a time.
 */
static bool seems_busy(const struct dt_dev *dev, u64 had)
{
	const struct dt_spells *spells = &dev->spells;
	u64 few = dt_min(BUSY_READS, spells->nr_most / 2) * SMALL_UNITS;

	return is_deep(dev) && had >= WHOLE - WHOLE / MARGIN &&
	       spells->quick_units * dev->quick[DT_READ].ns <
	       few * (dev->clock_ns - spells->quick_ns);
}

static void tick_drain(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	bool quick = end_drain_slot(dev);
	/* They had it until then. */
	u64 theirs_ns = (spells->nr_quick ? spells->quick_ns : dev->clock_ns) -
			spells->from_ns;
	u64 part = readers_part(dev), had = harmed(spells, theirs_ns);
	u64 kept = dt_slices_kept(dev, theirs_ns, had);
	bool late = drains_long(dev);
	bool few = nr_lately(dev) < MANY;
	bool less = kept < (spells->good ? part : part - part / MARGIN);
	bool sure = !less && !spells->good && spells->nr_quick >= SURE_SLOTS &&
		    !seems_busy(dev, had);
	bool pays;

	/* By now they have as many requests as they want. */
	late |= few && !spells->good &&
		dev->clock_ns - spells->since_ns >= 2 * slot_ns(dev);
	late |= sure;
	/*
	 * Where writers are unlike they need not do less meanwhile, but reads that do as much
	 * may also be no quicker yet than they were: that is known at the end.
	 */
	pays = spells->most && !few &&
	       (less || (spells->quota.unlike && (spells->good || late)));
	/* Large reads hide what small ones lose, but not from what each does alone. */
	if (late && spells->most && !few && !spells->good &&
	    dt_slices_unknown(dev))
		pays = true;
	if (!(quick && (pays || spells->good)) && !late)
		return;
	/* One that ended before the cache was full says nothing against it. */
	if (pays)
		spells->failures = 0;
	else if (!spells->quota.own &&
		 (!spells->cut || 2 * theirs_ns >= due_ns(dev)))
		spells->failures++;
	if (spells->failures == FAILURES || (!pays && !spells->good)) {
		give_up(dev);
		return;
	}
	/* With nobody else in the way that is what they can now. */
	if (late && spells->best)
		spells->most = spells->best;
	if (late) {
		/* There are not so many quick slots in a row. */
		spells->nr_due = (spells->nr_due + 1) / 2;
		dt_slices_late(dev);
	}
	if (!spells->good)
		spells->good_ns = dev->clock_ns;
	spells->good = true;
	spells->off_ns = TRY_AGAIN_NS;
	enter_read(dev, theirs_ns, dt_slices_had(dev, theirs_ns, part, had));
}

/* Reads became quicker until now: what writers left behind was not all written. */
static bool still_grows(const struct dt_dev *dev)
{
	const struct dt_spells *spells = &dev->spells;

	return spells->sees && dt_before(dev->clock_ns, spells->grew_ns +
					 SEEN_SLOTS * slot_ns(dev)) &&
	       dt_before(dev->clock_ns, spells->since_ns + DRAIN_MOST_NS);
}

/*
 * Where reads were slow in their own turn the drain before it was over too soon, and the
 * next ones end with more slots that are quick. Not if they stopped to come, or each has a
 * slice; nor is a turn judged that is shorter than the slots before it that were quick.
 */
static void judge_drain(struct dt_dev *dev, bool any)
{
	struct dt_spells *spells = &dev->spells;
	u64 ns = dev->clock_ns - spells->since_ns;

	if (any && is_deep(dev) && dt_takes_writes(dev) &&
	    !spells->slices.on && ns >= JUDGED_SLOTS * slot_ns(dev) &&
	    !is_quick(dev, rate_of(spells->read_units, ns)))
		spells->nr_due = dt_min(spells->nr_due + 1, QUICK_SLOTS_MOST);
	else if (spells->nr_due > 1)
		spells->nr_due--;
}

void dt_spells_tick(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	bool any;

	if (!spells->look_ns || dt_before(dev->clock_ns, spells->look_ns))
		return;
	switch (spells->phase) {
	case DT_SPELLS_WRITE:
		tick_write(dev);
		break;
	case DT_SPELLS_DRAIN:
		if (!anybody_reads(dev)) {
			end_spells(dev);
			break;
		}
		tick_drain(dev);
		if (spells->phase == DT_SPELLS_DRAIN)
			dt_slices_tick(dev);
		break;
	default:
		any = anybody_reads(dev);
		end_slot(dev);
		if (!any || (!dt_before(dev->clock_ns, spells->until_ns) &&
			     !still_grows(dev) && !dt_slices_go_on(dev))) {
			judge_drain(dev, any);
			dt_slices_end(dev);
			enter_write(dev);
		} else {
			dt_slices_tick(dev);
		}
	}
}

static void note_unharmed(struct dt_group *grp)
{
	if (grp->nr_unharmed < UNHARMED)
		grp->nr_unharmed++;
}

static bool was_unharmed(const struct dt_group *grp)
{
	return grp->nr_unharmed == UNHARMED;
}

/* Who has had its share of that waits, and the others are looked at again a little later. */
static void hold_readers(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;

	dt_slices_hold(dev, spells->reads_most);
	spells->reads_most += spells->reads_most / 4 + 1;
}

void dt_spells_note(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_spells *spells = &dev->spells;
	struct dt_queue *queue = item->queue;

	dt_slices_back(dev, queue->grp);
	if (item->dir == DT_READ) {
		/* Who has the device is looked at, and not what others have in it. */
		if (!dt_is_sliced(dev) || spells->slices.grp == queue->grp)
			spells->units += units_of(item);
		dt_slices_note(dev, queue->grp, units_of(item),
			       spells->phase == DT_SPELLS_WRITE);
		spells->nr_reads++;
		spells->reads_ns += dev->clock_ns -
				    dt_later(item->insert_ns, spells->slot_ns);
		spells->nr_most = dt_max(spells->nr_most,
					 queue->ent.nr_queued +
					 queue->ent.nr_inflight + 1);
		if (parks_writers(spells))
			note_unharmed(queue->grp);
		else if (spells->units >= spells->reads_most)
			hold_readers(dev);
		return;
	}
	add_writer(dev, queue);
	if (!dt_list_empty(&queue->party)) {
		queue->wrote += units_of(item);
		dt_quota_note(dev, queue, units_of(item));
		spells->wrote += units_of(item);
		/* It ends with the next tick. */
		if (!is_deep(dev) && spells->phase == DT_SPELLS_WRITE &&
		    spells->quota.units && spells->wrote >= spells->quota.units) {
			spells->look_ns = dev->clock_ns;
			spells->cut = true;
		}
	}
}

/* Whether anybody could be parked, as far as is seen just now. */
static bool anybody_writes(const struct dt_dev *dev)
{
	const struct dt_list *pos, *each;
	const struct dt_group *grp;
	const struct dt_queue *queue;

	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		grp = dt_active_group(pos);
		if (!grp->stats.ios[DT_WRITE])
			continue;
		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next) {
			queue = DT_CONTAINER(each, struct dt_queue, link);
			if (is_many(queue) && !commits(dev, queue))
				return true;
		}
	}
	return false;
}

/* Nothing else goes on that is not to be disturbed. */
static bool nobody_looks(const struct dt_dev *dev)
{
	return !dev->solo.grp && !dev->light.probing && !dev->fault &&
	       dev->tun.idle_ns &&
	       (dev->commits.phase == DT_COMMITS_WATCH ||
		!dt_commits_watched(dev));
}

static bool may_begin(const struct dt_dev *dev)
{
	return dev->spells.both && nobody_looks(dev) &&
	       (!dt_solo_all_may(dev) || dt_solo_leaves_behind(dev)) &&
	       !dt_before(dev->clock_ns, dev->spells.again_ns);
}

bool dt_spells_begin(struct dt_dev *dev, const struct dt_item *item,
		     u64 latency)
{
	struct dt_spells *spells = &dev->spells;
	bool slow;

	if (item->dir != DT_READ)
		return false;
	if (!dev->spells.both && !dev->fit.load.nr[DT_WRITE])
		note_unharmed(item->queue->grp);
	spells->late_ns += latency;
	/* Who came when others filled a cache has not seen how quick it can be. */
	if (was_unharmed(item->queue->grp) || !dt_has_cache(dev))
		spells->least_ns += item->queue->grp->lat_min_ns;
	if (++spells->nr_late < SLOW_SAMPLES)
		return false;
	slow = spells->late_ns > SLOW_READS * spells->least_ns;
	spells->late_ns = 0;
	spells->least_ns = 0;
	spells->nr_late = 0;
	if (!slow)
		return false;
	if (!spells->again_ns)
		spells->again_ns = dev->clock_ns + FIRST_NS;
	if (!may_begin(dev))
		return false;
	if (!anybody_writes(dev)) {
		spells->again_ns = dev->clock_ns + FIRST_NS;
		return false;
	}
	dt_commits_reset(dev);
	spells->most = 0;
	spells->failures = 0;
	spells->good = false;
	spells->failed = false;
	spells->ratio = 0;
	spells->wrote = 0;
	spells->quota.units = 0;
	spells->quota.unlike = false;
	spells->quota.spell++;
	spells->drain_ns = 0;
	spells->nr_due = 1;
	spells->nr_most = 0;
	dt_slices_init(dev);
	enter_write(dev);
	return true;
}

void dt_spells_reset(struct dt_dev *dev)
{
	if (dev->spells.phase != DT_SPELLS_IDLE)
		end_spells(dev);
}

bool dt_spells_resume(struct dt_dev *dev)
{
	if (dev->spells.phase || !nobody_looks(dev) || !anybody_writes(dev) ||
	    !nr_others(dev))
		return false;
	dt_commits_reset(dev);
	dt_slices_init(dev);
	dev->spells.quota.unlike = false;
	dev->spells.nr_due = 1;
	enter_write(dev);
	return true;
}
