/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Lines: one level's entities, by class and by virtual time. See line.c. */
#ifndef DISKTIME_LINE_H
#define DISKTIME_LINE_H

#include "disktime.h"

/* Of what the better classes have flushers have one part in so many. */
#define DT_WRITEBACK_FLOOR	8

/*
 * Virtual time is disk time divided by weight, in units of 2^-16 ns at weight
 * 1: a group of weight 1 that has a device to itself advances by 6.6e13 a
 * second, one of weight 10000 by 6.6e9, where one microsecond still counts
 * 6553 units. Compares are wrap-safe for distances below 2^63, that is 39
 * hours of disk time at weight 1; DT_LEAD_MAX_NS keeps the distance of any
 * active entity from its level's virtual time far below that.
 */
#define DT_VSHIFT		16

/* No single charge counts for more: a suspended or failing device is not work. */
#define DT_CHARGE_MAX_NS	(10 * DT_NSEC_PER_SEC)

/* No entity starts further ahead of its level than this disk time. */
#define DT_LEAD_MAX_NS		(60 * DT_NSEC_PER_SEC)

/* Disk time, divided by weight, as virtual time. */
static inline u64 dt_virtual(u64 time_ns, u32 weight)
{
	return dt_div(time_ns << DT_VSHIFT, weight);
}

/*
 * The same for a charge, which may be negative. What the division leaves is
 * kept for the next one, so that it does not matter whether charges are made
 * one by one or in sum.
 */
static inline u64 dt_virtual_of(s64 time_ns, u32 weight, u32 *rest)
{
	s64 amount = time_ns * (1 << DT_VSHIFT) + *rest;
	u64 v;

	if (likely(amount >= 0))
		v = dt_div((u64)amount, weight);
	else
		v = -dt_div((u64)-amount + weight - 1, weight);
	*rest = (u32)((u64)amount - v * weight);
	return v;
}

dt_internal void dt_line_init(struct dt_line *line);
dt_internal void dt_line_add(struct dt_line *line, struct dt_spot *spot,
		 enum dt_class class, u64 key, u64 now);
dt_internal void dt_line_del(struct dt_line *line, struct dt_spot *spot,
		 enum dt_class class);
/* Whether @class is to be served now whatever better ones wait. */
dt_internal bool dt_line_due(const struct dt_line *line, enum dt_class class, u64 now);
/* The first of a class, where @spot, first on the tree, may have moved on. */
dt_internal struct dt_spot *dt_line_look(struct dt_tree *tree, struct dt_spot *spot);
/* The class to be served next, where several stand in a line. */
dt_internal enum dt_class dt_line_class(const struct dt_line *line, u64 now);
/* One of @class got @cost_ns where another class waits, or it was owed. */
dt_internal void dt_line_floors(struct dt_line *line, enum dt_class class, u64 cost_ns);

/* Somebody who stands in line goes to @key; on the tree only when looked for. */
static inline void dt_line_move(struct dt_line *line, struct dt_spot *spot,
				enum dt_class class, u64 key)
{
	struct dt_tree *tree = &line->trees[class];

	if (key == spot->key)
		return;
	spot->key = key;
	spot->came = ++tree->came;
	if (unlikely(dt_before(key, spot->node.key)))
		dt_tree_move_as_of(tree, &spot->node, key, spot->came);
}

/* The same for one who is the only one of its class in line. */
static inline void dt_line_move_alone(struct dt_spot *spot, u64 key)
{
	spot->key = key;
	spot->node.key = key;
	spot->came = spot->node.came;
}

/* The best class that has anybody in the line, or DT_NR_CLASSES. */
static inline enum dt_class dt_line_best(const struct dt_line *line)
{
	return line->present ? (enum dt_class)__builtin_ctz(line->present) :
			       DT_NR_CLASSES;
}

/* Whether more than one class is in line. */
static inline bool dt_line_mixed(const struct dt_line *line)
{
	return line->present & (line->present - 1);
}

/* The spot to be served next, or NULL. */
static inline struct dt_spot *dt_line_pick(struct dt_line *line, u64 now)
{
	u32 present = line->present;
	enum dt_class class;
	struct dt_spot *spot;

	if (!present)
		return NULL;
	class = (enum dt_class)__builtin_ctz(present);
	/* Mostly all are of one class, and there is no floor to look at. */
	if (unlikely(dt_line_mixed(line)))
		class = dt_line_class(line, now);
	spot = DT_CONTAINER(line->trees[class].first, struct dt_spot, node);
	if (spot->came != spot->node.came)
		spot = dt_line_look(&line->trees[class], spot);
	return spot;
}

/* One of @class that stands at @key begins to be served. */
static inline void dt_line_started(struct dt_line *line, enum dt_class class,
				   u64 key)
{
	line->vtime[class] = dt_later(line->vtime[class], key);
}

/* One of @class got @cost_ns: keeps the floors. */
static inline void dt_line_served(struct dt_line *line, enum dt_class class,
				  u64 cost_ns, u64 now)
{
	struct dt_floor *floor = &line->floors[class];

	floor->since_ns = now;
	if (unlikely(dt_line_mixed(line) || floor->owed_ns > 0))
		dt_line_floors(line, class, cost_ns);
}

#endif /* DISKTIME_LINE_H */
