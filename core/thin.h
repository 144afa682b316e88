/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* How many requests a device works at side by side, as it is seen with few. See thin.c. */
#ifndef DISKTIME_THIN_H
#define DISKTIME_THIN_H

#include "disktime.h"

/* So many are in flight while it is looked at. */
#define DT_THIN_NR		4

/* Whether it may be looked at now. */
static inline bool dt_thin_is_due(const struct dt_dev *dev)
{
	/* Who is alone is in nobody's way. */
	return dev->nr_active > 1 && dev->nr_inflight > 2 * DT_THIN_NR &&
	       !dt_before(dev->clock_ns, dev->wide.thin.next_ns);
}

/*
 * Begins; a request stays in the device for about @stay_ns. Let in no more than @few.
 */
dt_internal void dt_thin_begin(struct dt_dev *dev, u32 few, u64 stay_ns);
/* A request is complete meanwhile. Whether it is over: thin.enough. */
dt_internal bool dt_thin_note(struct dt_dev *dev, const struct dt_item *item);

#endif /* DISKTIME_THIN_H */
