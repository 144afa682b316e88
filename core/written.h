/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What writes take behind a cache that is full. See written.c. */
#ifndef DISKTIME_WRITTEN_H
#define DISKTIME_WRITTEN_H

#include "disktime.h"

/* Nothing is known, or the device has changed. */
dt_internal void dt_written_init(struct dt_dev *dev);
/* One of several writes is complete. */
dt_internal void dt_written_note(struct dt_dev *dev, const struct dt_item *item,
				 u64 latency);
/* That much more was done. */
static inline void dt_written_count(struct dt_dev *dev, enum dt_dir dir, u64 nr,
				    u64 sectors)
{
	dev->written.all.nr[dir] += nr;
	dev->written.all.sectors[dir] += sectors;
}

/*
 * A window of cost.c's is over, in which nobody had the device for itself. Whether what
 * it says of costs is not to be gone by, as more is known here.
 */
dt_internal bool dt_written_window(struct dt_dev *dev,
				   const struct dt_load *load, u64 busy_ns);
/* Whether a group is charged more than its costs in the span that begins, or less. */
dt_internal bool dt_written_up(const struct dt_dev *dev,
			       const struct dt_group *grp);
/*
 * What there is to be charged, of @left_ns that went by and nobody was, for a request
 * that takes @cost_ns.
 */
dt_internal u64 dt_written_left(struct dt_dev *dev, u64 left_ns, u64 cost_ns);
/* There was something else meanwhile. */
dt_internal void dt_written_end(struct dt_dev *dev);

/* Whether all that is done are writes behind a cache that is full. */
static inline bool dt_is_written(const struct dt_dev *dev)
{
	return dev->written.on;
}

/* And whether the device is busy with those where nothing is in flight. */
static inline bool dt_written_goes_on(const struct dt_dev *dev)
{
	return dev->written.on && dev->written.goes_on;
}

/* And whether it is known what they take. */
static inline bool dt_written_known(const struct dt_dev *dev)
{
	return dev->written.on && dev->written.known;
}

/* And whether that is no first guess any more. */
static inline bool dt_written_settled(const struct dt_dev *dev)
{
	return dev->written.on &&
	       dev->written.nr_since >= DT_WRITTEN_SETTLED;
}

#endif /* DISKTIME_WRITTEN_H */
