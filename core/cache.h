/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Writes that a disk has taken and not yet written; see cache.c. */
#ifndef DISKTIME_CACHE_H
#define DISKTIME_CACHE_H

#include "disktime.h"

/* Whether requests are charged the time since the one before was done. */
static inline bool dt_by_gap(const struct dt_dev *dev)
{
	return dev->rotational && dev->engine == DT_ENGINE_AUTO;
}

/* Part of writes that are done before the head has moved, 2^-16. */
#define DT_ABSORBING		4096
#define DT_BESIDE		8192

/* Whether there are enough of those to tell of a cache. */
static inline bool dt_absorbs(const struct dt_dev *dev)
{
	return dev->cache.absorbed >= DT_ABSORBING ||
	       dev->cache.beside >= DT_BESIDE;
}

/* An item goes to the device; only with dt_by_gap(), as all below. */
static inline void dt_cache_sent(struct dt_dev *dev, struct dt_item *item)
{
	if (dev->nr_inflight == 1)
		dev->cache.done_ns = dev->clock_ns;
	item->done_before = dev->cache.nr_done;
	item->taken_before = dev->cache.nr_taken;
	item->long_before = dev->cache.nr_long;
	if (item->dir == DT_WRITE) {
		dt_list_add_tail(&dev->cache.writes, &item->fifo);
		dev->cache.nr_writes++;
	} else {
		dt_list_init(&item->fifo);
	}
}

dt_internal void dt_cache_init(struct dt_cache *cache);
/* It is back, and not done: the gap is what it is charged. */
dt_internal u64 dt_cache_back(struct dt_dev *dev, struct dt_item *item,
			      u64 gap_ns);
/* It is done, @gap_ns after the one before: what it is to be charged. */
dt_internal u64 dt_cache_done(struct dt_dev *dev, struct dt_item *item,
			      u64 gap_ns);

#endif /* DISKTIME_CACHE_H */
