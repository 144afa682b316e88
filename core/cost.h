/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Costs: what requests take of a parallel device, learned. See cost.c. */
#ifndef DISKTIME_COST_H
#define DISKTIME_COST_H

#include "disktime.h"

#define DT_COST_SHIFT		8
#define DT_SCALE_SHIFT		16

/* What the device's model says of one request, before the scale. */
static inline u64 dt_cost_raw(const struct dt_fit *fit, enum dt_dir dir,
			      u32 sectors)
{
	return (fit->base[dir] + fit->sector[dir] * sectors) >> DT_COST_SHIFT;
}

/* The disk time that a request will probably be charged. */
static inline u64 dt_cost(const struct dt_fit *fit, enum dt_dir dir,
			  u32 sectors)
{
	return (dt_cost_raw(fit, dir, sectors) * fit->scale) >> DT_SCALE_SHIFT;
}

dt_internal void dt_fit_init(struct dt_fit *fit);
/* A request is complete: one more in the window, which may be its end. */
dt_internal void dt_fit_note(struct dt_dev *dev, const struct dt_item *item);

static inline s64 dt_dither(struct dt_dev *dev, struct dt_group *grp, u64 cost_ns)
{
	s64 up = (s64)(cost_ns / 2), down = -(s64)(cost_ns / 3), extra;

	if (!dev->fit.dither) {
		extra = dt_max(down, dt_min(up, -grp->dither_ns));
	} else {
		if (grp->dither_window != dev->fit.window) {
			grp->dither_window = dev->fit.window;
			grp->dithered_up = grp->dither_ns ? grp->dither_ns < 0 : grp->odd;
		}
		extra = grp->dithered_up ? up : down;
	}
	grp->dither_ns += extra;
	return extra;
}

#endif /* DISKTIME_COST_H */
