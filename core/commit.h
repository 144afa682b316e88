/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Commits beside buffered writers, on devices without turns. See commit.c. */
#ifndef DISKTIME_COMMIT_H
#define DISKTIME_COMMIT_H

#include "disktime.h"

/* What nobody waits for: a flusher's writes. */
static inline bool dt_is_async(const struct dt_queue *queue, enum dt_dir dir)
{
	return !queue->sync && dir == DT_WRITE;
}

/* Whether buffered writers are looked after: their requests are counted. */
static inline bool dt_commits_watched(const struct dt_dev *dev)
{
	return dev->commits.phase != DT_COMMITS_IDLE ||
	       dev->commits.nr_inflight || dev->commits.nr_sync;
}

dt_internal void dt_commits_init(struct dt_commits *commits);
/* Forget all: the device, its rule or its health has changed. */
dt_internal void dt_commits_reset(struct dt_dev *dev);
/* Instead of dt_path_queued(), except in DT_COMMITS_IDLE, as what follows. */
dt_internal void dt_commits_queued(struct dt_dev *dev, struct dt_item *item,
				   u64 now);
/* An item goes past the lines. */
dt_internal void dt_commits_passed(struct dt_dev *dev, struct dt_item *item);
dt_internal void dt_commits_sent(struct dt_dev *dev, struct dt_item *item);
/* One that is watched is done, or removed; in any phase. */
dt_internal void dt_commits_gone(struct dt_dev *dev, struct dt_item *item);
/*
 * In DT_COMMITS_IDLE, before a flusher's write is queued: whether it is for
 * dt_commits_queued() from here on, as somebody commits.
 */
dt_internal bool dt_commits_watch(struct dt_dev *dev, u64 now);
dt_internal void dt_commits_tick(struct dt_dev *dev);

/* Somebody has, within a second: who waits for that is not made to wait for turns. */
static inline bool dt_committed_lately(const struct dt_dev *dev)
{
	u64 ended_ns = dev->commits.ended_ns;

	return ended_ns && dt_before(dev->clock_ns, ended_ns + DT_NSEC_PER_SEC);
}

#endif /* DISKTIME_COMMIT_H */
