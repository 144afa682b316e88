/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Pauses: fewer than one in flight of those who are held back. See pace.c. */
#ifndef DISKTIME_PACE_H
#define DISKTIME_PACE_H

#include "disktime.h"

/* With a limit of one: the others are to have this part less of it; 2^-16. */
dt_internal void dt_pause_more(struct dt_dev *dev, u64 part);
/* Or there are pauses, and it is to have this part more. */
dt_internal void dt_pause_less(struct dt_dev *dev, u64 part);
/* A request is complete, and no longer counted. */
dt_internal void dt_pause_note(struct dt_dev *dev, const struct dt_item *item,
			       u64 latency);

#endif /* DISKTIME_PACE_H */
