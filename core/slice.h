/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Readers one after the other, in the turn that is theirs. See slice.c. */
#ifndef DISKTIME_SLICE_H
#define DISKTIME_SLICE_H

#include "disktime.h"

/* Turns begin: how the readers' is shared best is to be found anew. */
dt_internal void dt_slices_init(struct dt_dev *dev);
/* The writers' turn begins. */
dt_internal void dt_slices_begin(struct dt_dev *dev);
/* Reads were not quick in the slots before. */
dt_internal void dt_slices_slow(struct dt_dev *dev);
/* A read of @units was done; see spell.c. */
dt_internal void dt_slices_note(struct dt_dev *dev, struct dt_group *grp,
				u64 units, bool theirs);
/* A read of @units was sent, which may be enough of its group's for now. */
dt_internal void dt_slices_sent(struct dt_dev *dev, struct dt_queue *queue,
				u64 units);
/* One of the group's requests is back, of those that were enough. */
dt_internal void dt_slices_back(struct dt_dev *dev, struct dt_group *grp);
/* Who has read its share of @units in the writers' turn waits for the rest of that. */
dt_internal void dt_slices_hold(struct dt_dev *dev, u64 units);
/* The drain begins, the readers' turn, and a slot of either is over. */
dt_internal void dt_slices_drain(struct dt_dev *dev);
dt_internal void dt_slices_read(struct dt_dev *dev);
dt_internal void dt_slices_tick(struct dt_dev *dev);
/* In this drain nobody was quick. */
dt_internal void dt_slices_late(struct dt_dev *dev);
/* What who has the device can do; @most: what all can together. */
dt_internal u64 dt_slices_most(const struct dt_dev *dev, u64 most);
/* Whether something is still to be seen in the readers' turn, whatever the time. */
dt_internal bool dt_slices_go_on(const struct dt_dev *dev);
/* It is over. */
dt_internal void dt_slices_end(struct dt_dev *dev);
/*
 * What readers did until reads were quick of what each does alone, by that which had least
 * of its share: as if they were one that is due the part of all; @had as below.
 */
dt_internal u64 dt_slices_kept(struct dt_dev *dev, u64 theirs_ns, u64 had);
/*
 * What readers had of the writers' turn, as if they were one that is due @part: so that
 * each who had less than its share has as much as the writers in the end; all in 2^-16.
 * @had: the same by all of them together, which is it where they were not alone yet.
 */
dt_internal u64 dt_slices_had(struct dt_dev *dev, u64 theirs_ns, u64 part,
			      u64 had);
/* Several read, and what each does alone is not known, so that this is to be seen first. */
dt_internal bool dt_slices_unknown(const struct dt_dev *dev);
dt_internal void dt_slices_forget(struct dt_dev *dev, const struct dt_group *grp);

/* Whether one of the readers has the device for itself. */
static inline bool dt_is_sliced(const struct dt_dev *dev)
{
	return dev->spells.slices.grp;
}

#endif /* DISKTIME_SLICE_H */
