/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Costs: what requests take of a parallel device, learned. See cost.c. */
#ifndef DISKTIME_COST_H
#define DISKTIME_COST_H

#include "disktime.h"

#define DT_COST_SHIFT		8
#define DT_SCALE_SHIFT		16
/* Longer ones, which are discards, count as this: 4 MB. */
#define DT_COST_SECTORS		8192
/* So many requests tell what others have while they are not held back. */
#define DT_FREE_ENOUGH		96

/* Requests. */
static inline u64 dt_load_nr(const struct dt_load *load)
{
	return load->nr[DT_READ] + load->nr[DT_WRITE];
}

static inline void dt_load_add(struct dt_load *load,
			       const struct dt_load *more)
{
	int dir;

	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		load->nr[dir] += more->nr[dir];
		load->sectors[dir] += more->sectors[dir];
	}
}

/* Reads and writes. */
static inline bool dt_load_both(const struct dt_load *load)
{
	return load->nr[DT_READ] && load->nr[DT_WRITE];
}

/* Whether it is known what others have while they are not held back. */
static inline bool dt_free_known(const struct dt_dev *dev)
{
	const struct dt_free *free = &dev->fit.free;

	return free->windows >= 4 || dt_load_nr(&free->heavy.load) >=
	       (dev->light.well ? 2 * DT_FREE_ENOUGH : DT_FREE_ENOUGH);
}

/* Whether all do the same, as far as is known. */
static inline bool dt_fit_alike(const struct dt_dev *dev)
{
	const struct dt_fit *fit = &dev->fit;

	return fit->least == fit->most &&
	       !dt_load_both(&fit->load) &&
	       (fit->alike || dt_load_nr(&fit->load) >= 16);
}

/* Whether enough windows were learned from to go by. */
static inline bool dt_costs_known(const struct dt_dev *dev)
{
	return dev->fit.windows >= 2 ||
	       (dev->fit.windows && dt_fit_alike(dev));
}

/* What a request takes of the device, in ns. */
static inline u64 dt_cost_raw(const struct dt_fit *fit, enum dt_dir dir,
			      u32 sectors)
{
	return (fit->base[dir] +
		fit->sector[dir] * dt_min(sectors, DT_COST_SECTORS)) >>
	       DT_COST_SHIFT;
}

/* What a request will probably be charged, in ns. */
static inline u64 dt_cost(const struct dt_fit *fit, enum dt_dir dir,
			  u32 sectors)
{
	return (dt_cost_raw(fit, dir, sectors) * fit->scale) >> DT_SCALE_SHIFT;
}

dt_internal void dt_fit_init(struct dt_fit *fit);
/* One more; what was before counts by 2^-@shift less. */
dt_internal void dt_span_add(struct dt_span *span, const struct dt_load *load,
			     u64 busy_ns, int shift);
/* What it is worth of its time, by the costs as they are; 2^-16. */
dt_internal u64 dt_span_worth(const struct dt_fit *fit,
			      const struct dt_span *span);
/* Each of these is to be worth its time. */
dt_internal void dt_fit_solve(struct dt_fit *fit, const struct dt_span *spans,
			      u32 nr);
/* Others are held back from now on than were before. */
dt_internal void dt_fit_forget_free(struct dt_dev *dev);
/* A request is complete: one more in the window, which may be its end. */
dt_inline void dt_fit_note(struct dt_dev *dev, const struct dt_item *item);
/* Before that, while anybody goes first or is held back. */
dt_internal void dt_fit_note_light(struct dt_dev *dev,
				   const struct dt_item *item);
/* What a request of @grp is to be charged beyond its cost, to learn costs. */
dt_inline s64 dt_dither(struct dt_dev *dev, struct dt_group *grp,
			  u64 cost_ns);

#endif /* DISKTIME_COST_H */
