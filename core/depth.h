/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#ifndef DISKTIME_DEPTH_H
#define DISKTIME_DEPTH_H

#include "disktime.h"

dt_internal void dt_depth_init(struct dt_dev *dev);
dt_internal bool dt_first_is_light(struct dt_dev *dev);
dt_internal bool dt_is_light(struct dt_dev *dev, const struct dt_group *grp);
dt_internal void dt_depth_note(struct dt_dev *dev, const struct dt_item *item);

#endif /* DISKTIME_DEPTH_H */
