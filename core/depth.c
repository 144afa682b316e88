// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "cost.h"
#include "depth.h"
#include "entity.h"

#define RATIO_SHIFT		8
#define RATIO_MAX		(64 << RATIO_SHIFT)
#define WINDOW_LIGHT		8
#define WINDOW_MIN_NS		(1 * DT_NSEC_PER_MSEC)
#define LAG_MAX_NS		(10 * DT_NSEC_PER_MSEC)

void dt_depth_init(struct dt_dev *dev)
{
	dev->limit = dev->depth;
	dev->light.nr = 0;
	dev->light.sum = 0;
	dev->light.most = 0;
	dev->light.until_ns = 0;
}

/* Whether who is first in line is behind by more than what is in flight explains. */
bool dt_first_is_light(struct dt_dev *dev)
{
	struct dt_entity *ent = &dev->root->ent;
	struct dt_level *level;
	struct dt_spot *spot;
	u64 lag = dt_min(4 * dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]), LAG_MAX_NS);

	for (;;) {
		level = ent->level;
		spot = dt_line_pick(&level->ready, dev->clock_ns);
		if (!spot)
			return false;
		ent = DT_CONTAINER(spot, struct dt_entity, ready);
		if (ent->kind == DT_KIND_QUEUE)
			return false;
		if (level->lone == ent)
			continue;
		if (dt_before(ent->vdisktime + dt_virtual(lag, ent->weight),
			      level->ready.vtime[ent->class]))
			return true;
	}
}

bool dt_is_light(struct dt_dev *dev, const struct dt_group *grp)
{
	u64 lag = dt_min(4 * dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]), LAG_MAX_NS);
	const struct dt_entity *ent;

	for (ent = grp->own; ent->parent; ent = ent->parent) {
		const struct dt_level *level = ent->parent->level;

		if (level->lone == ent)
			continue;
		if (dt_before(ent->vdisktime + dt_virtual(lag, ent->weight),
			      level->ready.vtime[ent->class]))
			return true;
	}
	return false;
}

static void next_look(struct dt_dev *dev)
{
	dev->light.nr = 0;
	dev->light.sum = 0;
	dev->light.want = 0;
	dev->light.most = 0;
	dev->light.until_ns = dev->clock_ns + WINDOW_MIN_NS;
}

static void watch_latency(struct dt_dev *dev, struct dt_group *grp, u64 lat, enum dt_dir dir)
{
	lat = dt_max(lat, 1);
	if (!grp->lat_min_ns || lat < grp->lat_min_ns)
		grp->lat_min_ns = lat;
	if (!dev->fit.lat_min_ns[dir] || lat < dev->fit.lat_min_ns[dir])
		dev->fit.lat_min_ns[dir] = lat;
	if (!dev->light.probing)
		return;
	if (grp->probe != dev->light.probed) {
		grp->probe = dev->light.probed;
		grp->lat_probe_ns = lat;
	} else if (lat < grp->lat_probe_ns) {
		grp->lat_probe_ns = lat;
	}
}

void dt_depth_note(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_group *grp = item->queue->grp;
	u64 lat = dev->clock_ns - item->dispatch_ns, base, mean;
	struct dt_light *light = &dev->light;

	watch_latency(dev, grp, lat, item->dir);
	if (grp->probe && grp->probe != light->probed) {
		/* The probe after the last that it was in has begun: that is over. */
		if (grp->lat_probe_ns > grp->lat_min_ns)
			grp->lat_min_ns += (grp->lat_probe_ns - grp->lat_min_ns) / 4;
		grp->probe = 0;
	}
	if (item->light) {
		base = grp->lat_min_ns + (u64)grp->own->nr_inflight *
			      dt_cost(&dev->fit, item->dir, item->sectors);
		light->sum += dt_min(dt_div(lat << RATIO_SHIFT, base), RATIO_MAX);
		light->want += dt_min(dt_div(((u64)grp->own->nr_inflight + 1) * dt_cost(&dev->fit, item->dir, item->sectors) << 16, base), 1 << 16);
		light->nr++;
	}
	light->most = dt_max(light->most, dev->nr_heavy + !item->light);
	if (light->probing) {
		if (light->nr < WINDOW_LIGHT && dt_before(dev->clock_ns, light->until_ns))
			return;
		light->probing = false;
		light->last_probe_ns = dev->clock_ns;
		light->probe_ns = dev->clock_ns - light->probe_ns;
		dev->limit = light->limit;
		next_look(dev);
		return;
	}
	if (dt_before(dev->clock_ns, light->until_ns))
		return;
	if (light->nr && !dt_before(dev->clock_ns, light->last_probe_ns + 100 * DT_NSEC_PER_MSEC + 30 * light->probe_ns)) {
		light->probing = true;
		light->probed++;
		light->limit = dev->limit;
		light->probe_ns = dev->clock_ns;
		dev->limit = 1;
		next_look(dev);
		light->until_ns = dev->clock_ns + 50 * WINDOW_MIN_NS;
		return;
	}
	if (light->nr >= WINDOW_LIGHT) {
		u32 want = (u32)dt_div(light->want, light->nr);
		u32 guard = 65536 - dt_max(dt_min(want, 16384), 6000);

		mean = dt_div(light->sum, light->nr);
		if (dev->fit.used < guard - guard / 64 && !dev->fit.starved)
			dev->limit = dt_min(dev->limit + dev->limit / 8 + 1, dev->depth);
		else if (mean > 470 && (dev->fit.starved || dev->fit.used > guard + guard / 128))
			dev->limit = dt_max(dt_min(dev->limit, light->most) * 7 / 8, 1);
		else if (mean < 430)
			dev->limit = dt_min(dev->limit + dev->limit / 8 + 1, dev->depth);
		next_look(dev);
	} else if (!light->nr || dt_before(light->until_ns + 100 * WINDOW_MIN_NS, dev->clock_ns)) {
		dev->limit = dt_min(dev->limit + dev->limit / 8 + 1, dev->depth);
		next_look(dev);
	}
}
