/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Parties whose items are parked while another has its turn. See park.c. */
#ifndef DISKTIME_PARK_H
#define DISKTIME_PARK_H

#include "disktime.h"

/* Whether the queue is of a party whose turn it is not, or has had its part of that. */
static inline bool dt_is_parked(const struct dt_dev *dev,
				const struct dt_queue *queue)
{
	return unlikely(queue->spent) ||
	       (unlikely(dev->parking) && !dt_list_empty(&queue->party));
}

#define DT_RATIO_SHIFT		8

/* All that is queued of @queue stands in no line, or in line again. */
dt_internal void dt_park(struct dt_dev *dev, struct dt_queue *queue);
dt_internal void dt_unpark(struct dt_dev *dev, struct dt_queue *queue);
/* An item that has just come is parked, with all others of its queue. */
dt_internal void dt_park_new(struct dt_dev *dev, struct dt_queue *queue);
/* One of those that are parked is gone. */
dt_internal void dt_unpark_gone(struct dt_dev *dev, struct dt_queue *queue);

/* A queue is of one party at most. */
dt_internal void dt_party_add(struct dt_list *party, struct dt_queue *queue);
dt_internal void dt_party_clear(struct dt_list *party);
dt_internal void dt_party_park(struct dt_dev *dev, struct dt_list *party,
			       bool parked);
/* Whether one of the group's queues is of a party. */
dt_internal bool dt_in_party(const struct dt_group *grp);
/*
 * What is due, by weight, to all others that did anything since @from_ns for
 * each part that is due to the party, or @within if it is a group's own queues
 * that meet; 2^-8.
 */
dt_internal u32 dt_party_ratio(const struct dt_dev *dev,
			       const struct dt_list *party, u64 from_ns,
			       u32 within);
/* Of the group's requests: parked ones are among them. */
dt_internal u32 dt_outstanding_of(const struct dt_group *grp);

#endif /* DISKTIME_PARK_H */
