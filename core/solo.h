/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Solos: what a group's requests take where it is alone. See solo.c. */
#ifndef DISKTIME_SOLO_H
#define DISKTIME_SOLO_H

#include "disktime.h"

/* Nobody fills a device with fewer. */
#define DT_LITTLE		16

/* Forget what was found: the device or its depth has changed. */
dt_internal void dt_solo_init(struct dt_dev *dev);
/*
 * Each of all that are active could fill the device, and what it has alone is
 * made up for before long.
 */
dt_internal bool dt_solo_all_may(const struct dt_dev *dev);
/* Writes are done before they are written, and the rest is done beside reads. */
dt_internal bool dt_solo_leaves_behind(const struct dt_dev *dev);
/*
 * Nobody wrote for so long, in which a cache was written: for as long it takes more
 * than it always does, and what all do together is no measure.
 */
dt_internal void dt_solo_unwritten(struct dt_dev *dev, u64 ns);
/* Whether it is time that this group were alone; and so it is, if it may. */
dt_internal bool dt_solo_is_due(const struct dt_dev *dev,
				const struct dt_group *grp);
dt_internal bool dt_solo_begin(struct dt_dev *dev, struct dt_group *grp,
			       u64 stay_ns);
/* The group goes away; if it was alone all are served again. */
dt_internal void dt_solo_forget(struct dt_dev *dev, const struct dt_group *grp);
/* A request is complete meanwhile. */
dt_internal void dt_solo_note(struct dt_dev *dev);
/* A window of cost.c's is over, with one group alone or with all. */
dt_internal void dt_solo_window(struct dt_dev *dev, const struct dt_load *load,
				u64 busy_ns);
dt_internal void dt_solo_others(struct dt_dev *dev, const struct dt_load *load,
				u64 busy_ns);

#endif /* DISKTIME_SOLO_H */
