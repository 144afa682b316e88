/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Serial: devices that serve one request after the other. See serial.c. */
#ifndef DISKTIME_SERIAL_H
#define DISKTIME_SERIAL_H

#include "disktime.h"

/* Of a turn there. */
#define DT_SLICE_SERIAL_NS	(4 * DT_NSEC_PER_MSEC)

/* Whether there are turns for that. */
static inline bool dt_is_serial(const struct dt_dev *dev)
{
	return unlikely(dev->serial.phase >= DT_SERIAL_TRIAL);
}

/* Whether each request is looked at. */
static inline bool dt_serial_looks(const struct dt_dev *dev)
{
	return dev->serial.phase == DT_SERIAL_WATCH ||
	       dev->serial.phase == DT_SERIAL_ALONE;
}

/* A request is complete, one of several of each group; or each, if that is so. */
dt_internal void dt_serial_note(struct dt_dev *dev, const struct dt_item *item,
				u64 stay_ns);
/* One at a time was let in for long enough. */
dt_internal void dt_serial_judge(struct dt_dev *dev);
/* With turns, one is complete: they may end. */
dt_internal void dt_serial_tick(struct dt_dev *dev);
/* The device or what was asked for has changed: nothing is known. */
dt_internal void dt_serial_reset(struct dt_dev *dev);

/* Whose is the time since the one before was done? What is left for this item. */
dt_internal u64 dt_serial_charge(struct dt_dev *dev, const struct dt_item *item,
				 u64 time_ns);
/* They go away. */
dt_internal void dt_serial_forget(struct dt_dev *dev, const struct dt_queue *queue);
dt_internal void dt_serial_forget_group(struct dt_dev *dev,
					const struct dt_group *grp);

#endif /* DISKTIME_SERIAL_H */
