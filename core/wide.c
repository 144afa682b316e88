// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Wide: more in flight than usual.
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
 */
#include "cost.h"
#include "wide.h"

/* What is in flight is done in so long. */
#define WIDE_NS			DT_NSEC_PER_MSEC
#define WIDE_MOST		1024
/* Not for less than an eighth more. */
#define WIDE_WORTH		8
/* All is alike for so long before; longer if the last lasted less than ten times that. */
#define WIDE_AFTER_NS		(500 * DT_NSEC_PER_MSEC)
#define WIDE_AFTER_MOST_NS	(64 * DT_NSEC_PER_SEC)
#define WIDE_LASTS		10

void dt_wide_init(struct dt_dev *dev, u32 depth)
{
	dev->depth = depth;
	dev->wide = (struct dt_wide) {
		.usual = depth,
		.calm_ns = dev->clock_ns,
		.after_ns = WIDE_AFTER_NS,
	};
}

void dt_wide_end(struct dt_dev *dev)
{
	struct dt_wide *wide = &dev->wide;
	struct dt_light *light = &dev->light;

	if (dev->clock_ns - wide->from_ns < WIDE_LASTS * wide->after_ns)
		wide->after_ns = dt_min(2 * wide->after_ns, WIDE_AFTER_MOST_NS);
	else
		wide->after_ns = WIDE_AFTER_NS;
	wide->calm_ns = dev->clock_ns;
	/* What others had with more in flight they will not have again. */
	dt_fit_forget_free(dev);
	dev->depth = wide->usual;
	dev->limit = dt_min(dev->limit, dev->depth);
	light->limit = dt_min(light->limit, dev->depth);
	light->limit_then = dt_min(light->limit_then, dev->depth);
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
	       !dev->wide.woken && !dev->fault &&
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
