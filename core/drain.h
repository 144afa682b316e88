/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Writes that a disk writes many at a time, while a read waits; see drain.c. */
#ifndef DISKTIME_DRAIN_H
#define DISKTIME_DRAIN_H

#include "disktime.h"

/*
 * A read was done, @gap_ns after the head was done before; @alone: with a write
 * that waited all the while. Whether the cache was written out meanwhile.
 */
dt_internal bool dt_drain_read(struct dt_dev *dev, const struct dt_item *item,
			       u64 gap_ns, bool alone);
/* A write was taken by the cache, @gap_ns after that: what it is charged. */
dt_internal u64 dt_drain_write(struct dt_dev *dev, struct dt_group *grp,
			       u64 gap_ns);
/* What is charged in advance has changed. */
dt_internal void dt_drain_look(struct dt_dev *dev);

#endif /* DISKTIME_DRAIN_H */
