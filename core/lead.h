/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Lead: who is ahead waits for who has all in the device. See lead.c. */
#ifndef DISKTIME_LEAD_H
#define DISKTIME_LEAD_H

#include "disktime.h"

/* Nothing is known of who asks for how much, and nobody is waited for. */
dt_internal void dt_lead_init(struct dt_dev *dev);
/* A request is complete, one of several of each group. */
dt_internal void dt_lead_note(struct dt_dev *dev, const struct dt_item *item);
/* The group goes away. */
dt_internal void dt_lead_forget(struct dt_dev *dev, const struct dt_group *grp);
/* While somebody is behind: whether who would be next has to wait for it. */
dt_internal bool dt_lead_waits(struct dt_dev *dev);

/*
 * Nothing is in flight, and who would be next has to wait for who has just had all in
 * there, and may be back.
 */
dt_internal bool dt_lead_is_awaited(struct dt_dev *dev);

/* So many in flight, but for one that has just been completed and a few, are all. */
static inline bool dt_is_full(u32 nr, u32 depth)
{
	return nr + 1 + depth / 16 >= depth;
}

/* With so many of one group the device is as full as it gets. */
static inline u32 dt_asked(const struct dt_dev *dev)
{
	return dt_min(dev->depth, dev->lead.asked);
}

/* Whether all requests have been alike for a while. */
dt_internal bool dt_were_alike(const struct dt_dev *dev);

#endif /* DISKTIME_LEAD_H */
