// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Serial: devices that serve one request after the other.
 *
 * A volume behind a network, or an image behind a throttle, is flash by name, and
 * one server by what it does: all requests wait in one line, and leave it at a rate.
 * Who has one at a time stands behind all others', and no division of slots helps:
 * with 4 of 1 MB let in a read of 4 KB waits for 32 ms. What helps is what helps on
 * a disk with one head, turns (select.c): while a group has the device no other has
 * anything in there. The turns are short, as there is no seek between two.
 *
 *	IDLE ---- requests stay for SERIAL_STAY_NS, more than one group ---- LOOK
 *	LOOK	what each group does is counted for a while, and how late it is
 *	WATCH	in what order requests are done
 *	ALONE	one at a time is let in
 *	TRIAL	there are turns, and what each group does is counted again
 *	TURNS	there are; then WATCH again
 *
 * The device is serial by two things.
 *
 * - Requests are done in the order in which they were sent, whatever they are. Among
 *   parts that work side by side the small ones are done before large ones that were
 *   sent earlier, and reads before writes. By how much each was sent before the latest
 *   of those that are done already is to be little, in parts of how long they stay.
 * - One at a time keeps it busy, or nearly so. Equal requests are done in order by
 *   equal parts as well. So for some no more than one is let in (thin.c). One that is
 *   alone takes as long as it makes the line longer, from the one before until it is
 *   done or from then to the next, times as many as are worked at side by side; each
 *   is compared with its own group's. Writes that a cache takes are done in order,
 *   too, and say nothing; there have to be reads.
 *
 * A drive's interface is serial as well where large requests keep it busy, but there
 * the depth does better (depth.c), as it lets one that reads little go in between. So
 * turns have to be worth it, both before and after. Before: a group waits for longer
 * than is due to it, by its share and by what all that it asks for makes of the line, or
 * by what one takes with nobody beside it, though the depth was looked after meanwhile.
 * After: by how much what each group does has grown, to the power of its share, the
 * product is greater than without turns, twice in a row: what a cache takes in the first
 * half of a second it need not in the next. If it is not they end, and it is looked at
 * again after four times as long as before. So it is with turns that last: LASTS_NS at
 * first, then four times that. It does not begin while anybody commits, as commit.c is for
 * devices without; turns that there are go on.
 *
 * Where readers and writers have turns (spell.c) order is watched in the writers', in which
 * all go on, but not where one writer has that for itself (quota.c). A drive whose cache takes writes does not do them in order with reads. Such
 * turns end when the device is looked at with one at a time, and go on if it is not serial.
 *
 * Whose is the time? That from one completion to the next is one request's. A server
 * takes it before that is done. A throttle lets a request pass, and the next one
 * waits for what it was worth: there it is that of the one before. Within a turn that
 * is the same. Where the group changes it is told apart by what either usually takes,
 * if that is different: it is charged to the one whom the time is like.
 */
#include "account.h"
#include "commit.h"
#include "depth.h"
#include "entity.h"
#include "park.h"
#include "select.h"
#include "serial.h"
#include "spell.h"
#include "thin.h"
#include "wide.h"
#include "written.h"

/* Requests stay for so long, a mean over 2^SERIAL_SHIFT; beside so many others. */
#define SERIAL_STAY_NS		(2 * DT_NSEC_PER_MSEC)
#define SERIAL_SHIFT		3
#define BESIDE			3
/* So long it is counted what everybody does; without turns, and with them. */
#define LOOK_FOR_NS		(500 * DT_NSEC_PER_MSEC)
/* Before, so many stays at least: the depth has been looked after by then. */
#define LOOK_STAYS		32
/* With turns so many of what they were without. */
#define TRIAL_STAYS		4
#define SERIAL_LOOK_MOST_NS	(4 * DT_NSEC_PER_SEC)
/* The order of so many is watched, or of more until there were reads, and some of each. */
#define WATCH_ITEMS		32
#define WATCH_MOST		256
#define WATCH_LONGEST		1024
#define WATCH_READS		2
#define WATCH_WRITES		8
/* Of each group so many, for what it makes the line longer. */
#define WATCH_EACH		3
/* Done at once: with less than this part of the time before them between two. */
#define BATCH_PART		16
/* Nobody waits for longer because a device stood still. */
#define GAP_MOST_NS		DT_NSEC_PER_SEC
/* They were sent by no more than this part of a stay too early. */
#define ORDER_PART		16
/* One at a time comes after what is in there, in so many times as long as that stays. */
#define ALONE_STAYS		2
/* No more than so many are worked at side by side; 2^-16. */
#define SIDE_MOST		(3 << 16)
/* So many times less than it makes the line longer no request takes. */
#define CACHED			4
/* Where it is not well known what all do without turns: a volume, and no drive's interface. */
#define SIDE_CLEAR		(5 << 14)
/*
 * Writes that are done so soon are done by a cache; for turns to have failed reads take so
 * many times as long, too.
 */
#define CACHE_NS		(100 * DT_NSEC_PER_USEC)
#define CACHE_TIMES		8
/* A group is late beyond what is due to it by this part. */
#define LATE_PART		4
/* What is done grows by so much, log2 of the product; 2^-16. */
#define SERIAL_WORTH		4500
/* In so many of these times in a row: a cache takes writes for a while. */
#define TRIALS			2
/* Again after this, and so many times that each time. */
#define LATER_NS		DT_NSEC_PER_SEC
#define LATER_MOST_NS		(64 * DT_NSEC_PER_SEC)
#define LATER_FACTOR		4
/* Those of readers and writers are as they will be after so long. */
#define SETTLED_NS		(DT_NSEC_PER_SEC / 2)
/* Turns last for so long, and so many times that each time. */
#define LASTS_NS		(16 * DT_NSEC_PER_SEC)
#define LASTS_MOST_NS		(256 * DT_NSEC_PER_SEC)
#define LASTS_FACTOR		4
/* It is looked at again with no more than so many in flight. */
#define KNOWN_DEPTH		32
/* Who has had more than others before them is no further ahead than this. */
#define LEAD_NS			(100 * DT_NSEC_PER_MSEC)
/* A turn is as long as the longest of about so many requests, and no longer than this. */
#define SLICE_FORGET		64
#define SLICE_MOST_NS		(40 * DT_NSEC_PER_MSEC)
/* What is usual for two is different by so many times. */
#define UNLIKE			2
#define VOTES_MOST		16

static void enter_serial(struct dt_dev *dev, enum dt_serial_phase phase)
{
	dev->serial.phase = phase;
	dev->serial.since_ns = dev->clock_ns;
}

/* It is looked at again, and that costs the device nothing. */
static void look_again(struct dt_dev *dev, u64 pause_ns)
{
	struct dt_serial *serial = &dev->serial;

	serial->next_ns = dev->clock_ns + pause_ns;
	serial->known = false;
	serial->lasts_ns = 0;
	enter_serial(dev, DT_SERIAL_IDLE);
}

/* The same where it cost something. */
static void look_later(struct dt_dev *dev)
{
	struct dt_serial *serial = &dev->serial;

	serial->pause_ns = dt_min(dt_max(LATER_FACTOR * serial->pause_ns, LATER_NS),
				  LATER_MOST_NS);
	look_again(dev, serial->pause_ns);
}

/* ---- what each group does ---- */

static struct dt_serial_look *look_of(struct dt_dev *dev, struct dt_group *grp)
{
	struct dt_serial *serial = &dev->serial;
	struct dt_serial_look *look;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++)
		if (look->grp == grp)
			return look;
	if (serial->nr_looks == DT_SERIAL_GROUPS)
		return NULL;
	serial->nr_looks++;
	*look = (struct dt_serial_look) {
		.grp = grp,
		.share = dt_share_of(grp),
		.from_ns = dev->clock_ns,
		.ios = grp->stats.ios[DT_READ] + grp->stats.ios[DT_WRITE],
	};
	return look;
}

/* What it did since then in a second; 2^-16. */
static u64 ios_rate(const struct dt_dev *dev, const struct dt_serial_look *look)
{
	u64 ios = look->grp->stats.ios[DT_READ] + look->grp->stats.ios[DT_WRITE];

	return dt_div(((ios - look->ios) << 16) * 1000,
		      dt_max((dev->clock_ns - look->from_ns) / DT_NSEC_PER_MSEC, 1));
}

/* log2; 2^-16. Within a hundredth of it. */
static s64 log2_fixed(u64 x)
{
	s64 whole = 63 - __builtin_clzll(x | 1), part;

	part = whole > 16 ? (s64)(x >> (whole - 16)) : (s64)(x << (16 - whole));
	part -= 1 << 16;
	return (whole << 16) + part + (part * ((1 << 16) - part) >> 16) * 22 / 64;
}

/* By how much all do more than before, each by its share; log2, 2^-16. */
static s64 product(const struct dt_dev *dev)
{
	const struct dt_serial *serial = &dev->serial;
	const struct dt_serial_look *look;
	s64 sum = 0, shares = 0, share;
	u64 rate;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++) {
		rate = ios_rate(dev, look);
		/* Who had some before, and asks for nothing now, says nothing. */
		if (!look->rate || (!rate && !dt_entity_busy(look->grp->own)))
			continue;
		/* None in half a second: half of one. */
		rate = dt_max(rate, 1 << 16);
		share = (s64)look->share;
		shares += share;
		sum += share * (log2_fixed(rate) - log2_fixed(look->rate)) / 65536;
	}
	return shares ? sum * 65536 / shares : 0;
}

/*
 * It waits for longer than what is due by its share and by what all that it asks for makes
 * of the line; where that is not known, by what one takes with nobody beside it, if that was
 * seen, or the least that it ever took.
 */
static bool is_late(const struct dt_serial_look *look, bool seen)
{
	u64 late, alone = look->quick_ns, line;

	if (!look->nr_late || !(look->quick_ns | look->line_ns) ||
	    (seen && !look->nr_alone && !look->line_ns))
		return false;
	if (seen && look->nr_alone)
		alone = dt_div(look->alone_ns, look->nr_alone);
	line = look->line_ns ? look->line_ns : alone;
	/* By what it did it has about its share. */
	if (look->line_part * (LATE_PART + 1) > look->share * LATE_PART)
		return false;
	late = dt_div(look->late_ns, look->nr_late) * look->share >> 16;
	alone = dt_max(alone, dt_div(line * look->asked, look->nr_late));
	return late > alone + alone / LATE_PART;
}

static u64 mean_gap(const struct dt_serial_look *look, bool after)
{
	u64 ns = after ? look->after_ns : look->before_ns;
	u32 nr = after ? look->nr_after : look->nr_before;

	return nr < WATCH_EACH ? 0 : dt_max(dt_div(ns, nr), 1);
}

/* How unlike they are by that, the greatest by the least; 2^-8. */
static u64 gaps_apart(const struct dt_serial *serial, bool after)
{
	const struct dt_serial_look *look;
	u64 least = ~0ull, most = 0, gap;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++) {
		gap = mean_gap(look, after);
		if (!gap)
			continue;
		least = dt_min(least, gap);
		most = dt_max(most, gap);
	}
	return most ? dt_div(most << 8, least) : 0;
}

/*
 * What one of each group's makes the line longer. The time between two is that of the one
 * or of the other, by whatever device: as the other's it makes unlike ones alike. All that
 * was done while it was looked at took all of the time.
 */
static void derive_lines(const struct dt_dev *dev, struct dt_serial *serial)
{
	bool after = gaps_apart(serial, true) > gaps_apart(serial, false);
	struct dt_serial_look *look;
	u64 sum = 0;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++)
		sum += (ios_rate(dev, look) >> 8) * mean_gap(look, after) >> 8;
	sum = dt_max(sum, 16);
	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++) {
		look->line_ns = dt_div(mean_gap(look, after) * DT_NSEC_PER_SEC, sum);
		look->line_part = dt_div((ios_rate(dev, look) >> 4) *
					 mean_gap(look, after), sum >> 4);
	}
}

static bool anybody_is_late(const struct dt_serial *serial, bool seen)
{
	const struct dt_serial_look *look;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++)
		if (is_late(look, seen))
			return true;
	return false;
}

/* ---- phases ---- */

/* Who commits is looked after by commit.c, which there is not with turns. */
static bool anybody_commits(const struct dt_dev *dev)
{
	return dt_commits_watched(dev) || dt_committed_lately(dev);
}

static bool may_look(const struct dt_dev *dev)
{
	return dev->nr_active > 1 && dev->nr_active <= DT_SERIAL_GROUPS &&
	       dev->nr_inflight >= BESIDE && !dev->tun.depth &&
	       dev->tun.idle_ns && dev->engine == DT_ENGINE_AUTO &&
	       !anybody_commits(dev) && !dev->fault &&
	       !dt_before(dev->clock_ns, dev->serial.next_ns);
}

static void begin_look(struct dt_dev *dev)
{
	struct dt_serial *serial = &dev->serial;
	const struct dt_list *pos;

	serial->nr_looks = 0;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		look_of(dev, dt_active_group(pos));
	enter_serial(dev, DT_SERIAL_LOOK);
}

/* None is under way. */
static void begin_batches(struct dt_serial *serial)
{
	struct dt_serial_look *look;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++)
		look->batch = 0;
	serial->batch_ns = 0;
	serial->nr_batch = 0;
}

static void begin_watch(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_serial *serial = &dev->serial;
	struct dt_serial_look *look;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++) {
		look->before_ns = 0;
		look->after_ns = 0;
		look->nr_before = 0;
		look->nr_after = 0;
		look->alone_ns = 0;
		look->nr_alone = 0;
		look->wrote = false;
	}
	begin_batches(serial);
	serial->nr = 0;
	serial->nr_reads = 0;
	serial->newest_ns = item->dispatch_ns;
	serial->early_ns = 0;
	serial->stays_ns = 0;
	enter_serial(dev, DT_SERIAL_WATCH);
}

/* There have to be reads, and where there are writes these as well. */
static bool enough_of_both(const struct dt_dev *dev)
{
	const struct dt_serial *serial = &dev->serial;

	return serial->nr_reads >= WATCH_READS &&
	       (!dev->spells.both || serial->nr - serial->nr_reads >= WATCH_WRITES);
}

/*
 * They were tried, as spells: of two groups, and both do better at once, as writes are
 * done by a cache.
 */
static bool turns_failed(const struct dt_dev *dev)
{
	return dev->nr_active == 2 && dev->spells.both && dev->spells.failed &&
	       dev->quick[DT_WRITE].ns && dev->quick[DT_WRITE].ns < CACHE_NS &&
	       CACHE_TIMES * dev->quick[DT_WRITE].ns < dev->quick[DT_READ].ns;
}

/* It is not serial, or not worth it: readers and writers go on by turns. */
static void spell_again(struct dt_dev *dev)
{
	if (dev->serial.spelled && dt_spells_resume(dev)) {
		dt_written_end(dev);
		dt_depth_pause(dev);
		dev->light.on = true;
	}
	dev->serial.spelled = false;
}

/* They were good already when what all do was looked at. */
static bool spells_settled(const struct dt_dev *dev)
{
	const struct dt_spells *spells = &dev->spells;
	const struct dt_serial *serial = &dev->serial;

	return spells->good && serial->nr_looks &&
	       dt_before(spells->good_ns + SETTLED_NS, serial->looks[0].from_ns);
}

static void end_watch(struct dt_dev *dev, u64 stay_ns)
{
	struct dt_serial *serial = &dev->serial;
	struct dt_serial_look *look;
	u64 mean_ns = dt_div(serial->stays_ns, serial->nr);

	if (!serial->known)
		derive_lines(dev, serial);
	if (ORDER_PART * serial->early_ns > serial->stays_ns ||
	    mean_ns < SERIAL_STAY_NS || serial->nr_reads < WATCH_READS ||
	    (!serial->known && (serial->nr >= WATCH_LONGEST || turns_failed(dev) ||
				!anybody_is_late(serial, false))) ||
	    /* It is not known yet whether those of readers and of writers are good. */
	    (dev->spells.phase && !dev->spells.good)) {
		look_again(dev, LATER_NS);
		spell_again(dev);
		return;
	}
	/* Else it is watched until that can be. */
	if (dev->nr_active < 2 || dev->nr_inflight < BESIDE || dev->solo.grp ||
	    dev->light.probing)
		return;
	/* They are for devices that are not serial. */
	serial->unsettled = dev->spells.phase && !spells_settled(dev);
	serial->spelled |= dev->spells.phase;
	dt_spells_reset(dev);
	if (!dt_wide_may_thin(dev))
		return;
	if (!serial->known)
		for (look = serial->looks;
		     look < serial->looks + serial->nr_looks; look++)
			look->rate = ios_rate(dev, look);
	serial->stay_ns = mean_ns;
	enter_serial(dev, DT_SERIAL_ALONE);
	dt_wide_alone(dev, ALONE_STAYS * dt_max(mean_ns, stay_ns));
}

/* How long it has waited, and beside how many of its group's own. */
static void note_late(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_group *grp = item->queue->grp;
	struct dt_serial_look *look = look_of(dev, grp);
	u64 quick_ns;

	if (!look)
		return;
	look->late_ns += dev->clock_ns - item->insert_ns;
	look->asked += dt_outstanding_of(grp) + 1;
	/* What probes say of it is with others' in the device, where all are in one line. */
	quick_ns = dt_quickest(dev, item, grp->lat_min_ns);
	if (quick_ns && (!look->quick_ns || quick_ns < look->quick_ns))
		look->quick_ns = quick_ns;
	look->nr_late++;
	look->share = dt_min(look->share, dt_share_of(grp));
}

/* Those that were done at once have the time before them and after them in common. */
static void end_batch(struct dt_serial *serial, u64 gap_ns)
{
	struct dt_serial_look *look;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++) {
		if (!look->batch)
			continue;
		if (serial->batch_ns) {
			look->before_ns += dt_div(look->batch * serial->batch_ns,
						  serial->nr_batch);
			look->nr_before += look->batch;
		}
		look->after_ns += dt_div(look->batch * gap_ns, serial->nr_batch);
		look->nr_after += look->batch;
		look->batch = 0;
	}
	serial->batch_ns = gap_ns;
	serial->nr_batch = 0;
}

static void note_apart(struct dt_dev *dev, struct dt_group *grp)
{
	struct dt_serial *serial = &dev->serial;
	struct dt_serial_look *look = look_of(dev, grp);
	u64 gap_ns = dev->clock_ns - serial->done_ns;

	/* It was busy all the time, but it may have stood still. */
	gap_ns = dt_min(gap_ns, dt_min(dt_div(serial->stays_ns, serial->nr),
				       GAP_MOST_NS));
	if (serial->nr_batch && gap_ns && BATCH_PART * gap_ns >= serial->batch_ns)
		end_batch(serial, gap_ns);
	serial->done_ns = dev->clock_ns;
	serial->nr_batch++;
	if (look)
		look->batch++;
	/* The next one is not in line behind it. */
	if (!dev->nr_inflight)
		begin_batches(serial);
}

/* Of each that has anything in the device some were done. */
static bool all_watched(const struct dt_serial *serial)
{
	const struct dt_serial_look *look;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++)
		if (look->grp->own->nr_inflight && look->nr_after < WATCH_EACH)
			return false;
	return true;
}

static void watch_order(struct dt_dev *dev, const struct dt_item *item, u64 stay_ns)
{
	struct dt_serial *serial = &dev->serial;

	/* Otherwise it is some of them alone, of which one may be as the other. */
	if (dev->spells.phase &&
	    (dev->spells.phase != DT_SPELLS_WRITE || dev->spells.quota.own)) {
		begin_batches(serial);
		return;
	}
	if (dt_before(item->dispatch_ns, serial->newest_ns))
		serial->early_ns += serial->newest_ns - item->dispatch_ns;
	else
		serial->newest_ns = item->dispatch_ns;
	serial->stays_ns += stay_ns;
	serial->nr++;
	note_apart(dev, item->queue->grp);
	serial->nr_reads += item->dir == DT_READ;
	note_late(dev, item);
	if (serial->nr >= WATCH_ITEMS &&
	    ((enough_of_both(dev) && all_watched(serial)) ||
	     serial->nr >= WATCH_MOST))
		end_watch(dev, stay_ns);
}

static void note_single(struct dt_dev *dev, const struct dt_item *item, u64 stay_ns)
{
	const struct dt_thin *thin = &dev->wide.thin;
	struct dt_serial_look *look = look_of(dev, item->queue->grp);

	if (look && thin->quiet_ns &&
	    !dt_before(item->dispatch_ns, thin->quiet_ns)) {
		look->alone_ns += stay_ns;
		look->nr_alone++;
		look->wrote |= item->dir == DT_WRITE;
	}
}

void dt_serial_note(struct dt_dev *dev, const struct dt_item *item, u64 stay_ns)
{
	struct dt_serial *serial = &dev->serial;

	if (serial->phase == DT_SERIAL_ALONE) {
		note_single(dev, item, stay_ns);
		return;
	}
	if (serial->phase == DT_SERIAL_WATCH) {
		watch_order(dev, item, stay_ns);
		return;
	}
	if (!serial->stay_ns)
		serial->stay_ns = stay_ns;
	serial->stay_ns += (s64)(stay_ns - serial->stay_ns) >> SERIAL_SHIFT;
	if (serial->stay_ns < SERIAL_STAY_NS) {
		serial->phase = DT_SERIAL_IDLE;
		serial->known = false;
	} else if (serial->known) {
		begin_watch(dev, item);
	} else if (serial->phase == DT_SERIAL_LOOK) {
		note_late(dev, item);
		if (dev->clock_ns - serial->since_ns >=
		    dt_max(LOOK_FOR_NS, dt_min(LOOK_STAYS * serial->stay_ns,
					       SERIAL_LOOK_MOST_NS)))
			begin_watch(dev, item);
	} else if (may_look(dev)) {
		begin_look(dev);
	}
}

/* What was charged before was by other rules. */
static void level_all(struct dt_dev *dev)
{
	const struct dt_list *pos;

	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		dt_path_lead(dev, dt_active_group(pos)->own, LEAD_NS);
}

static void go_on(struct dt_dev *dev)
{
	struct dt_serial *serial = &dev->serial;

	serial->lasts_ns = dt_min(dt_max(LASTS_FACTOR * serial->lasts_ns, LASTS_NS),
				  LASTS_MOST_NS);
	serial->until_ns = dev->clock_ns + serial->lasts_ns;
	serial->pause_ns = 0;
	serial->spelled = false;
	enter_serial(dev, DT_SERIAL_TURNS);
}

static void begin_trial(struct dt_dev *dev)
{
	struct dt_serial *serial = &dev->serial;
	u64 for_ns = dt_min(serial->stay_ns, SERIAL_LOOK_MOST_NS);
	struct dt_serial_look *look;

	for (look = serial->looks; look < serial->looks + serial->nr_looks;
	     look++) {
		look->ios = look->grp->stats.ios[DT_READ] +
			    look->grp->stats.ios[DT_WRITE];
		look->from_ns = dev->clock_ns;
	}
	/* What is in there now was sent without them. */
	if (serial->nr_trials++)
		for_ns = dt_max(LOOK_FOR_NS, dt_min(TRIAL_STAYS * serial->stay_ns,
						    SERIAL_LOOK_MOST_NS));
	serial->until_ns = dev->clock_ns + for_ns;
	enter_serial(dev, DT_SERIAL_TRIAL);
}

/*
 * By how many times one of them takes longer alone than it does in the line: so many are
 * served side by side, 2^-16. Each is compared with its own group's, as one that asks for
 * large ones may have had most of the few that were alone. 0: who knows.
 */
static u64 side_by_side_of(const struct dt_serial *serial)
{
	const struct dt_serial_look *look;
	u64 alone_ns = 0, before_ns = 0, after_ns = 0, line_ns, single_ns;
	bool cached = false;

	for (look = serial->looks; look < serial->looks + serial->nr_looks; look++) {
		if (!look->nr_alone || look->nr_before < WATCH_EACH ||
		    look->nr_after < WATCH_EACH)
			continue;
		/* It never takes less than it makes the line longer, but for what a cache takes. */
		line_ns = dt_max(mean_gap(look, false), mean_gap(look, true));
		single_ns = dt_div(look->alone_ns, look->nr_alone);
		if (CACHED * single_ns < line_ns ||
		    (look->wrote && single_ns < CACHE_NS)) {
			cached = true;
			continue;
		}
		alone_ns += look->alone_ns;
		before_ns += dt_div(look->nr_alone * look->before_ns, look->nr_before);
		after_ns += dt_div(look->nr_alone * look->after_ns, look->nr_after);
	}
	if (!alone_ns && cached)
		return SIDE_MOST + 1;
	line_ns = dt_max(before_ns, after_ns);
	return alone_ns ? dt_div(alone_ns << 16, dt_max(line_ns, 1)) : 0;
}

void dt_serial_judge(struct dt_dev *dev)
{
	struct dt_serial *serial = &dev->serial;
	u64 side = side_by_side_of(serial);

	/* Those that were alone had none in the line just before, and all are taken together. */
	if (!side)
		side = dev->wide.thin.side;
	if (!side || side > (serial->unsettled ? SIDE_CLEAR : SIDE_MOST) ||
	    (!serial->known && !anybody_is_late(serial, true))) {
		look_later(dev);
		spell_again(dev);
		return;
	}
	serial->prev = NULL;
	serial->nr_trials = 0;
	serial->usual = dev->wide.usual;
	serial->enough = dev->wide.thin.enough;
	serial->quick[DT_READ] = dev->quick[DT_READ];
	serial->quick[DT_WRITE] = dev->quick[DT_WRITE];
	if (serial->known)
		go_on(dev);
	else
		begin_trial(dev);
	level_all(dev);
	dt_dev_turns(dev);
}

void dt_serial_tick(struct dt_dev *dev)
{
	struct dt_serial *serial = &dev->serial;

	if (dt_before(dev->clock_ns, serial->until_ns))
		return;
	if (serial->phase == DT_SERIAL_TURNS) {
		serial->known = true;
		serial->stay_ns = 0;
		enter_serial(dev, DT_SERIAL_IDLE);
		dt_dev_turns(dev);
		dt_wide_few(dev, KNOWN_DEPTH);
	} else if (serial->nr_trials == 1) {
		begin_trial(dev);
	} else if (product(dev) > SERIAL_WORTH) {
		if (serial->nr_trials <= TRIALS)
			begin_trial(dev);
		else
			go_on(dev);
	} else {
		look_later(dev);
		dt_dev_turns(dev);
		dt_wide_restore(dev, serial->usual, serial->enough);
		dev->quick[DT_READ] = serial->quick[DT_READ];
		dev->quick[DT_WRITE] = serial->quick[DT_WRITE];
		spell_again(dev);
	}
}

void dt_serial_reset(struct dt_dev *dev)
{
	dev->serial = (struct dt_serial) { .next_ns = dev->clock_ns };
}

void dt_serial_forget_group(struct dt_dev *dev, const struct dt_group *grp)
{
	struct dt_serial *serial = &dev->serial;
	u32 i;

	for (i = 0; i < serial->nr_looks; i++)
		if (serial->looks[i].grp == grp)
			serial->looks[i] = serial->looks[--serial->nr_looks];
}

/* ---- charges ---- */

static u64 distance(u64 a, u64 b)
{
	return a > b ? a - b : b - a;
}

/* Whose the time is like, where the two are unlike. */
static void vote(struct dt_serial *serial, const struct dt_item *item, u64 time_ns)
{
	u64 before = serial->prev->cost_ns[serial->prev_dir];
	u64 own = item->queue->cost_ns[item->dir];

	if (!before || !own ||
	    (before < UNLIKE * own && own < UNLIKE * before))
		return;
	if (distance(time_ns, before) < distance(time_ns, own))
		serial->after += serial->after < VOTES_MOST;
	else
		serial->after -= serial->after > -VOTES_MOST;
}

u64 dt_serial_charge(struct dt_dev *dev, const struct dt_item *item, u64 time_ns)
{
	struct dt_serial *serial = &dev->serial;
	struct dt_queue *prev = serial->prev;
	enum dt_dir dir = serial->prev_dir;

	serial->passed = prev && prev->grp != item->queue->grp;
	if (serial->passed)
		vote(serial, item, time_ns);
	serial->prev = item->queue;
	serial->prev_dir = item->dir;
	/* A turn is no shorter than a request. */
	dev->slice_ns -= (dev->slice_ns - DT_SLICE_SERIAL_NS) / SLICE_FORGET;
	if (!serial->passed && time_ns > dev->slice_ns)
		dev->slice_ns = dt_min(time_ns, SLICE_MOST_NS);
	if (!serial->passed || serial->after <= 0)
		return time_ns;
	time_ns = dt_min(time_ns, DT_CHARGE_MAX_NS);
	dt_path_charge(dev, &prev->ent, (s64)time_ns);
	prev->grp->stats.time_ns[dir] += time_ns;
	dev->charged_ns += time_ns;
	return 0;
}

void dt_serial_forget(struct dt_dev *dev, const struct dt_queue *queue)
{
	if (dev->serial.prev == queue)
		dev->serial.prev = NULL;
}
