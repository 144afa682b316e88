// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Depth: how much is in flight while somebody asks for little.
 *
 * What is in the device is out of reach: no weight helps a request that stands
 * there behind 256 others. Who asks for much does not mind, and the device
 * needs many requests to keep all of its parts busy. Who has one request at a
 * time, or eight, waits for all of them each time.
 *
 * So requests are of two kinds. Those of a group that is behind (by disk time,
 * further than what is in flight explains: it does not ask for its share, or
 * does not get it) are light and go to the device at once. Of all others at
 * most dev->limit are in flight. The limit is found by control, without
 * knowing the device:
 *
 * - A light group's slowdown is its latency by what that would be alone: the
 *   least seen, plus the cost of what the group itself has in flight.
 * - While the slowdown is above SLOWDOWN, the limit falls; while it is below,
 *   or nobody is light, it grows until it is the depth again.
 * - It does not fall where that costs too much: of the device's capacity, as
 *   far as it is known (cost.c), at least 1 - w is to be in use, where w is
 *   the part that the light groups could use themselves, but no less than LOSS
 *   and no more than LOSS_MAX.
 *
 * The depth itself (dev->depth) is what the device takes, but no more than
 * DEPTH_AUTO: enough for any single device, and little enough that deep queues
 * wait here and not in there. Light requests go beyond that as well.
 *
 * A reader that asks for a fiftieth of the device thus costs the others at most
 * a tenth; one that could use half of it gets about half of what it does alone.
 *
 * Probe. Who has never been alone has never seen the least latency. So every
 * now and then, for a few requests of the light ones, the limit is 1. That
 * takes a thirtieth of the time at most, and less and less where it finds what
 * was known.
 *
 * Nothing of this on devices with turns: there a group has the disk for itself
 * (select.c).
 */
#include "cost.h"
#include "depth.h"
#include "entity.h"

#define RATIO_SHIFT		8
#define RATIO_MAX		(64 << RATIO_SHIFT)
/* Two groups of which each gets half are slowed down by 2. */
#define SLOWDOWN		470
#define SLOWDOWN_LOW		430

/* A look lasts at least so long, and for so many light requests. */
#define LOOK_NS			DT_NSEC_PER_MSEC
#define LOOK_ITEMS		8
/* If fewer come it ends after so many times as long. */
#define LOOK_LONGEST		20

/* Of the device's capacity, 2^-16. */
#define LOSS			6000
#define LOSS_MAX		16384

/* A probe lasts for so many, at most so long, and comes no more often. */
#define PROBE_ITEMS		4
#define PROBE_NS		(50 * DT_NSEC_PER_MSEC)
#define PROBE_EVERY_NS		(100 * DT_NSEC_PER_MSEC)
#define PROBE_SELDOM_NS		(10 * DT_NSEC_PER_SEC)
#define PROBE_PART		30

/*
 * Further behind than by this, and by so many requests, is who asks for less
 * than its share: more than dither (cost.c) makes, less than a sleeper's credit.
 */
#define LAG_NS			(4 * DT_NSEC_PER_MSEC)
#define LAG_REQUESTS		4
#define LAG_MAX_NS		(12 * DT_NSEC_PER_MSEC)

/* Most requests wait inside the device: more or fewer than these, 2^-16. */
#define CROWD_MANY		32768
#define CROWD_FEW		16384
#define CROWD_SHIFT		6

static void next_look(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;

	light->nr = 0;
	light->most = 0;
	light->sum = 0;
	light->want = 0;
	light->until_ns = dev->clock_ns + LOOK_NS;
}

static void set_crowded(struct dt_dev *dev, bool crowded)
{
	dev->crowded = crowded;
	dev->crowd_limit = crowded ? CROWD_FEW : CROWD_MANY;
	dt_dev_derive(dev);
}

void dt_depth_init(struct dt_dev *dev)
{
	dev->limit = dev->depth;
	dev->light.probing = false;
	dev->light.probe_every_ns = PROBE_EVERY_NS;
	/* With turns nobody looks; overlap then. */
	dev->crowd = 0;
	set_crowded(dev, false);
	next_look(dev);
}

static bool lags(const struct dt_dev *dev, const struct dt_level *level,
		 const struct dt_entity *ent)
{
	s64 behind = (s64)(level->ready.vtime[ent->class] - ent->vdisktime);
	u64 cost, lag;

	if (level->lone == ent || behind <= 0)
		return false;
	cost = dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]);
	lag = dt_min(LAG_NS + LAG_REQUESTS * cost, LAG_MAX_NS) +
	      ent->nr_inflight * cost;
	return (u64)behind > dt_virtual(lag, ent->weight);
}

static noinline bool path_lags(const struct dt_dev *dev,
			       const struct dt_entity *ent)
{
	for (; ent->parent; ent = ent->parent)
		if (lags(dev, ent->parent->level, ent))
			return true;
	return false;
}

dt_inline bool dt_is_light(const struct dt_dev *dev, const struct dt_group *grp)
{
	const struct dt_entity *own = grp->own;

	/* Who has much in flight, or more queued than that, asks for no little. */
	return own->nr_queued <= own->nr_inflight + 1 &&
	       2 * dev->nr_active * own->nr_inflight <= dev->depth &&
	       !dev->slice_ns && dev->engine != DT_ENGINE_OVERLAP &&
	       path_lags(dev, own);
}

bool dt_lets_through(struct dt_dev *dev)
{
	struct dt_entity *ent = &dev->root->ent;
	struct dt_level *level;
	struct dt_spot *spot;

	if (!dt_list_empty(&dev->express))
		return true;
	for (;;) {
		level = ent->level;
		spot = dt_line_pick(&level->ready, dev->clock_ns);
		if (!spot)
			return false;
		ent = DT_CONTAINER(spot, struct dt_entity, ready);
		if (ent->kind == DT_KIND_QUEUE)
			return false;
		if (lags(dev, level, ent))
			return true;
	}
}

/* The least latencies, and how many are far from them. */
static inline void watch(struct dt_dev *dev, struct dt_group *grp, u64 latency)
{
	u32 crowd = dev->crowd;

	/* Where none is known it is 0, and this the greatest of all numbers. */
	if (unlikely(latency <= grp->lat_min_ns - 1))
		grp->lat_min_ns = latency;
	crowd -= crowd >> CROWD_SHIFT;
	if (2 * latency > 3 * grp->lat_min_ns)
		crowd += 65536 >> CROWD_SHIFT;
	dev->crowd = crowd;
	if (unlikely((crowd > dev->crowd_limit) != dev->crowded))
		set_crowded(dev, !dev->crowded);
}

/* The same with what probes say. */
static noinline void watch_probe(struct dt_dev *dev, struct dt_group *grp,
				 u64 latency, bool quiet)
{
	struct dt_light *light = &dev->light;

	if (quiet && 8 * latency < 7 * grp->lat_min_ns)
		light->probe_every_ns = PROBE_EVERY_NS;
	watch(dev, grp, latency);
	if (quiet) {
		if (grp->probe != light->probe) {
			grp->probe = light->probe;
			grp->lat_probe_ns = latency;
		}
		grp->lat_probe_ns = dt_min(grp->lat_probe_ns, latency);
	} else if (grp->probe && !light->probing) {
		/* Nobody was in its way, and yet it took longer than ever. */
		if (grp->lat_probe_ns > grp->lat_min_ns)
			grp->lat_min_ns += (grp->lat_probe_ns -
					    grp->lat_min_ns) / 4;
		grp->probe = 0;
	}
}

static void begin_probe(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;

	/* A group that was in none has 0. */
	if (!++light->probe)
		light->probe = 1;
	light->probing = true;
	light->limit = dev->limit;
	light->probe_from_ns = dev->clock_ns;
	light->quiet_ns = 0;
	dev->limit = 1;
	next_look(dev);
	light->until_ns = dev->clock_ns + PROBE_NS;
}

static void end_probe(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;
	u64 took = dev->clock_ns - light->probe_from_ns;

	light->probing = false;
	light->probe_next_ns = dev->clock_ns + light->probe_every_ns +
			       PROBE_PART * took;
	/* The less there is to find, the less it is looked for. */
	light->probe_every_ns = dt_min(2 * light->probe_every_ns,
				       PROBE_SELDOM_NS);
	dev->limit = light->limit;
	next_look(dev);
}

static void allow_more(struct dt_dev *dev)
{
	dev->limit = dt_min(dev->limit + dev->limit / 8 + 1, dev->depth);
}

static void allow_less(struct dt_dev *dev, bool much)
{
	u32 limit = dt_min(dev->limit, dev->light.most);

	limit -= dt_min(limit, (much ? limit / 4 : limit / 8) + 1);
	dev->limit = dt_max(limit, 1);
}

static void review_limit(struct dt_dev *dev)
{
	const struct dt_light *light = &dev->light;
	u64 slowdown = dt_div(light->sum, light->nr);
	u64 want = dt_div(light->want, light->nr);
	u32 keep = 65536 - dt_max(dt_min(want, LOSS_MAX), LOSS);
	/* With nothing queued it is not we who leave it idle. */
	bool known = !dev->fit.starved;

	if (known && dev->fit.used < keep - keep / 64)
		allow_more(dev);
	else if (slowdown > SLOWDOWN &&
		 (!known || dev->fit.used > keep + keep / 128))
		allow_less(dev, slowdown > 2 * SLOWDOWN);
	else if (slowdown < SLOWDOWN_LOW)
		allow_more(dev);
}

/* A request is complete while there are probes, or somebody asks for little. */
static noinline void look(struct dt_dev *dev, const struct dt_item *item,
			  u64 latency)
{
	struct dt_group *grp = item->queue->grp;
	struct dt_light *light = &dev->light;
	bool quiet = false;
	u64 cost, alone;

	/* In a probe nothing counts before the others' requests are done. */
	if (light->probing) {
		if (!light->quiet_ns && dev->nr_heavy <= dev->limit)
			light->quiet_ns = dev->clock_ns;
		quiet = light->quiet_ns &&
			!dt_before(item->dispatch_ns, light->quiet_ns);
	}
	watch_probe(dev, grp, latency, quiet);
	if (!item->light && !light->nr && !light->probing &&
	    dev->limit == dev->depth)
		return;
	if (item->light && (quiet || !light->probing)) {
		cost = dt_cost(&dev->fit, item->dir, item->sectors);
		alone = grp->lat_min_ns + grp->own->nr_inflight * cost;
		light->sum += dt_min(dt_div(latency << RATIO_SHIFT, alone),
				     RATIO_MAX);
		light->want += dt_min(dt_div(((grp->own->nr_inflight + 1) *
					      cost) << 16, alone), 65536);
		light->nr++;
	}
	light->most = dt_max(light->most, dev->nr_heavy + !item->light);
	if (light->probing) {
		if (light->nr >= PROBE_ITEMS ||
		    !dt_before(dev->clock_ns, light->until_ns))
			end_probe(dev);
	} else if (dt_before(dev->clock_ns, light->until_ns)) {
		return;
	} else if (light->nr && dev->crowded &&
		   !dt_before(dev->clock_ns, light->probe_next_ns)) {
		begin_probe(dev);
	} else if (light->nr >= LOOK_ITEMS ||
		   (light->nr && !dt_before(dev->clock_ns, light->until_ns +
					    LOOK_LONGEST * LOOK_NS))) {
		review_limit(dev);
		next_look(dev);
	} else if (!light->nr && dev->nr_inflight == dev->nr_heavy &&
		   !dt_before(dev->clock_ns, light->until_ns +
			      LOOK_LONGEST * LOOK_NS)) {
		/* None of theirs came, and none is on its way. */
		allow_more(dev);
		next_look(dev);
	}
}

dt_inline void dt_depth_note(struct dt_dev *dev, const struct dt_item *item)
{
	u64 latency = dev->clock_ns - item->dispatch_ns;
	struct dt_group *grp = item->queue->grp;

	latency = dt_max(latency, 1);
	/* Mostly nobody asks for little, and all are let through. */
	if (likely(!(item->light | dev->light.nr | dev->light.probing |
		     grp->probe | (dev->limit ^ dev->depth))))
		watch(dev, grp, latency);
	else
		look(dev, item, latency);
}
