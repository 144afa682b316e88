/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef DISKTIME_SELECT_H
#define DISKTIME_SELECT_H

#include "depth.h"
#include "disktime.h"
#include "lead.h"
#include "serial.h"

/*
 * So much of one group at a time is enough in a device with one head: with
 * requests of this size it has hardly anything to gain from more, and who comes
 * next would wait for all of it.
 */
#define DT_PLENTY_NS		(80 * DT_NSEC_PER_MSEC)
#define DT_PLENTY_SECTORS	8192

/* A part of that is while somebody who paused may be back at any time. */
#define DT_PLENTY_PART		4

/* Further from its last item than this, a process does not read on. */
#define DT_SEEKY_SECTORS	8192

/* So much in flight is enough for one server. */
#define DT_SERIAL_PLENTY_NS	(8 * DT_NSEC_PER_MSEC)

/* Whether the group that has the turn is to wait until some is served. */
static inline bool dt_has_plenty(const struct dt_dev *dev)
{
	u32 part = dev->back_soon ? DT_PLENTY_PART : 1;

	/* More than that keeps no server busier. */
	if (dt_is_serial(dev))
		return dev->nr_inflight > 1 &&
		       dev->estimates_ns >= DT_SERIAL_PLENTY_NS;
	return dev->rotational &&
	       dev->nr_sectors >= DT_PLENTY_SECTORS / part &&
	       dev->estimates_ns >= DT_PLENTY_NS / part &&
	       dev->turn_grp && dev->turn_grp->own->nr_inflight;
}

/* Whether there is work, where there are neither turns nor a fault. */
static inline bool dt_fits(struct dt_dev *dev)
{
	return dev->nr_queued &&
	       ((dt_room_for(dev, false) &&
		 (likely(!dev->lead.grp) || !dt_lead_waits(dev))) ||
		(dev->nr_inflight < dev->depth_hw && dt_lets_through(dev)));
}

static inline void dt_set_work(struct dt_dev *dev, bool work)
{
	if (dev->work != work)
		WRITE_ONCE(dev->work, work);
}

/* Derive whether there is work, whatever the device does. */
dt_internal void dt_dev_review(struct dt_dev *dev);

/* The same where it is known whether dev->plain is set. */
static __always_inline void dt_dev_update_as(struct dt_dev *dev, bool plain)
{
	if (plain)
		dt_set_work(dev, dt_fits(dev));
	else
		dt_dev_review(dev);
}

/* Last in every event: derive dev->work. */
static inline void dt_dev_update(struct dt_dev *dev)
{
	dt_dev_update_as(dev, likely(dev->plain));
}

/* What turns, faults and the engine mean: after each change of those. */
dt_internal void dt_dev_derive(struct dt_dev *dev);

/* There are turns from now on for another reason, or none. */
dt_internal void dt_dev_turns(struct dt_dev *dev);

/* So long it was away. */
dt_internal void dt_think_sample(struct dt_think *think, u64 sample);
/* The entity issues now: a sample if it has nothing queued or in flight. */
dt_internal void dt_think_end(const struct dt_dev *dev,
			      const struct dt_entity *ent,
			      struct dt_think *think);

/* It goes away: its turn ends, and nobody waits for it any more. */
dt_internal void dt_forget_group(struct dt_dev *dev, struct dt_group *grp);
dt_internal void dt_forget_queue(struct dt_dev *dev, struct dt_queue *queue);

/* gate.c: whether the group's next request would find one free. */
dt_internal bool dt_gate_keeps_for(struct dt_dev *dev, const struct dt_group *grp);

#endif /* DISKTIME_SELECT_H */
