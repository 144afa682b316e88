/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The tree of entities: queues below leaves below groups. See entity.c. */
#ifndef DISKTIME_ENTITY_H
#define DISKTIME_ENTITY_H

#include "line.h"

/* The level in which an entity competes, or NULL for the root group. */
static inline struct dt_level *dt_level_of(const struct dt_entity *ent)
{
	return ent->parent ? ent->parent->level : NULL;
}

static inline struct dt_queue *dt_entity_queue(struct dt_entity *ent)
{
	return DT_CONTAINER(ent, struct dt_queue, ent);
}

/* Does it hold or want any request? */
static inline bool dt_entity_busy(const struct dt_entity *ent)
{
	return ent->nr_inflight ||
	       (ent->nr_queued | ent->nr_granted | ent->nr_waiting);
}

dt_internal void dt_level_init(struct dt_level *level);
dt_internal void dt_entity_init(struct dt_entity *ent, enum dt_kind kind,
		    struct dt_entity *parent, struct dt_level *level,
		    u32 weight, enum dt_class class);
/* One item more or less is queued below @queue. */
dt_internal void dt_path_queued(struct dt_dev *dev, struct dt_queue *queue, u64 now);
dt_internal void dt_path_unqueued(struct dt_dev *dev, struct dt_queue *queue);
/*
 * The first item of @queue goes to the device, charged @cost_ns for now. Returns
 * the worst class on its path.
 */
dt_internal enum dt_class dt_path_dispatched(struct dt_dev *dev,
					     struct dt_queue *queue,
					     u64 cost_ns, u64 now);
/* Both in one: an item of @queue goes to the device, and nothing is queued. */
dt_internal enum dt_class dt_path_passed(struct dt_dev *dev,
					 struct dt_queue *queue,
					 struct dt_group *grp, u64 cost_ns);
/* One of its items came back, and its charge is to be put right. */
dt_internal void dt_path_completed(struct dt_dev *dev, struct dt_queue *queue,
				   struct dt_group *grp, s64 more_ns);
/* One waiter, or one granted request, more or less below @queue. */
dt_internal void dt_path_wait(struct dt_dev *dev, struct dt_queue *queue, u64 now);
dt_internal void dt_path_unwait(struct dt_dev *dev, struct dt_queue *queue, bool granted);
dt_internal void dt_path_granted(struct dt_dev *dev, struct dt_queue *queue);
dt_internal void dt_path_settled(struct dt_dev *dev, struct dt_queue *queue);
dt_internal void dt_group_note_change(struct dt_group *grp, bool busy);

/* Keep dev->active, after the group's own entity has one more of anything. */
static inline void dt_group_more(struct dt_group *grp)
{
	if (unlikely(dt_list_empty(&grp->active)))
		dt_group_note_change(grp, true);
}

/* After it has one less. */
static inline void dt_group_less(struct dt_group *grp)
{
	if (unlikely(!dt_entity_busy(grp->own)))
		dt_group_note_change(grp, false);
}

/* Of those on dev->active. */
static inline struct dt_group *dt_active_group(const struct dt_list *pos)
{
	return DT_CONTAINER(pos, struct dt_group, active);
}

/* What they are, charges to a lone entity included. */
dt_internal u64 dt_entity_vdisktime(const struct dt_entity *ent);
dt_internal u64 dt_level_vtime(const struct dt_level *level,
			       enum dt_class class);
/* Put what the lone entity of a level was charged where others see it. */
dt_internal void dt_level_settle(struct dt_level *level);

/* An entity that was picked begins to be served: the level's virtual time. */
static inline void dt_level_started(struct dt_level *level,
				    struct dt_entity *ent)
{
	if (level->lone == ent) {
		if (level->lone_start_ns < level->lone_ns)
			level->lone_start_ns = level->lone_ns;
	} else {
		dt_line_started(&level->ready, ent->class, ent->vdisktime);
	}
}

/* Place an entity that becomes active by its level's virtual time. */
dt_inline void dt_entity_place(struct dt_dev *dev, struct dt_entity *ent);
/* Add to the charge of everybody from @ent to the root; may be negative. */
dt_internal void dt_path_charge(struct dt_dev *dev, struct dt_entity *ent, s64 time_ns);
/* The same for a queue among those of its group, and for nobody above. */
dt_internal void dt_queue_charge(struct dt_dev *dev, struct dt_queue *queue, s64 time_ns);
/* Neither behind nor ahead of others from here on, at any level. */
dt_internal void dt_path_level(struct dt_dev *dev, struct dt_entity *ent);
/* No further ahead than by so much disk time. */
dt_internal void dt_path_lead(struct dt_dev *dev, struct dt_entity *ent,
			      u64 most_ns);

#endif /* DISKTIME_ENTITY_H */
