// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Written: what writes take behind a cache that is full.
 *
 * A cache takes a write when there is room for it, and there is room when others are
 * written: so what is done now tells what somebody else's writes took, that came to the
 * cache a tenth of a second ago. Windows of 5 ms (cost.c) tell nothing then of what one
 * group's writes take and another's do not, nor does a group alone (solo.c) before what
 * others left behind is written. 16 KB by 128 beside 128 KB by 256, on the server's drive,
 * had 0.67 of what they do alone and the others 0.34, as they seemed to take 60 us each in
 * ten milliseconds of their own, and take 105.
 *
 * But where writes wait in one line the device is simple. It is busy, however few are in
 * flight, and all that it does in T is worth T,
 *
 *	sum of n * cost = T
 *
 * whoever is held back meanwhile. So while nobody reads, and several do whose writes are
 * not alike:
 *
 * - No more than a few are in flight, and the order is ours. Nobody is light, nobody is
 *   favoured (depth.c). Others wait for who is behind and has all in there, also for the
 *   moment that he needs to issue the next (lead.c): the device goes on with its cache.
 * - Costs are what T is worth in the last few spans, all at once. Of each the first half
 *   is left out: what was there before is written then. In one span each group is charged
 *   more than its costs and in the next one less, half of the groups the other way round
 *   (dither, in cost.c), or spans would be alike and tell nothing.
 * - What a request is charged does not follow the clock. What is done while a large one of
 *   another's is written comes in a burst, and what is done while small ones are hardly
 *   comes at all: by the time between two the one who writes little pays for nothing, has
 *   more for it, and pays for all a little later.
 *
 * It is so where writes are done in the order in which they were sent, and stay for much longer
 * than they ever did. Of that now and then each is watched for a window. Parts that
 * work side by side do small ones before large ones that were sent earlier.
 *
 * Where the least that writes ever took is more than what they take of the device it is
 * what is sent that keeps it busy: the interface of a SATA drive. It is as simple, and as
 * there is next to nothing in between, the first spans may be short. But it stands still
 * with nothing in flight, and who thinks between two bursts is better served by depth.c.
 *
 * It takes a second until all is known where the cache holds a tenth of one; until then
 * costs are a guess, and some are worse off than they were without all this. Spans that do not agree become longer. Three sizes are not told
 * apart by two costs: 4 KB by 16, 128 KB by 8 and 512 KB by 64 have 0.42, 0.34 and 0.24 of what each
 * does alone.
 *
 * What it is worth (docs/DESIGN.md has more): of 21 pairs of writers, 4 KB to 1 MB by 8 to
 * 256 at random, on the server's drive, who is worse off has 0.480 of what it does alone, the
 * geometric mean, for 0.387, and in the worst 0.45, for 0.19.
 *
 * Rejected: the scale of charges by short windows (with few in flight it goes up and down
 * with bursts: 0.44 of these pairs); each light one beyond the few (8 of 4 KB beside 512 KB
 * had 0.08); the first costs from what each does alone (128 KB and 4 KB by 8, after half a second,
 * 1.3 and 3.7 times slower than alone, where it were 2.2 and 2.0).
 */
#include "cost.h"
#include "depth.h"
#include "pace.h"
#include "wide.h"
#include "written.h"

/* What was there before is written after so long, or so many stays; then it counts. */
#define WRITTEN_NS		(100 * DT_NSEC_PER_MSEC)
#define WRITTEN_STAYS		32
#define WRITTEN_FIRST_NS	(16 * DT_NSEC_PER_MSEC)
#define WRITTEN_LEAST_NS	(64 * DT_NSEC_PER_MSEC)
/* Writes wait for room in the order in which they came, but for such a part of their stay. */
#define ORDER_WRITTEN		8
/* So many are watched, and again after this. */
#define WATCHED			64
#define AGAIN_WRITTEN_NS	(250 * DT_NSEC_PER_MSEC)
#define AGAIN_MOST_NS		(4 * DT_NSEC_PER_SEC)
/* Of those that are looked at otherwise so few say nothing. */
#define LOOKED_AT		4
/* If it is not so for long; doubled each time. */
#define OFF_WRITTEN_NS		DT_NSEC_PER_SEC
#define OFF_MOST_WRITTEN_NS	(64 * DT_NSEC_PER_SEC)
/* Costs are not gone by after so long. */
#define OLD_WRITTEN_NS		(10 * DT_NSEC_PER_SEC)
#define THINKS_WRITTEN_NS	(10 * DT_NSEC_PER_SEC)
/* So often in a row it need not be seen that it does. */
#define GOES_ON_MOST		3
/* Who finds room does not stay for much longer than at the least. */
#define ROOM			2
/* Nobody reads if there was none in so long: of large ones few are done beside writes. */
#define READS_AGO_NS		DT_NSEC_PER_SEC
/* Nor if one of several has come just now. */
#define CALM_WRITTEN_NS		(50 * DT_NSEC_PER_MSEC)
/* If two of three are an eighth off they are twice as long, up to so many times. */
#define OFF_WRITTEN		3
#define LONGER_MOST		5
/* So few keep it full; or more, where it was found that they do not. */
#define FEW_WRITTEN		8
#define FEW_MOST		128

void dt_written_init(struct dt_dev *dev)
{
	const struct dt_written *then = &dev->written;

	/* What was charged and what was not goes on. */
	dev->written = (struct dt_written) {
		.serial = then->serial + 1,
		.ahead_ns = then->ahead_ns,
		.held_ns = then->held_ns,
		.few = FEW_WRITTEN,
		.calm_ns = dev->clock_ns,
		.off_ns = OFF_WRITTEN_NS,
		.again_ns = AGAIN_WRITTEN_NS,
	};
}

void dt_written_note(struct dt_dev *dev, const struct dt_item *item,
		     u64 latency)
{
	struct dt_written *written = &dev->written;

	if (item->dir != DT_WRITE)
		return;
	written->nr++;
	written->stays_ns += latency;
	written->least_ns += item->queue->grp->lat_min_ns;
	written->costs_ns += dt_cost(&dev->fit, DT_WRITE, item->sectors);
	if (dt_before(item->dispatch_ns, written->newest_ns))
		written->early_ns += written->newest_ns - item->dispatch_ns;
	else
		written->newest_ns = item->dispatch_ns;
}

bool dt_written_up(const struct dt_dev *dev, const struct dt_group *grp)
{
	bool up = (dev->written.serial & 1) == grp->odd;
	s64 most = (s64)(WRITTEN_NS << dev->written.longer);

	/* Who has as much, whatever it is charged, would owe more each time. */
	if (up ? grp->dither_ns > most : grp->dither_ns < -most)
		return !up;
	return up;
}

u64 dt_written_left(struct dt_dev *dev, u64 left_ns, u64 cost_ns)
{
	struct dt_written *written = &dev->written;
	u64 most = WRITTEN_NS << written->longer, ns;

	if (left_ns < cost_ns) {
		ns = dt_min(cost_ns - left_ns,
			    most - dt_min(written->ahead_ns, most));
		written->ahead_ns += ns;
		dev->excess_ns -= ns;
		return left_ns + ns;
	}
	ns = dt_min(left_ns - cost_ns, written->ahead_ns);
	written->ahead_ns -= ns;
	dev->excess_ns += ns;
	left_ns -= ns;
	return left_ns > most ? left_ns : cost_ns;
}

/*
 * Each of the first ones is short, so that something is known soon, where the cache holds
 * little of what the device does.
 */
static void next_written(struct dt_dev *dev, u64 stay_ns)
{
	struct dt_written *written = &dev->written;
	u64 ns = WRITTEN_FIRST_NS << written->nr_since / 2;

	if (written->goes_on)
		ns = dt_max(ns, WRITTEN_LEAST_NS);
	ns = dt_min(ns, WRITTEN_NS) << written->longer;
	ns = dt_max(ns, WRITTEN_STAYS * stay_ns);
	written->nr_since += written->nr_since < DT_WRITTEN_SETTLED;
	written->serial++;
	written->counts = false;
	written->from_ns = dev->clock_ns + ns;
	written->until_ns = written->from_ns + ns;
}

static void look_anew(struct dt_dev *dev)
{
	struct dt_written *written = &dev->written;

	written->nr = 0;
	written->stays_ns = 0;
	written->least_ns = 0;
	written->costs_ns = 0;
	written->early_ns = 0;
	written->newest_ns = 0;
}

/* Whether what was looked at since the last time waited, and for room, one after the other. */
static bool waited_for_room(struct dt_dev *dev)
{
	struct dt_written *written = &dev->written;
	bool waited;

	if (written->nr < LOOKED_AT)
		return true;
	waited = written->stays_ns >= ROOM * written->least_ns &&
		 ORDER_WRITTEN * written->early_ns <= written->stays_ns;
	/* It may be chance which of them were looked at. */
	if (8 * written->least_ns < 7 * written->costs_ns)
		written->goes_on = dt_min(written->goes_on + 2, GOES_ON_MOST);
	else
		written->goes_on -= !!written->goes_on;
	look_anew(dev);
	return waited;
}

static void let_in_again(struct dt_dev *dev)
{
	struct dt_written *written = &dev->written;

	if (!written->on)
		return;
	written->on = false;
	written->longer -= !!written->longer;
	dev->wide.usual_then = dev->wide.full;
	dt_wide_few(dev, dev->wide.full);
	dt_depth_anew(dev);
}

void dt_written_end(struct dt_dev *dev)
{
	let_in_again(dev);
	dev->written.watching = false;
	dev->written.calm_ns = dt_later(dev->written.calm_ns,
					dev->clock_ns + CALM_WRITTEN_NS);
	look_anew(dev);
}

/* All that was done from then on counts. */
static void begin_count(struct dt_dev *dev, const struct dt_load *all)
{
	struct dt_written *written = &dev->written;

	written->counts = true;
	written->then = *all;
	written->busy_then_ns = dev->busy_ns;
	look_anew(dev);
}

static struct dt_span written_since(const struct dt_dev *dev,
				    const struct dt_load *all)
{
	const struct dt_written *written = &dev->written;
	struct dt_span span = {
		.load.nr[DT_WRITE] = all->nr[DT_WRITE] -
				     written->then.nr[DT_WRITE],
		.load.sectors[DT_WRITE] = all->sectors[DT_WRITE] -
					  written->then.sectors[DT_WRITE],
		.busy_ns = dev->busy_ns - written->busy_then_ns,
	};

	return span;
}

static u64 scaled_cost(const struct dt_dev *dev, u64 cost)
{
	return (cost * dev->fit.scale) >> DT_SCALE_SHIFT;
}

/* By what writes seemed to take before, with more in flight: far less was done. */
static bool is_too_few(const struct dt_dev *dev, const struct dt_span *span)
{
	const struct dt_written *written = &dev->written;
	u64 worth = (written->base * span->load.nr[DT_WRITE] +
		     written->sector * span->load.sectors[DT_WRITE]) >>
		    DT_COST_SHIFT;

	return 2 * worth < span->busy_ns;
}

/*
 * Spans that do not agree are too short: some of what was done in each is what the cache
 * held before.
 */
static void note_error(struct dt_dev *dev, const struct dt_span *span)
{
	struct dt_written *written = &dev->written;
	u64 worth = dt_span_worth(&dev->fit, span);

	if (written->nr_spans < DT_WRITTEN_SPANS)
		return;
	if (8 * worth < 7 * 65536 || 8 * worth > 9 * 65536)
		written->nr_off += 2;
	else
		written->nr_off -= !!written->nr_off;
	if (written->nr_off < OFF_WRITTEN)
		return;
	written->nr_off = 0;
	/* It goes on by what is known until there are some of these. */
	written->nr_spans = 0;
	written->longer += written->longer < LONGER_MOST;
}

static void end_written(struct dt_dev *dev, const struct dt_load *all)
{
	struct dt_span span = written_since(dev, all);
	struct dt_written *written = &dev->written;
	bool first = written->nr_since == 1;

	if (!waited_for_room(dev) || (first && is_too_few(dev, &span))) {
		if (dev->depth <= written->few)
			written->few = dt_min(2 * written->few, FEW_MOST);
		let_in_again(dev);
		/* It did not last. */
		written->calm_ns = dev->clock_ns + written->off_ns;
		written->off_ns = dt_min(2 * written->off_ns,
					 OFF_MOST_WRITTEN_NS);
		return;
	}
	/* It was too short, as is seen now. */
	if (written->goes_on &&
	    written->until_ns - written->from_ns < WRITTEN_LEAST_NS)
		return;
	note_error(dev, &span);
	written->spans[written->nr_spans++ % DT_WRITTEN_SPANS] = span;
	written->known |= written->nr_spans >= DT_WRITTEN_ENOUGH;
	written->last_ns = dev->clock_ns;
	if (dt_written_settled(dev))
		written->off_ns = OFF_WRITTEN_NS;
	dt_fit_solve(&dev->fit, written->spans,
		     dt_min(written->nr_spans, DT_WRITTEN_SPANS));
}

/* Each is looked at for one window, where they are not alike. */
static void watch_writes(struct dt_dev *dev)
{
	struct dt_written *written = &dev->written;

	if (dev->fit.least == dev->fit.most || !dev->by_cost ||
	    dev->engine != DT_ENGINE_AUTO ||
	    (dev->tun.depth && dev->tun.depth > written->few)) {
		written->watching = false;
	} else if (!written->watching) {
		look_anew(dev);
		written->thinks = false;
		written->watching = true;
		dev->light.on = true;
	} else if (written->nr >= WATCHED) {
		written->watching = false;
		written->on = waited_for_room(dev) &&
			      (written->goes_on || !written->thinks);
		if (written->on)
			written->again_ns = AGAIN_WRITTEN_NS;
		written->calm_ns = dev->clock_ns + written->again_ns;
		written->again_ns = dt_min(2 * written->again_ns,
					   AGAIN_MOST_NS);
	}
}

bool dt_written_window(struct dt_dev *dev, const struct dt_load *load,
		       u64 busy_ns)
{
	struct dt_written *written = &dev->written;
	u64 nr = load->nr[DT_WRITE], stay_ns;
	struct dt_load all = written->all;

	dt_load_add(&all, load);
	/* Who is alone needs no order; but another may be away for a moment. */
	if (load->nr[DT_READ] ||
	    (dev->nr_active < 2 &&
	     !dt_before(dev->clock_ns, dev->several_ns + CALM_WRITTEN_NS))) {
		dt_written_end(dev);
		if (load->nr[DT_READ])
			written->calm_ns = dt_later(written->calm_ns,
						    dev->clock_ns +
						    READS_AGO_NS);
		return false;
	}
	stay_ns = dt_div(dt_min(dev->nr_inflight, written->few) * busy_ns, nr);
	if (!written->on) {
		if (!dt_before(dev->clock_ns, written->calm_ns))
			watch_writes(dev);
		if (!written->on)
			return false;
		dt_depth_anew(dev);
		/* What was so long ago may be another drive's, for all that is known. */
		if (dev->clock_ns - written->last_ns > OLD_WRITTEN_NS) {
			written->nr_spans = 0;
			written->known = false;
		}
		written->nr_since = 0;
		written->base = scaled_cost(dev, dev->fit.base[DT_WRITE]);
		written->sector = scaled_cost(dev, dev->fit.sector[DT_WRITE]);
		next_written(dev, stay_ns);
	} else if (!written->goes_on && written->thinks) {
		/*
		 * Where what is sent is what keeps the device busy others would wait for
		 * who thinks between two bursts, or he for them: the depth does better.
		 */
		dt_written_end(dev);
		written->calm_ns = dev->clock_ns + THINKS_WRITTEN_NS;
	} else if (!written->counts) {
		if (!dt_before(dev->clock_ns, written->from_ns))
			begin_count(dev, &all);
	} else if (!dt_before(dev->clock_ns, written->until_ns)) {
		end_written(dev, &all);
		if (written->on)
			next_written(dev, stay_ns);
	}
	/* Where the cache holds little, windows tell as well until these do. */
	return dt_written_known(dev) &&
	       (written->goes_on || dt_written_settled(dev));
}
