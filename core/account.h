/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Accounting: what a request cost. See account.c. */
#ifndef DISKTIME_ACCOUNT_H
#define DISKTIME_ACCOUNT_H

#include "disktime.h"

/* 512 bytes pass no disk's head more slowly: 32 MB/s. */
#define DT_SECTOR_SLOW_NS	(16 * DT_NSEC_PER_USEC)

/* Bring the device's clocks up to @now; first in every event. */
dt_internal void dt_clock(struct dt_dev *dev, u64 now);
/* The same, in place. */
dt_inline void dt_clock_inline(struct dt_dev *dev, u64 now);
/* What an item of @queue will probably cost. */
dt_inline u64 dt_estimate(const struct dt_dev *dev, const struct dt_queue *queue,
		enum dt_dir dir, u32 sectors);
/*
 * What a dispatched item did cost up to now; learned for the next estimate.
 * @done: it is served, and not given back; @plain: as dev->plain.
 */
dt_inline u64 dt_actual(struct dt_dev *dev, struct dt_item *item, bool done,
			bool plain);
dt_inline void dt_learn_cost(struct dt_dev *dev, struct dt_queue *queue,
		enum dt_dir dir, u64 actual_ns);
/* The same where there are turns. */
dt_internal void dt_learn_turns(struct dt_dev *dev, struct dt_item *item,
		u64 actual_ns);

/* Whether queues are charged within their groups by what is usual; account.c. */
static inline bool dt_spreads(const struct dt_dev *dev)
{
	return dev->rotational && dev->engine != DT_ENGINE_GIVEN;
}

#endif /* DISKTIME_ACCOUNT_H */
