/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Whose request is nearest, where a head has to go there. See near.c. */
#ifndef DISKTIME_NEAR_H
#define DISKTIME_NEAR_H

#include "cache.h"
#include "disktime.h"

/* A disk that takes more than this looks for the nearest itself. */
#define DT_NEAR_DEPTH		16

static inline bool dt_goes_near(const struct dt_dev *dev)
{
	return dev->slice_ns && dev->rotational &&
	       dev->depth <= DT_NEAR_DEPTH &&
	       dev->tun.order == DT_ORDER_CFQ && !dt_absorbs(dev);
}

/* Among those of a line of queues that are as good as @first, who is first. */
dt_internal struct dt_queue *dt_nearest(const struct dt_dev *dev,
					struct dt_line *line,
					struct dt_queue *first);

#endif /* DISKTIME_NEAR_H */
