// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lines: who among the children of one entity is served next.
 *
 * Model. Start-time fair queueing, extended to several requests in flight
 * (SFQ(D)). Every entity carries a virtual time: the disk time that it was
 * charged, divided by its weight. The entity with the least is served, and its
 * virtual time then grows by the charge. The level's own virtual time v is the
 * virtual time that the entity served last had *before* it was charged - its
 * start tag. While two entities stay in line, the disk times they receive,
 * divided by their weights, differ by no more than one request of each (plus
 * what is in flight), whatever the device's speed does.
 *
 * Why v is a start tag. The minimum over those in line would jump ahead by a
 * whole request of a light-weight entity whenever that one is alone in line
 * for an instant; an entity that issues again just then would be placed behind
 * where it stood, and lose what it was owed. For the same reason v stands still
 * while an entity is served without having been picked, in its turn or ahead of
 * its turn: v is where the turn began, not how far it has got.
 *
 * Classes. One tree a class; a better class is served first. To starve nobody
 * a lower class that has waited accumulates a debt: 1/DIV of the disk time
 * that the next better class present receives, served as soon as it is
 * positive, and in any case one request once CAP has passed since the last.
 *
 *		DIV	CAP	why
 *   BE		48	500 ms	with RT backlogged RT keeps 97.9 %
 *   writeback	8	100 ms	readers first, yet a flusher always moves
 *   IDLE	48	1.5 s	48 parts of 49 for BE. Below RT one request in
 *				each CAP is to be less than 3 % of the 1/49
 *				that BE has: so it is from 1090 requests a
 *				second on, with a CAP of 1 s from 1630 on
 *
 * Looking late. Who is charged moves back in line, at dispatch by an estimate
 * and at completion by what that was wrong. Only who is first matters, so that
 * an entity that moves back stays where it is on the tree, too far in front,
 * until it is found there: no entity stands before its place on the tree, so
 * the first that stands where it is found is the first of all. One that moves
 * to the front of its place on the tree is moved at once. Of entities that
 * stand at the same virtual time the one that came there first goes first, be
 * it found there sooner or later.
 *
 * All operations are O(log n) in the entities of one level.
 */
#include "line.h"

static const struct {
	u32 div;
	u64 cap_ns;
} floors[DT_NR_CLASSES] = {
	[DT_RT]		= { 1, 0 },
	[DT_BE]		= { 48, 500 * DT_NSEC_PER_MSEC },
	[DT_WRITEBACK]	= { DT_WRITEBACK_FLOOR, 100 * DT_NSEC_PER_MSEC },
	[DT_IDLE]	= { 48, 1500 * DT_NSEC_PER_MSEC },
};

void dt_line_init(struct dt_line *line)
{
	int class;

	for (class = 0; class < DT_NR_CLASSES; class++) {
		dt_tree_init(&line->trees[class]);
		line->vtime[class] = 0;
		line->floors[class].owed_ns = 0;
		line->floors[class].since_ns = 0;
	}
	line->nr = 0;
	line->present = 0;
}

void dt_line_add(struct dt_line *line, struct dt_spot *spot,
		 enum dt_class class, u64 key, u64 now)
{
	struct dt_floor *floor = &line->floors[class];

	if (!line->trees[class].nr) {
		/*
		 * What was owed while nobody stood here lapses; what the class
		 * has had in advance does not, or a lone process that waits
		 * for each of its requests would be served every time.
		 */
		floor->owed_ns = dt_min(floor->owed_ns, 0);
		floor->since_ns = now;
	}
	dt_tree_add(&line->trees[class], &spot->node, key);
	spot->key = key;
	spot->came = spot->node.came;
	spot->on = true;
	line->nr++;
	line->present |= 1u << class;
}

void dt_line_del(struct dt_line *line, struct dt_spot *spot,
		 enum dt_class class)
{
	if (unlikely(!spot->on))
		return;
	dt_tree_del(&line->trees[class], &spot->node);
	spot->on = false;
	line->nr--;
	if (!line->trees[class].nr)
		line->present &= ~(1u << class);
}

struct dt_spot *dt_line_look(struct dt_tree *tree, struct dt_spot *spot)
{
	struct dt_node *node;

	do {
		node = dt_tree_move_first(tree, spot->key, spot->came);
		spot = DT_CONTAINER(node, struct dt_spot, node);
	} while (spot->came != node->came);
	return spot;
}

bool dt_line_due(const struct dt_line *line, enum dt_class class, u64 now)
{
	const struct dt_floor *floor = &line->floors[class];

	return line->trees[class].nr &&
	       (floor->owed_ns > 0 ||
		!dt_before(now, floor->since_ns + floors[class].cap_ns));
}

enum dt_class dt_line_class(const struct dt_line *line, u64 now)
{
	int best = dt_line_best(line), class;

	for (class = DT_NR_CLASSES - 1; class > best; class--)
		if (dt_line_due(line, class, now))
			break;
	return (enum dt_class)class;
}

void dt_line_floors(struct dt_line *line, enum dt_class class, u64 cost_ns)
{
	u32 better = line->present & ((1u << class) - 1);
	u32 worse = line->present & ~((2u << class) - 1);
	int lower;

	/*
	 * Where nobody better waits it is not on the floor's account, but for
	 * what is owed: a better process that waits for each of its requests
	 * is not in line when the floor is due.
	 */
	if (better || line->floors[class].owed_ns > 0)
		line->floors[class].owed_ns -= cost_ns;
	if (worse) {
		lower = __builtin_ctz(worse);
		line->floors[lower].owed_ns +=
			dt_div(cost_ns, floors[lower].div);
	}
}
