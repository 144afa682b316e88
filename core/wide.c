// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Wide: more in flight than usual; or less.
 *
 * DEPTH_AUTO requests keep any single device busy, but the fastest do a bit more
 * with all of their slots: the more there are in flight, the fewer of a drive's
 * parts have none. What is in the device is out of reach, though. So there is
 * more in there only while nobody would mind:
 *
 * - all that was asked for in the last half of a second is alike, so that no costs
 *   are to be learned;
 * - nobody asks for little, or has come in this time;
 * - as many wait here when it begins, for the order to be ours;
 * - and it is all done within WIDE_NS, the longest that who comes next has to
 *   wait for it.
 *
 * It ends with the first request that is of another size, or light, and with the
 * first window in which a group has come, anything else has changed, or all takes
 * twice as long. If it has not lasted for long the next begins when all has been
 * alike for twice as long as before this one.
 *
 * Less is usual where large requests are written and nobody reads. No drive does
 * more with 32 MB of writes in it than with half of that, and with as many as
 * DEPTH_AUTO of 128 KB all that is to be found out takes twice as long: a window
 * of cost.c's is twice what is in flight. So from one of the first that somebody
 * has done who asks for more than LARGE_SECTORS there are no more requests in flight
 * than make so much of the largest. Reads beside writes need all slots, as each
 * waits for another part of the drive.
 *
 * Less is enough where there is one queue for all. A volume behind a network lets
 * requests pass in order, at a rate; what is in there beyond what keeps it busy only
 * makes the next one wait, and with 32 of 1 MB in it a small read takes a quarter of a
 * second for what alone takes half a millisecond. Nor is anything learned there, as the
 * device never seems full. So where several in a row have stayed for STAY_LONG_NS, and
 * none for much less than the mean, no more are in flight than are done within
 * STAY_NS, or in STAY_LEAST times the least that a request takes, whatever is more. Where
 * there are parts that work side by side some requests are lucky in theirs, and the
 * depth stays as it is. It is looked at by some requests' time in the device, while
 * nobody is held back (depth.c), and comes back in the same way.
 *
 * Where large requests fill a drive all of them stay for long as well. But with fewer in
 * flight none does, and all are let in again. Where that is so within a second, and the
 * groups are the same, it is not believed again for a quarter of a second, half of one,
 * and so on.
 *
 * What it is worth: on a volume of 3000 I/Os and 125 MB a second, 4 KB reads by 2 with
 * five times the weight of 1 MB reads by 32 did 8 a second, and do 790. Two groups of
 * 4 KB by 64, which all fit into it, had half of it each whatever their weights, and
 * have their shares. Over 80 mixes of requests made at random who was served worst had
 * 0.28 of what was due to it, the geometric mean, and has 0.44.
 *
 * Flash with a cache is no such device, though all wait there for the same garbage to be
 * collected: its writes could be done in far less than one takes on average (is_cached).
 * Where some read and others write, and writes are done sooner than reads of that size by
 * the least that either took, all is let in (knows_cache). Taken for a line, a drive four times
 * slower than a server's had 11 of 384 in it, with most of its parts idle: 64 reads of 64 KB
 * beside 256 writes of 128 KB had 0.51 of what they do alone and the writes 0.13, and now
 * 0.64 and 0.73. A throttle lets the first request pass, whatever it is, so that a
 * large one seems to take no longer than a small one; that is told from a cache.
 *
 * Where none was ever seen to be quick it is looked at how many the device works at
 * side by side (thin.c), and that is enough.
 *
 * Rejected: without that (reads and large writes by 256 on a server's drive had 0.42 and
 * 0.34 of what they do alone for 0.45 of both), the mean alone, and half of STAY_LEAST
 * (0.50, but flash 20 times slower loses a quarter of what it does for reads and writes
 * together). And to look at what all do with less and then with all, a second each, instead
 * of telling a cache: what is looked at is lost, again and again (docs/DESIGN.md).
 */
#include "cost.h"
#include "depth.h"
#include "entity.h"
#include "serial.h"
#include "thin.h"
#include "wide.h"
#include "written.h"

/* What is in flight is done in so long. */
#define WIDE_NS			DT_NSEC_PER_MSEC
#define WIDE_MOST		1024
/* Not for less than an eighth more. */
#define WIDE_WORTH		8
/* All is alike for so long before; longer if the last lasted less than ten times that. */
#define WIDE_AFTER_NS		(500 * DT_NSEC_PER_MSEC)
#define WIDE_AFTER_MOST_NS	(64 * DT_NSEC_PER_SEC)
#define WIDE_LASTS		10

/* So much of large writes, 16 MB, but no fewer than so many. */
#define LARGE_SECTORS		32768
#define LARGE_LEAST		32
/* Until there was none, or were reads, for so long; of so many groups at most. */
#define LARGE_NS		DT_NSEC_PER_SEC
#define LARGE_GROUPS		16

/* So many in a row of those that are looked at stayed for so long. */
#define STAY_ROW		8
#define STAY_LONG_NS		(24 * DT_NSEC_PER_MSEC)
/* Where a write's least is less than this part of what one takes there is a cache; */
#define CACHED_PART		2
/* so plainly that it is remembered for so long. */
#define PLAIN_PART		3
#define PLAIN_NS		(10 * DT_NSEC_PER_SEC)
/* A read that took no more than this, and so much for each sector, waited in no line. */
#define QUICK_NS		(750 * DT_NSEC_PER_USEC)
#define QUICK_SECTOR_NS		DT_NSEC_PER_USEC
/* A sector of a large write takes this at least, if not only the first one passes. */
#define PASS_SECTOR_NS		(DT_NSEC_PER_USEC / 8)
/* What is in flight is done in this, or so many times the least, whatever is more. */
#define STAY_NS			(8 * DT_NSEC_PER_MSEC)
#define STAY_LEAST		12
/* Where no more of large writes is in flight than it needs, so many times as long. */
#define STAY_LARGE		8
#define ENOUGH_LEAST		4
/* Who asks for little is judged by no more than this where it is known. */
#define LITTLE_ENOUGH		32
/* That of the last so many is the mean; 2^-STAY_SHIFT. */
#define STAY_SHIFT		3
/* Less that lasts for no longer than this was wrong; no less for so long. */
#define LESS_LASTS_NS		DT_NSEC_PER_SEC
#define DOUBT_NS		(250 * DT_NSEC_PER_MSEC)
#define DOUBT_MOST_NS		(8 * DT_NSEC_PER_SEC)
/* Between two changes: this, and what so many stays take. */
#define CHANGE_NS		(32 * DT_NSEC_PER_MSEC)
#define CHANGE_STAYS		4

void dt_wide_init(struct dt_dev *dev, u32 depth)
{
	dev->depth = depth;
	dev->wide = (struct dt_wide) {
		.full = depth,
		.usual = depth,
		.little = depth,
		.large_ns = dev->clock_ns,
		.reads_ns = dev->clock_ns,
		.calm_ns = dev->clock_ns,
		.after_ns = WIDE_AFTER_NS,
	};
}

/* All that there may be stays all. */
static u32 fitted(u32 limit, u32 then, u32 depth)
{
	return limit == then ? depth : dt_min(limit, depth);
}

static void set_depth(struct dt_dev *dev, u32 depth)
{
	struct dt_light *light = &dev->light;
	u32 then = dev->depth;

	/* What others had with more in flight they will not have again. */
	dt_fit_forget_free(dev);
	dev->depth = depth;
	dev->limit = fitted(dev->limit, then, depth);
	light->limit = fitted(light->limit, then, depth);
	light->limit_then = fitted(light->limit_then, then, depth);
}

/* From now on it is usual that so many are in flight. */
static void set_usual(struct dt_dev *dev, u32 usual)
{
	struct dt_wide *wide = &dev->wide;

	wide->usual = usual;
	wide->next_ns = dev->clock_ns + CHANGE_NS + CHANGE_STAYS * wide->stay_ns;
	set_depth(dev, usual);
}

/* What was known of how long they stay is of another depth. */
static void begin_stays(struct dt_dev *dev, u32 usual)
{
	dev->wide.stay_ns = 0;
	dev->wide.room = 0;
	dev->wide.little = dev->wide.full;
	set_usual(dev, usual);
}

void dt_wide_end(struct dt_dev *dev)
{
	struct dt_wide *wide = &dev->wide;

	if (dev->clock_ns - wide->from_ns < WIDE_LASTS * wide->after_ns)
		wide->after_ns = dt_min(2 * wide->after_ns, WIDE_AFTER_MOST_NS);
	else
		wide->after_ns = WIDE_AFTER_NS;
	wide->calm_ns = dev->clock_ns;
	set_depth(dev, wide->usual);
}

/* Nobody who is active reads, as far as one can see. */
static bool all_write(const struct dt_dev *dev)
{
	const struct dt_list *pos;

	if (dev->fit.load.nr[DT_READ] ||
	    dt_before(dev->clock_ns, dev->wide.reads_ns) ||
	    dev->nr_active > LARGE_GROUPS)
		return false;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		if (!dt_active_group(pos)->stats.ios[DT_WRITE])
			return false;
	return true;
}

/* One of so many as are more than LARGE_SECTORS together. */
static bool is_large(const struct dt_item *item)
{
	const struct dt_entity *own = item->queue->grp->own;
	u64 asked = own->nr_queued + own->nr_inflight;

	return item->dir == DT_WRITE && asked * item->sectors > LARGE_SECTORS;
}

/* How long requests stay is to be seen anew. */
static void forget_stays(struct dt_wide *wide)
{
	wide->nr_long = 0;
	wide->stay_ns = 0;
	wide->room = 0;
}

static u64 mean_stay(u64 mean, u64 sample)
{
	return mean ? mean - (mean >> STAY_SHIFT) + (sample >> STAY_SHIFT) :
		      sample;
}

/*
 * A write that is none of the small ones, and could be done in far less than the device
 * takes for one: it is not written then, and others wait for what is.
 */
static bool is_cached(const struct dt_dev *dev, const struct dt_item *item,
		      u64 stay_ns)
{
	return item->dir == DT_WRITE && item->sectors >= dev->fit.most &&
	       CACHED_PART * item->queue->grp->lat_min_ns *
	       (dev->nr_inflight + 1) < stay_ns;
}

/*
 * The same so plainly that it is remembered, by the least that a write took which was no
 * smaller. While the device is full: of those that leave it while nobody is let in it is not
 * known how many there were.
 */
static void note_cached(struct dt_dev *dev, const struct dt_item *item)
{
	const struct dt_quick *quick = &dev->quick[DT_WRITE];
	u32 nr = dev->nr_inflight + 1;

	if (item->dir == DT_WRITE && dev->fit.most &&
	    item->sectors >= dev->fit.most && 2 * nr >= dev->depth &&
	    quick->ns && item->sectors <= quick->sectors &&
	    PLAIN_PART * quick->ns * nr < dev->clock_ns - item->dispatch_ns)
		dev->wide.cached_ns = dev->clock_ns + PLAIN_NS;
}

/*
 * Whether a cache takes writes, so that reads do not wait in one line with them, but for
 * what the drive does with those that are done. By the least that either took; who reads and
 * never was quick tells nothing.
 */
static bool knows_cache(const struct dt_dev *dev)
{
	const struct dt_quick *reads = &dev->quick[DT_READ];
	const struct dt_quick *writes = &dev->quick[DT_WRITE];
	bool plain = dt_before(dev->clock_ns, dev->wide.cached_ns);
	u64 more;

	if (!dev->spells.both || !reads->ns || !writes->ns ||
	    reads->ns > QUICK_NS + reads->sectors * QUICK_SECTOR_NS)
		return false;
	if (writes->sectors < 2 * reads->sectors) {
		more = reads->sectors - dt_min(reads->sectors, writes->sectors);
		return CACHED_PART * writes->ns + more * QUICK_SECTOR_NS <
		       reads->ns ||
		       (plain && !more && 4 * writes->ns < 3 * reads->ns);
	}
	more = writes->sectors - reads->sectors;
	return 8 * writes->ns < 7 * reads->ns ||
	       (plain && writes->ns > reads->ns + more * PASS_SECTOR_NS);
}

/* Some read and others write: whether it is not in one line that they wait. */
static noinline bool no_line(struct dt_dev *dev, const struct dt_item *item)
{
	note_cached(dev, item);
	return knows_cache(dev);
}

/*
 * Whether with this one several in a row were there for long, and all for about as long.
 * How long is a mean of those in a row, while nothing else is known.
 */
static bool note_stay(struct dt_dev *dev, const struct dt_item *item,
		      u64 stay_ns)
{
	struct dt_wide *wide = &dev->wide;

	if (4 * stay_ns > 3 * wide->stay_ns && !is_cached(dev, item, stay_ns))
		wide->nr_long++;
	else
		wide->nr_long = 0;
	return wide->nr_long >= STAY_ROW;
}

/* All is as it was before, unless something follows from what was seen. */
static void end_alone(struct dt_dev *dev)
{
	struct dt_wide *wide = &dev->wide;

	wide->thin.enough = wide->enough_then;
	set_usual(dev, wide->usual_then);
	wide->little = wide->little_then;
	dev->light.limit = dt_min(wide->limit, dev->depth);
	dev->light.limit_then = dt_min(wide->limit_then, dev->depth);
	dt_depth_resume(dev);
	dt_serial_judge(dev);
}

void dt_wide_thin(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_wide *wide = &dev->wide;

	if (!dt_thin_note(dev, item))
		return;
	if (wide->thin.few < DT_THIN_NR)
		end_alone(dev);
	else
		begin_stays(dev, wide->thin.enough ? wide->thin.enough :
						     wide->full);
}

static void thin_out(struct dt_dev *dev, u32 few, u64 stay_ns)
{
	struct dt_wide *wide = &dev->wide;

	dt_thin_begin(dev, few, stay_ns);
	/* Then nobody asks for so little that it is let in beyond that. */
	wide->little = few;
	set_usual(dev, few);
}

bool dt_wide_may_thin(const struct dt_dev *dev)
{
	return dev->nr_active > 1 && !dev->wide.thin.on && !dev->solo.grp &&
	       !dev->light.probing && !dev->spells.phase;
}

void dt_wide_few(struct dt_dev *dev, u32 nr)
{
	set_usual(dev, dt_min(nr, dev->wide.full));
}

void dt_wide_restore(struct dt_dev *dev, u32 usual, u32 enough)
{
	dev->wide.thin.enough = enough;
	set_usual(dev, dt_min(usual, dev->wide.full));
}

void dt_wide_alone(struct dt_dev *dev, u64 stay_ns)
{
	if (dt_is_wide(dev))
		dt_wide_end(dev);
	dev->wide.usual_then = dev->wide.usual;
	dev->wide.little_then = dev->wide.little;
	dev->wide.enough_then = dev->wide.thin.enough;
	dev->wide.limit = dev->limit;
	dev->wide.limit_then = dev->light.limit_then;
	dt_depth_pause(dev);
	thin_out(dev, 1, stay_ns);
}

/*
 * Who is not known to be quicker leaves all in there, or next to that. With what the
 * largest of late is among few it is known.
 */
static bool thins_out(const struct dt_dev *dev, const struct dt_item *item,
		      u64 nr)
{
	return 4 * nr > 3ull * dev->nr_inflight && !dev->wide.thin.enough &&
	       item->sectors >= dev->fit.most && dt_thin_is_due(dev);
}

/*
 * So many in flight are enough, and no more than @most: less than all is for large
 * writes.
 */
static u32 enough(struct dt_dev *dev, const struct dt_item *item, u32 most)
{
	struct dt_wide *wide = &dev->wide;
	u64 stay_ns = dt_max(dev->clock_ns - item->dispatch_ns, 1);
	u64 may_ns = most < wide->full ? STAY_LARGE * STAY_NS : STAY_NS, nr;
	bool all;

	if (likely(stay_ns <= STAY_LONG_NS)) {
		wide->nr_long = 0;
		if (wide->usual == wide->full && !wide->thin.enough) {
			wide->stay_ns = 0;
			wide->room = 0;
			return most;
		}
	}
	/* Who was never alone has not seen how quick it can be, but another may have. */
	if (!wide->thin.enough)
		may_ns = dt_max(may_ns, STAY_LEAST *
				dt_quickest(dev, item,
					    item->queue->grp->lat_min_ns));
	wide->stay_ns = mean_stay(wide->stay_ns, stay_ns);
	wide->room = mean_stay(wide->room, (dev->nr_inflight + 1) * may_ns);
	all = stay_ns > STAY_LONG_NS && note_stay(dev, item, stay_ns);
	if (wide->usual == wide->full && !all && !wide->thin.enough)
		return most;
	nr = dt_max(dt_div(wide->room, wide->stay_ns),
		    dt_max(wide->thin.enough, ENOUGH_LEAST));
	if (wide->usual == wide->full && !wide->thin.enough &&
	    dt_before(dev->clock_ns, wide->doubt_ns))
		return most;
	if (dt_before(dev->clock_ns, wide->next_ns))
		return dt_min(wide->usual, most);
	if (all && most == wide->full && thins_out(dev, item, nr)) {
		thin_out(dev, DT_THIN_NR, wide->stay_ns);
		return wide->usual;
	}
	if (16 * nr > 15ull * wide->full)
		return most;
	/* As it is, if it is about that. */
	if (4 * nr > 3ull * wide->usual && 3 * nr < 4ull * wide->usual)
		nr = wide->usual;
	return (u32)dt_min(nr, most);
}

/*
 * All are let in again, as no request stays for long. The same groups as when they did:
 * they were too few, then, and it is no other load.
 */
static void doubt(struct dt_dev *dev)
{
	struct dt_wide *wide = &dev->wide;

	if (dev->nr_active < 2 || dev->nr_active != wide->nr_then)
		return;
	if (dev->clock_ns - wide->less_ns < LESS_LASTS_NS)
		wide->doubt_for_ns = dt_min(dt_max(2 * wide->doubt_for_ns,
						   DOUBT_NS), DOUBT_MOST_NS);
	else
		wide->doubt_for_ns = 0;
	wide->doubt_ns = dev->clock_ns + wide->doubt_for_ns;
}

void dt_wide_note(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_wide *wide = &dev->wide;
	u32 usual = wide->full;

	if (item->dir == DT_READ)
		wide->reads_ns = dev->clock_ns + LARGE_NS;
	/* Of a solo there is as much in flight as the device takes, all of one kind. */
	if (dev->tun.depth || dev->light.probing || dev->solo.grp ||
	    dev->spells.phase ||
	    dt_before(item->dispatch_ns, dev->solo.over_ns)) {
		/* Turns need all that there is: small ones do not wait for large ones. */
		if (dev->spells.phase && wide->usual != wide->full &&
		    (wide->thin.enough || knows_cache(dev)))
			begin_stays(dev, wide->full);
		return;
	}
	if (is_large(item) &&
	    (item->sectors >= wide->large ||
	     !dt_before(dev->clock_ns, wide->large_ns))) {
		wide->large = item->sectors;
		wide->large_ns = dev->clock_ns + LARGE_NS;
	}
	if (dt_before(dev->clock_ns, wide->large_ns) && all_write(dev))
		usual = dt_min(usual, dt_max(LARGE_SECTORS / wide->large,
					     LARGE_LEAST));
	if (dt_is_written(dev))
		usual = dt_min(usual, dev->written.few);
	wide->little = wide->thin.enough ? dt_min(usual, LITTLE_ENOUGH) : usual;
	/* While anybody is held back it is the limit that is looked after. */
	if (unlikely(dev->spells.both) && no_line(dev, item)) {
		forget_stays(wide);
		wide->little = usual;
	} else if (dev->limit < dev->depth || dev->light.freeing)
		usual = dt_min(usual, wide->usual);
	else
		usual = enough(dev, item, usual);
	if (usual == wide->usual)
		return;
	if (dt_is_wide(dev))
		dt_wide_end(dev);
	if (wide->usual == wide->full) {
		wide->nr_then = dev->nr_active;
		wide->less_ns = dev->clock_ns;
	}
	/* Another load needs more, and may need another number of them. */
	if (usual == wide->full) {
		wide->thin.enough = 0;
		doubt(dev);
	}
	set_usual(dev, usual);
}

/* What may be in flight while all are alike: half of what there is. */
static u32 widest(const struct dt_dev *dev, u64 items, u64 busy_ns)
{
	u64 half = (dev->nr_queued + dev->nr_inflight) / 2;
	u64 most = dt_min(dt_min(dev->depth_hw, half), WIDE_MOST);

	return (u32)dt_min(most, dt_div(items * WIDE_NS, busy_ns));
}

/* All are alike, nobody is light or has come, and enough waits to choose from. */
static bool is_calm(const struct dt_dev *dev)
{
	const struct dt_fit *fit = &dev->fit;

	return fit->alike && !fit->starved && !fit->limited && !dev->light.on &&
	       !dev->wide.woken && !dev->fault && !dt_is_written(dev) &&
	       dev->nr_queued >= dev->depth / 2;
}

void dt_wide_window(struct dt_dev *dev, u64 items, u64 busy_ns)
{
	struct dt_wide *wide = &dev->wide;
	u32 depth;

	if (!is_calm(dev)) {
		wide->woken = false;
		wide->calm_ns = dev->clock_ns;
		if (dt_is_wide(dev))
			dt_wide_end(dev);
		return;
	}
	if (dt_is_wide(dev)) {
		/* It takes far longer than it did: a cache has filled. */
		if (2 * items * WIDE_NS < dev->depth * busy_ns)
			dt_wide_end(dev);
		return;
	}
	depth = widest(dev, items, busy_ns);
	if (dev->tun.depth ||
	    dt_before(dev->clock_ns, wide->calm_ns + wide->after_ns) ||
	    depth < wide->usual + wide->usual / WIDE_WORTH)
		return;
	wide->from_ns = dev->clock_ns;
	dev->depth = depth;
	dev->limit = depth;
}
