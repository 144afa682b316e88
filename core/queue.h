/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Order among the items of one queue. See queue.c. */
#ifndef DISKTIME_QUEUE_H
#define DISKTIME_QUEUE_H

#include "disktime.h"

/* @sorted: whether it is to be found by sector, too. */
dt_inline void dt_queue_add(struct dt_queue *queue, struct dt_item *item, bool urgent,
		  bool sorted);
dt_inline void dt_queue_del(struct dt_queue *queue, struct dt_item *item);
/* The item to be dispatched next; the queue must not be empty. */
dt_inline struct dt_item *dt_queue_next(const struct dt_queue *queue,
			      enum dt_order order, u64 now);

#endif /* DISKTIME_QUEUE_H */
