/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Pauses: fewer than one in flight of those who are held back. See pace.c. */
#ifndef DISKTIME_PACE_H
#define DISKTIME_PACE_H

#include "disktime.h"

/* With a limit of one: the others are to have this part less of it; 2^-16. */
dt_internal void dt_pause_more(struct dt_dev *dev, u64 part);
/* Or there are pauses, and it is to have this part more. */
dt_internal void dt_pause_less(struct dt_dev *dev, u64 part);
/* A request is complete, and no longer counted. */
dt_internal void dt_pause_note(struct dt_dev *dev, const struct dt_item *item,
			       u64 latency);

/*
 * Whether the group is away for a while between two bursts of requests. Who issues
 * again as soon as it has seen the last of several is not: it is back sooner than a
 * request takes at the least, be it its own or any.
 */
static inline bool dt_thinks(const struct dt_dev *dev,
			     const struct dt_group *grp)
{
	u64 least = dt_max(dev->quick[DT_READ].ns, dev->quick[DT_WRITE].ns);

	least = dt_min(least, grp->lat_min_ns);
	return grp->think.samples && 3 * grp->think.mean_ns > 2 * least;
}

/* The device is kept idle no longer. */
dt_internal void dt_pause_wake(struct dt_dev *dev);
/* The same where nobody has come. */
dt_internal void dt_pause_vain(struct dt_dev *dev);

#endif /* DISKTIME_PACE_H */
