/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* More in flight than usual while all requests are alike. See wide.c. */
#ifndef DISKTIME_WIDE_H
#define DISKTIME_WIDE_H

#include "disktime.h"

/* The device takes @depth at a time if nothing else is known. */
dt_internal void dt_wide_init(struct dt_dev *dev, u32 depth);
/* A window is over in which so many requests were done. */
dt_internal void dt_wide_window(struct dt_dev *dev, u64 items, u64 busy_ns);
dt_internal void dt_wide_end(struct dt_dev *dev);
/* A request is complete, one of several of each group. */
dt_internal void dt_wide_note(struct dt_dev *dev, const struct dt_item *item);

/* Whether it may be looked at now what the device does with few; with one. */
dt_internal bool dt_wide_may_thin(const struct dt_dev *dev);
dt_internal void dt_wide_alone(struct dt_dev *dev, u64 stay_ns);
/* No more than so many are in flight for now. */
dt_internal void dt_wide_few(struct dt_dev *dev, u32 nr);
/* As many as there were before turns, and as were enough then, or 0. */
dt_internal void dt_wide_restore(struct dt_dev *dev, u32 usual, u32 enough);
/* A request is complete while it is looked at what the device does with few. */
dt_internal void dt_wide_thin(struct dt_dev *dev, const struct dt_item *item);

static inline bool dt_is_wide(const struct dt_dev *dev)
{
	return unlikely(dev->depth != dev->wide.usual);
}

/* A group has something to do that had nothing before. */
static inline void dt_wide_woken(struct dt_dev *dev)
{
	dev->wide.woken = true;
}

#endif /* DISKTIME_WIDE_H */
