/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef DISKTIME_CHAIN_H
#define DISKTIME_CHAIN_H

#include "disktime.h"

/* An item is queued, before anything counts it. Where there are turns. */
dt_internal void dt_chain_queued(struct dt_dev *dev, const struct dt_item *item);
/* One that goes express is sent, before anything counts it as in flight. */
dt_internal void dt_chain_sent(struct dt_dev *dev, struct dt_item *item);
/* One is back, and was charged @took_ns. */
dt_internal void dt_chain_back(struct dt_dev *dev, const struct dt_item *item,
			       u64 took_ns);
/* One is done, and nothing counts it any more. Where there are turns. */
dt_internal void dt_chain_done(struct dt_dev *dev, const struct dt_item *item);
/* The group goes, or with NULL whoever waits. */
dt_internal void dt_chain_forget(struct dt_dev *dev, const struct dt_group *grp);

/* How many links @grp waits for in flight. */
static inline u32 dt_chain_links(const struct dt_dev *dev,
				 const struct dt_group *grp)
{
	return dev->chain.grp == grp ? dev->chain.nr_links : 0;
}

#endif /* DISKTIME_CHAIN_H */
