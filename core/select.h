/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef DISKTIME_SELECT_H
#define DISKTIME_SELECT_H

#include "depth.h"
#include "disktime.h"

/* Derive whether there is work, where there are turns or a fault. */
dt_internal void dt_dev_review(struct dt_dev *dev);

/* Last in every event: derive dev->work. */
static inline void dt_dev_update(struct dt_dev *dev)
{
	bool work;

	if (dev->slice_ns || unlikely(dev->fault)) {
		dt_dev_review(dev);
		return;
	}
	work = dev->nr_queued &&
	       (dt_room_for(dev, false) ||
		(dev->nr_inflight < dev->depth_hw && dt_lets_through(dev)));
	if (dev->work != work)
		WRITE_ONCE(dev->work, work);
}

/* It goes away: its turn ends, and nobody waits for it any more. */
dt_internal void dt_forget_group(struct dt_dev *dev, struct dt_group *grp);
dt_internal void dt_forget_queue(struct dt_dev *dev, struct dt_queue *queue);

/* gate.c: whether the group's next request would find one free. */
dt_internal bool dt_gate_keeps_for(struct dt_dev *dev, const struct dt_group *grp);

#endif /* DISKTIME_SELECT_H */
