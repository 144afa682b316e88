/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef DISKTIME_SELECT_H
#define DISKTIME_SELECT_H

#include "disktime.h"

/* Derive whether there is work, after anything has changed. */
void dt_dev_update(struct dt_dev *dev);
/* It goes away: its turn ends, and nobody waits for it any more. */
void dt_forget_group(struct dt_dev *dev, struct dt_group *grp);
void dt_forget_queue(struct dt_dev *dev, struct dt_queue *queue);
/* How many items may be in flight now. */
u32 dt_dev_depth(const struct dt_dev *dev);

#endif /* DISKTIME_SELECT_H */
