/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Costs: what requests take of a parallel device, learned. See cost.c. */
#ifndef DISKTIME_COST_H
#define DISKTIME_COST_H

#include "disktime.h"

#define DT_COST_SHIFT		8
#define DT_SCALE_SHIFT		16
/* Longer ones, which are discards, count as this: 4 MB. */
#define DT_COST_SECTORS		8192

/* What a request will probably be charged, in ns. */
static inline u64 dt_cost(const struct dt_fit *fit, enum dt_dir dir,
			  u32 sectors)
{
	u64 raw = (fit->base[dir] +
		   fit->sector[dir] * dt_min(sectors, DT_COST_SECTORS)) >>
		  DT_COST_SHIFT;

	return (raw * fit->scale) >> DT_SCALE_SHIFT;
}

dt_internal void dt_fit_init(struct dt_fit *fit);
/* A request is complete: one more in the window, which may be its end. */
dt_inline void dt_fit_note(struct dt_dev *dev, const struct dt_item *item);
/* What a request of @grp is to be charged beyond its cost, to learn costs. */
dt_inline s64 dt_dither(struct dt_dev *dev, struct dt_group *grp,
			  u64 cost_ns);

#endif /* DISKTIME_COST_H */
