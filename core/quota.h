/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What each of several writers may send in their turn. See quota.c. */
#ifndef DISKTIME_QUOTA_H
#define DISKTIME_QUOTA_H

#include "disktime.h"

/* A phase begins: nobody has sent anything, or as much as it may. */
dt_internal void dt_quota_reset(struct dt_dev *dev);
/* The writers' turn begins, which is to take @due_ns with its drain. */
dt_internal void dt_quota_begin(struct dt_dev *dev, u64 due_ns);
/* One of the queue's was sent. Whether that is enough of all. */
dt_internal bool dt_quota_sent(struct dt_dev *dev, struct dt_queue *queue,
			       u64 units);
/* A write of @units was done, of a queue that is of the party. */
dt_internal void dt_quota_note(struct dt_dev *dev, struct dt_queue *queue,
			       u64 units);
/*
 * The turn is over, and all that it will be is sent: whether several write that are unlike.
 * A request is worth @units beside its sectors.
 */
dt_internal void dt_quota_look(struct dt_dev *dev, u64 units);
/* Who has this turn for itself has nothing to write: it is that of all. */
dt_internal void dt_quota_open(struct dt_dev *dev);
/* It took @took_ns with its drain, writes alone @writes_ns of that. */
dt_internal void dt_quota_end(struct dt_dev *dev, u64 took_ns, u64 due_ns,
			      u64 writes_ns);
dt_internal void dt_quota_forget(struct dt_dev *dev, const struct dt_group *grp);

/* Whether another's turn is for itself. */
static inline bool dt_quota_none(const struct dt_dev *dev,
				 const struct dt_group *grp)
{
	return dev->spells.quota.own && dev->spells.quota.own != grp;
}

#endif /* DISKTIME_QUOTA_H */
