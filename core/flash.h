/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What flash takes: times that are of a drive as it is sold, on one that is slower. */
#ifndef DISKTIME_FLASH_H
#define DISKTIME_FLASH_H

#include "disktime.h"

/* A read, and each of its sectors. */
#define DT_FLASH_NS		(100 * DT_NSEC_PER_USEC)
#define DT_FLASH_SECTOR_NS	(DT_NSEC_PER_USEC / 3)
/* The quickest of many that are larger than this has waited for the interface. */
#define DT_FLASH_SECTORS	128
#define DT_CROWD_SECTOR_NS	DT_NSEC_PER_USEC
/* A small one takes so much longer in a crowd. */
#define DT_CROWD_NS		(20 * DT_NSEC_PER_USEC)

/* What a read of flash takes, or may seem to where there are many. */
static inline u64 dt_flash_ns(u32 sectors)
{
	if (sectors > DT_FLASH_SECTORS)
		return DT_FLASH_NS + sectors * DT_CROWD_SECTOR_NS;
	return DT_FLASH_NS + DT_CROWD_NS + sectors * DT_FLASH_SECTOR_NS;
}

/* A cache takes them. Not where they are done a little sooner than reads, as behind a network. */
static inline bool dt_takes_writes(const struct dt_dev *dev)
{
	const struct dt_quick *writes = &dev->quick[DT_WRITE];

	return writes->ns && 2 * writes->ns < dev->quick[DT_READ].ns;
}

/*
 * It does, or one is done as soon as flash does a read of its size. Behind a network none
 * is, unless it is large; but large reads take longer there than small writes.
 */
static inline bool dt_is_flash(const struct dt_dev *dev)
{
	const struct dt_quick *writes = &dev->quick[DT_WRITE];

	return (writes->ns && writes->ns <= dt_flash_ns(writes->sectors)) ||
	       (4 * writes->sectors >= dev->quick[DT_READ].sectors &&
		dt_takes_writes(dev));
}

/* So many times @ns as the quickest read took longer than one of flash does; @ns at least. */
static inline u64 dt_flash_slower(const struct dt_dev *dev, u64 ns)
{
	const struct dt_quick *quick = &dev->quick[DT_READ];
	u64 flash_ns = dt_flash_ns(quick->sectors);

	return quick->ns <= flash_ns ? ns : dt_div(ns * quick->ns, flash_ns);
}

#endif /* DISKTIME_FLASH_H */
