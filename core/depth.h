/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Depth: how much is in flight while somebody asks for little. See depth.c. */
#ifndef DISKTIME_DEPTH_H
#define DISKTIME_DEPTH_H

#include "disktime.h"

/* Forget what was found: the device or its depth has changed. */
dt_internal void dt_depth_init(struct dt_dev *dev);
/* It goes away. */
dt_internal void dt_depth_forget(struct dt_dev *dev,
				 const struct dt_group *grp);
/* The part of the device that is due to a group by weight; 2^-16. */
dt_internal u64 dt_share_of(const struct dt_group *grp);
/* Whether the group is further behind than what is in flight explains. */
dt_inline bool dt_is_light(const struct dt_dev *dev, const struct dt_group *grp);
/* Nobody is favoured or held back for now; what was found before holds afterwards. */
dt_internal void dt_depth_pause(struct dt_dev *dev);
dt_internal void dt_depth_resume(struct dt_dev *dev);
/* Nobody is favoured or held back, whatever was known of who is late. */
dt_internal void dt_depth_anew(struct dt_dev *dev);
/* Who asks for little could use much, and has it. */
dt_internal bool dt_is_well_off(const struct dt_dev *dev,
				const struct dt_group *grp);
/* With no room left: whether what would be dispatched now goes beyond that. */
dt_internal bool dt_lets_through(struct dt_dev *dev);
/* A request is complete, and no longer counted. */
dt_inline void dt_depth_note(struct dt_dev *dev, const struct dt_item *item);

/* Whether anything is queued that goes first whatever the lines say. */
static inline bool dt_favoured(const struct dt_dev *dev)
{
	return unlikely(dev->light.first) && dev->light.first->own->nr_queued;
}

/* Whether one more of this group may be in flight. */
static inline bool dt_room_for(const struct dt_dev *dev, bool light)
{
	return light ? dev->nr_inflight < dev->depth_hw :
		       dev->nr_inflight < dev->depth &&
		       (dev->nr_heavy < dev->limit ||
			(!dev->nr_inflight && !dev->holding));
}

/* Writes are done sooner than any read: they are written later. */
static inline bool dt_has_cache(const struct dt_dev *dev)
{
	return dev->quick[DT_WRITE].ns < dev->quick[DT_READ].ns;
}

/* The least that a request took which was no smaller, whoever's it was, or @ns. */
static inline u64 dt_quickest(const struct dt_dev *dev,
			      const struct dt_item *item, u64 ns)
{
	const struct dt_quick *quick = &dev->quick[item->dir];

	return quick->ns && item->sectors <= quick->sectors ?
	       dt_min(ns, quick->ns) : ns;
}

#endif /* DISKTIME_DEPTH_H */
