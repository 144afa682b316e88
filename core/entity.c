// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Entities: the tree in which disk time is divided.
 *
 *	root group
 *	 |- leaf ------- queues of the root's own processes
 *	 |- group A
 *	 |   |- leaf --- queues
 *	 |   `- group A1
 *	 |       `------ queues
 *	 `- group B ---- queues
 *
 * A group's own processes compete with its child groups through one entity, its
 * leaf. A group without child groups, as most are, has its queues right below
 * it: a level with one entity in it divides nothing, and would cost as much as
 * one that does. Getting its first child, or losing the last, folds the leaf
 * out or in.
 *
 * Every entity competes with its siblings only; what it gets, its children
 * divide in the same way. A charge therefore walks from a queue to the root
 * and moves one node a level: O(depth * log n). The alternative, flattening
 * the tree into one line of effective weights, makes a charge O(log n) but any
 * change of who is active O(n), and shares drift while the weights are stale.
 *
 * An entity is active while anything below it is queued, granted or waits at
 * the gate. One that becomes active is placed:
 *
 *	vdisktime = max(vdisktime, v - credit), at most v + lead
 *
 * so that idling for a moment loses nothing and sleeping for an hour earns
 * one credit, no more. What is in flight does not make an entity active: a
 * light process that always has one request in the device would otherwise hold
 * its level's virtual time back for ever, and whoever came next would be
 * placed beside it and shut out everybody else until it had caught up.
 *
 * Most levels have one busy entity in them most of the time: a group's one
 * queue of reads, the one group that is at work. Its virtual time is compared
 * with nothing, so that its charges are only added up, as disk time, beside
 * the level's virtual time when it was picked last; both are put right when
 * another becomes busy or somebody looks.
 */
#include "commit.h"
#include "entity.h"
#include "select.h"
#include "serial.h"
#include "spell.h"
#include "wide.h"

/*
 * The credit of a sleeper, as disk time: a turn where there are turns, as who
 * was not waited for long enough has lost one; elsewhere this, enough for the
 * difference that a burst of completions makes.
 */
#define CREDIT_NS		(20 * DT_NSEC_PER_MSEC)

/* A lone entity's charges are put into its virtual time when they reach this. */
#define LONE_MAX_NS		((s64)DT_NSEC_PER_SEC)
/* It has not been picked since it is alone. */
#define LONE_NEVER		(-(1ll << 62))

void dt_entity_init(struct dt_entity *ent, enum dt_kind kind,
		    struct dt_entity *parent, struct dt_level *level,
		    u32 weight, enum dt_class class)
{
	*ent = (struct dt_entity) {
		.parent = parent,
		.level = level,
		.weight = weight,
		.class = class,
		.kind = kind,
	};
	if (level)
		dt_level_init(level);
}

/* A newcomer has earned no credit. Zero may be anywhere: times wrap. */
static void place_newcomer(struct dt_entity *ent)
{
	struct dt_level *level = dt_level_of(ent);

	if (!level)
		return;
	dt_level_settle(level);
	ent->vdisktime = level->ready.vtime[ent->class];
}

void dt_level_init(struct dt_level *level)
{
	int class;

	dt_line_init(&level->ready);
	dt_line_init(&level->gate);
	for (class = 0; class < DT_NR_CLASSES; class++)
		level->active_weight[class] = 0;
	level->nr_busy = 0;
	level->lone = NULL;
	level->lone_start_ns = LONE_NEVER;
	level->lone_ns = 0;
}

static bool entity_active(const struct dt_entity *ent)
{
	return ent->nr_queued || ent->nr_granted || ent->nr_waiting;
}

/*
 * Where the entity would stand if all the requests it already holds had been
 * served: the gate hands out requests in the order in which the device will
 * want them, not in the order in which it wants them now.
 */
static u64 gate_key(const struct dt_dev *dev, const struct dt_entity *ent)
{
	u64 cost = dev->cost_ns[DT_READ];
	u64 held = ent->nr_queued + ent->nr_granted;

	cost = dt_max(cost, dev->cost_ns[DT_WRITE]);
	return ent->vdisktime + dt_virtual(held * dt_max(cost, 1), ent->weight);
}

static noinline void gate_move_on(struct dt_dev *dev, struct dt_entity *ent)
{
	dt_line_move(&dt_level_of(ent)->gate, &ent->gate, ent->class,
		     gate_key(dev, ent));
}

static inline void gate_move(struct dt_dev *dev, struct dt_entity *ent)
{
	if (unlikely(ent->gate.on))
		gate_move_on(dev, ent);
}

static __always_inline void charge(struct dt_dev *dev, struct dt_level *level,
				   struct dt_entity *ent, s64 time_ns)
{
	if (level->lone == ent) {
		level->lone_ns += time_ns;
		return;
	}
	ent->vdisktime += dt_virtual_of(time_ns, ent->weight, &ent->vrest);
	if (ent->ready.on)
		dt_line_move(&level->ready, &ent->ready, ent->class,
			     ent->vdisktime);
	gate_move(dev, ent);
}

u64 dt_entity_vdisktime(const struct dt_entity *ent)
{
	const struct dt_level *level = dt_level_of(ent);
	u32 rest = ent->vrest;

	if (!level || level->lone != ent)
		return ent->vdisktime;
	return ent->vdisktime +
	       dt_virtual_of(level->lone_ns, ent->weight, &rest);
}

u64 dt_level_vtime(const struct dt_level *level, enum dt_class class)
{
	const struct dt_entity *ent = level->lone;
	u64 v = level->ready.vtime[class];
	u32 rest;

	if (!ent || ent->class != class || level->lone_start_ns == LONE_NEVER)
		return v;
	rest = ent->vrest;
	return dt_later(v, ent->vdisktime + dt_virtual_of(level->lone_start_ns,
							  ent->weight, &rest));
}

void dt_level_settle(struct dt_level *level)
{
	struct dt_entity *ent = level->lone;
	u64 change;

	if (!ent)
		return;
	level->ready.vtime[ent->class] = dt_level_vtime(level, ent->class);
	change = dt_virtual_of(level->lone_ns, ent->weight, &ent->vrest);
	ent->vdisktime += change;
	/* It has nobody to be moved past. */
	if (ent->ready.on)
		dt_line_move_alone(&ent->ready, ent->vdisktime);
	if (ent->gate.on)
		dt_line_move_alone(&ent->gate, ent->gate.key + change);
	level->lone_start_ns = LONE_NEVER;
	level->lone_ns = 0;
}

/* It is no longer alone, or goes away. */
static void end_lone(struct dt_level *level)
{
	dt_level_settle(level);
	level->lone = NULL;
}

static void set_own(struct dt_group *grp, struct dt_entity *own)
{
	struct dt_list *pos;

	grp->own = own;
	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next)
		DT_CONTAINER(pos, struct dt_queue, link)->ent.parent = own;
}

/* The first child comes: the group's own queues become one entity beside it. */
static void fold_out(struct dt_group *grp)
{
	struct dt_level *level = &grp->children;
	struct dt_entity *ent = &grp->ent, *leaf = &grp->leaf;

	leaf->parent = ent;
	leaf->nr_queued = ent->nr_queued;
	leaf->nr_granted = ent->nr_granted;
	leaf->nr_inflight = ent->nr_inflight;
	leaf->nr_waiting = ent->nr_waiting;
	leaf->vdisktime = level->ready.vtime[leaf->class];
	ent->level = level;
	set_own(grp, leaf);
	if (leaf->nr_queued)
		dt_line_add(&level->ready, &leaf->ready, leaf->class,
			    leaf->vdisktime, grp->dev->clock_ns);
	if (leaf->nr_waiting)
		dt_line_add(&level->gate, &leaf->gate, leaf->class,
			    gate_key(grp->dev, leaf), grp->dev->clock_ns);
	if (dt_entity_busy(leaf)) {
		level->active_weight[leaf->class] += leaf->weight;
		level->nr_busy++;
	}
}

/* The last child has gone, with nothing left below it. */
static void fold_in(struct dt_group *grp)
{
	struct dt_level *level = &grp->children;
	struct dt_entity *leaf = &grp->leaf;

	dt_line_del(&level->ready, &leaf->ready, leaf->class);
	dt_line_del(&level->gate, &leaf->gate, leaf->class);
	if (dt_entity_busy(leaf)) {
		level->active_weight[leaf->class] -= leaf->weight;
		level->nr_busy--;
	}
	end_lone(level);
	leaf->nr_queued = 0;
	leaf->nr_granted = 0;
	leaf->nr_inflight = 0;
	leaf->nr_waiting = 0;
	/* In no level, it can be given any weight and class. */
	leaf->parent = NULL;
	grp->ent.level = &grp->queues;
	set_own(grp, &grp->ent);
}

void dt_group_init(struct dt_group *grp, struct dt_dev *dev,
		   struct dt_group *parent, u32 weight, enum dt_class class)
{
	if (parent && !parent->nr_children++)
		fold_out(parent);
	dt_entity_init(&grp->ent, DT_KIND_GROUP, parent ? &parent->ent : NULL,
		       &grp->queues, weight, class);
	dt_entity_init(&grp->leaf, DT_KIND_LEAF, NULL, NULL, DT_WEIGHT_DEFAULT,
		       DT_BE);
	grp->leaf.level = &grp->queues;
	place_newcomer(&grp->ent);
	grp->own = &grp->ent;
	dt_level_init(&grp->children);
	grp->dev = dev;
	grp->think = (struct dt_think) { 0 };
	grp->usual_ns = 0;
	grp->last_dispatch_ns = dev->clock_ns;
	grp->lat_min_ns = 0;
	grp->nr_unharmed = 0;
	grp->writes = (struct dt_writes) { 0 };
	grp->reads = (struct dt_reads) { 0 };
	grp->head = (struct dt_head) { 0 };
	grp->lat_alone_ns = 0;
	grp->late_ns = 0;
	grp->alone_ns = 0;
	grp->judge_ns = 0;
	grp->again_ns = dev->clock_ns;
	grp->emptied_ns = 0;
	grp->nr_late = 0;
	grp->nr_asked = 0;
	grp->asked = 0;
	grp->slow = 0;
	grp->well_off = false;
	grp->paused = false;
	grp->nr_apart = 0;
	grp->apart_until_ns = dev->clock_ns;
	grp->dither_ns = 0;
	grp->dither_window = 0;
	grp->dither_from_ns = dev->busy_ns;
	grp->dithered_up = false;
	grp->nr_solos = 0;
	grp->solo_round = 0;
	grp->solo_ns = 0;
	grp->nr_wrote = 0;
	grp->odd = dev->nr_made++ & 1;
	grp->nr_children = 0;
	grp->nr_queues = 0;
	grp->stats = (struct dt_stats) { 0 };
	dt_list_init(&grp->queue_list);
	dt_list_init(&grp->active);
	dt_list_add_tail(&dev->groups, &grp->link);
}

bool dt_group_busy(const struct dt_group *grp)
{
	return dt_entity_busy(&grp->ent);
}

bool dt_queue_busy(const struct dt_queue *queue)
{
	return dt_entity_busy(&queue->ent);
}

static inline void become_busy(struct dt_level *level, struct dt_entity *ent)
{
	level->active_weight[ent->class] += ent->weight;
	level->nr_busy++;
	if (level->lone && level->lone != ent)
		end_lone(level);
}

/* One more below the entity will be queued, granted, in flight or wait. */
static inline void one_more(struct dt_level *level, struct dt_entity *ent)
{
	if (!dt_entity_busy(ent))
		become_busy(level, ent);
}

/* One less is. */
static inline void one_less(struct dt_level *level, struct dt_entity *ent)
{
	if (unlikely(!dt_entity_busy(ent))) {
		level->active_weight[ent->class] -= ent->weight;
		level->nr_busy--;
	}
}

void dt_group_note_change(struct dt_group *grp, bool busy)
{
	if (busy) {
		dt_list_add_tail(&grp->dev->active, &grp->active);
		grp->dev->nr_active++;
		dt_wide_woken(grp->dev);
	} else {
		dt_list_del(&grp->active);
		if (grp->dev->nr_active-- == 2)
			grp->dev->several_ns = grp->dev->clock_ns;
	}
}

/* The counters go to the parent, so that no disk time drops out of sight. */
static void inherit_stats(struct dt_group *parent, const struct dt_group *grp)
{
	const struct dt_stats *from = &grp->stats;
	struct dt_stats *to = &parent->stats;
	int i;

	for (i = 0; i < DT_NR_DIRS; i++) {
		to->time_ns[i] += from->time_ns[i];
		to->sectors[i] += from->sectors[i];
		to->ios[i] += from->ios[i];
	}
	for (i = 0; i < DT_NR_CAUSES; i++)
		to->wait_ns[i] += from->wait_ns[i];
	to->wait_max_ns = dt_max(to->wait_max_ns, from->wait_max_ns);
	to->idle_ns += from->idle_ns;
	to->dequeues += from->dequeues;
	to->slices += from->slices;
	to->express += from->express;
}

void dt_group_exit(struct dt_group *grp)
{
	struct dt_dev *dev = grp->dev;
	struct dt_group *parent;

	dt_forget_group(dev, grp);
	if (grp->ent.parent) {
		if (grp->ent.parent->level->lone == &grp->ent)
			end_lone(grp->ent.parent->level);
		parent = DT_CONTAINER(grp->ent.parent, struct dt_group, ent);
		inherit_stats(parent, grp);
		if (!--parent->nr_children)
			fold_in(parent);
	}
	dt_list_del(&grp->link);
}

void dt_queue_init(struct dt_queue *queue, struct dt_group *grp, bool sync,
		   u32 weight, enum dt_class class, u64 now)
{
	dt_entity_init(&queue->ent, DT_KIND_QUEUE, grp->own, NULL, weight,
		       class);
	place_newcomer(&queue->ent);
	queue->grp = grp;
	dt_list_init(&queue->fifo);
	dt_list_init(&queue->urgent);
	dt_list_init(&queue->waiters);
	dt_list_init(&queue->party);
	queue->nr_parked = 0;
	queue->spent = false;
	queue->wrote = 0;
	dt_tree_init(&queue->sorted);
	queue->next_sector = 0;
	queue->last_sectors = 0;
	queue->cost_ns[DT_READ] = 0;
	queue->cost_ns[DT_WRITE] = 0;
	queue->think = (struct dt_think) { .last_end_ns = now };
	queue->seek_mean = 0;
	queue->follow_ns = 0;
	queue->usual_ns = 0;
	queue->owing_ns = 0;
	queue->over_ns = 0;
	queue->nr_levelled = 0;
	queue->sync = sync;
	dt_list_add_tail(&grp->queue_list, &queue->link);
	grp->nr_queues++;
}

void dt_queue_exit(struct dt_queue *queue)
{
	struct dt_group *grp = queue->grp;

	dt_forget_queue(grp->dev, queue);
	dt_spells_forget(grp->dev, queue);
	dt_list_del(&queue->party);
	if (grp->queues.lone == &queue->ent)
		end_lone(&grp->queues);
	dt_list_del(&queue->link);
	grp->nr_queues--;
}

/* It was picked where the level's virtual time is now, and is not far from it. */
static inline bool lone_stands_well(const struct dt_level *level)
{
	const struct dt_entity *ent = level->lone;
	s64 ahead_ns = level->lone_ns - level->lone_start_ns;

	return level->lone_start_ns >= 0 &&
	       !dt_before(ent->vdisktime, level->ready.vtime[ent->class]) &&
	       ahead_ns > -(s64)CREDIT_NS && ahead_ns < (s64)DT_LEAD_MAX_NS;
}

static noinline void place_within(struct dt_dev *dev, struct dt_entity *ent,
				  u64 v)
{
	u64 credit, low, high;

	credit = dt_max(CREDIT_NS, dev->slice_ns);
	/* A turn ends with two that may be longer than it in the device. */
	if (dt_is_serial(dev))
		credit = dt_max(credit, 4 * dev->slice_ns);
	/*
	 * All of its requests are in the device, which may be busy with what
	 * others have left there: it has not slept.
	 */
	if (ent->nr_inflight) {
		credit = dt_max(credit, 12 * dev->slice_ns);
		if (dt_before(dev->clock_ns, dev->solo.owed_until_ns))
			credit = dt_max(credit, dev->solo.owed_ns);
	}
	low = v - dt_virtual(credit, ent->weight);
	high = v + dt_virtual(DT_LEAD_MAX_NS, ent->weight);
	if (dt_before(ent->vdisktime, low))
		ent->vdisktime = low;
	else if (dt_before(high, ent->vdisktime))
		ent->vdisktime = high;
	else
		return;
	ent->vrest = 0;
}

dt_inline void dt_entity_place(struct dt_dev *dev, struct dt_entity *ent)
{
	struct dt_level *level = ent->parent->level;
	s64 ahead;
	u64 v;

	if (level->lone == ent) {
		if (lone_stands_well(level))
			return;
		dt_level_settle(level);
	}
	v = level->ready.vtime[ent->class];
	ahead = (s64)(ent->vdisktime - v);
	/* Near enough for any weight, as it mostly is: no need to divide. */
	if (ahead < -(s64)((CREDIT_NS << DT_VSHIFT) / DT_WEIGHT_MAX) ||
	    ahead > (s64)((DT_LEAD_MAX_NS << DT_VSHIFT) / DT_WEIGHT_MAX))
		place_within(dev, ent, v);
}

/* It comes to stand in line. */
static noinline void first_queued(struct dt_dev *dev, struct dt_level *level,
				  struct dt_entity *ent, u64 now)
{
	one_more(level, ent);
	if (!ent->nr_granted && !ent->nr_waiting)
		dt_entity_place(dev, ent);
	dt_line_add(&level->ready, &ent->ready, ent->class, ent->vdisktime,
		    now);
}

dt_inline void dt_path_queued(struct dt_dev *dev, struct dt_queue *queue, u64 now)
{
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		struct dt_level *level = ent->parent->level;

		if (unlikely(!ent->nr_queued))
			first_queued(dev, level, ent, now);
		ent->nr_queued++;
		gate_move(dev, ent);
	}
	ent->nr_queued++;
	dev->nr_queued++;
	dt_group_more(queue->grp);
}

void dt_path_unqueued(struct dt_dev *dev, struct dt_queue *queue)
{
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		if (!--ent->nr_queued)
			dt_line_del(&dt_level_of(ent)->ready, &ent->ready,
				    ent->class);
		gate_move(dev, ent);
		one_less(ent->parent->level, ent);
	}
	ent->nr_queued--;
	dev->nr_queued--;
	dt_group_less(queue->grp);
}

void dt_queue_charge(struct dt_dev *dev, struct dt_queue *queue, s64 time_ns)
{
	charge(dev, dt_level_of(&queue->ent), &queue->ent, time_ns);
}

void dt_path_charge(struct dt_dev *dev, struct dt_entity *ent, s64 time_ns)
{
	for (; ent->parent; ent = ent->parent)
		charge(dev, ent->parent->level, ent, time_ns);
}

void dt_path_level(struct dt_dev *dev, struct dt_entity *ent)
{
	struct dt_level *level;

	for (; ent->parent; ent = ent->parent) {
		level = ent->parent->level;
		if (level->lone == ent)
			continue;
		ent->vdisktime = level->ready.vtime[ent->class];
		ent->vrest = 0;
		if (ent->ready.on)
			dt_line_move(&level->ready, &ent->ready, ent->class,
				     ent->vdisktime);
		gate_move(dev, ent);
	}
}

void dt_path_lead(struct dt_dev *dev, struct dt_entity *ent, u64 most_ns)
{
	struct dt_level *level;
	u64 most;

	for (; ent->parent; ent = ent->parent) {
		level = ent->parent->level;
		if (level->lone == ent)
			continue;
		dt_level_settle(level);
		most = level->ready.vtime[ent->class] +
		       dt_virtual(most_ns, ent->weight);
		if (!dt_before(most, ent->vdisktime))
			continue;
		ent->vdisktime = most;
		ent->vrest = 0;
		if (ent->ready.on)
			dt_line_move(&level->ready, &ent->ready, ent->class,
				     most);
		gate_move(dev, ent);
	}
}

/*
 * An entity that the others have left becomes the lone one, and one that stays
 * so is brought up to date before its sums grow out of bounds.
 */
static inline void note_lone(struct dt_level *level, struct dt_entity *ent)
{
	if (level->nr_busy == 1 && unlikely(level->lone != ent ||
					    level->lone_ns > LONE_MAX_NS)) {
		end_lone(level);
		level->lone = ent;
	}
}

/* From queued to in flight: as busy as before. */
dt_inline enum dt_class dt_path_dispatched(struct dt_dev *dev,
					   struct dt_queue *queue,
					   u64 cost_ns, u64 now)
{
	enum dt_class class = DT_RT;
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		struct dt_level *level = ent->parent->level;

		class = dt_max(class, (enum dt_class)ent->class);
		dt_line_served(&level->ready, ent->class, cost_ns, now);
		ent->nr_inflight++;
		if (!--ent->nr_queued)
			dt_line_del(&level->ready, &ent->ready, ent->class);
		charge(dev, level, ent, cost_ns);
		note_lone(level, ent);
	}
	ent->nr_queued--;
	ent->nr_inflight++;
	dev->nr_queued--;
	dev->nr_inflight++;
	return class;
}

static noinline void passed_among_others(struct dt_dev *dev,
					 struct dt_level *level,
					 struct dt_entity *ent, s64 cost_ns)
{
	one_more(level, ent);
	if (!ent->nr_granted && !ent->nr_waiting)
		dt_entity_place(dev, ent);
	dt_level_started(level, ent);
	charge(dev, level, ent, cost_ns);
	note_lone(level, ent);
}

/* The same for the lone one where it stands well: nothing but sums. */
static inline void passed_alone(struct dt_level *level, struct dt_entity *ent,
				s64 cost_ns)
{
	/* Nobody else is busy. */
	if (!level->nr_busy) {
		level->active_weight[ent->class] += ent->weight;
		level->nr_busy = 1;
	}
	dt_level_started(level, ent);
	level->lone_ns += cost_ns;
}

/* No floor to look at: who comes to stand in an empty line begins anew. */
dt_inline enum dt_class dt_path_passed(struct dt_dev *dev,
				       struct dt_queue *queue,
				       struct dt_group *grp, u64 cost_ns)
{
	enum dt_class class = DT_RT;
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		struct dt_level *level = ent->parent->level;

		class = dt_max(class, (enum dt_class)ent->class);
		if (likely(level->lone == ent && lone_stands_well(level) &&
			   level->lone_ns <= LONE_MAX_NS))
			passed_alone(level, ent, (s64)cost_ns);
		else
			passed_among_others(dev, level, ent, (s64)cost_ns);
		ent->nr_inflight++;
	}
	ent->nr_inflight++;
	dev->nr_inflight++;
	dt_group_more(grp);
	return class;
}

dt_inline void dt_path_completed(struct dt_dev *dev, struct dt_queue *queue,
				 struct dt_group *grp, s64 more_ns)
{
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		struct dt_level *level = ent->parent->level;

		ent->nr_inflight--;
		charge(dev, level, ent, more_ns);
		one_less(level, ent);
	}
	ent->nr_inflight--;
	dev->nr_inflight--;
	dt_group_less(grp);
}

void dt_path_wait(struct dt_dev *dev, struct dt_queue *queue, u64 now)
{
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		one_more(ent->parent->level, ent);
		if (!entity_active(ent))
			dt_entity_place(dev, ent);
		if (!ent->nr_waiting++)
			dt_line_add(&dt_level_of(ent)->gate, &ent->gate,
				    ent->class, gate_key(dev, ent), now);
	}
	ent->nr_waiting++;
	dev->nr_waiting++;
	dt_group_more(queue->grp);
}

void dt_path_unwait(struct dt_dev *dev, struct dt_queue *queue, bool granted)
{
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		ent->nr_granted += granted;
		if (!--ent->nr_waiting)
			dt_line_del(&dt_level_of(ent)->gate, &ent->gate,
				    ent->class);
		gate_move(dev, ent);
		if (!granted)
			one_less(ent->parent->level, ent);
	}
	ent->nr_granted += granted;
	ent->nr_waiting--;
	dev->nr_granted += granted;
	dev->nr_waiting--;
	dt_group_less(queue->grp);
}

void dt_path_granted(struct dt_dev *dev, struct dt_queue *queue)
{
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		one_more(ent->parent->level, ent);
		if (!entity_active(ent))
			dt_entity_place(dev, ent);
		ent->nr_granted++;
	}
	ent->nr_granted++;
	dev->nr_granted++;
	dt_group_more(queue->grp);
}

void dt_path_settled(struct dt_dev *dev, struct dt_queue *queue)
{
	struct dt_entity *ent;

	for (ent = &queue->ent; ent->parent; ent = ent->parent) {
		ent->nr_granted--;
		gate_move(dev, ent);
		one_less(ent->parent->level, ent);
	}
	ent->nr_granted--;
	dev->nr_granted--;
	dt_group_less(queue->grp);
}

/*
 * What an entity owes or is owed is disk time, and stays what it was: its
 * distance from its level's virtual time grows as its weight shrinks. Otherwise
 * a group raised from weight 1 to 10000 would first wait out what one request
 * weighed before, 40 s beside a group of weight 10000.
 */
static void reweigh(struct dt_level *level, struct dt_entity *ent, u32 weight)
{
	u64 v = level->ready.vtime[ent->class];
	bool behind = dt_before(ent->vdisktime, v);
	u64 lag = behind ? v - ent->vdisktime : ent->vdisktime - v;
	u64 change;

	lag = dt_min(lag, dt_virtual(DT_LEAD_MAX_NS, ent->weight));
	lag = dt_div(lag, weight) * ent->weight +
	      dt_div((lag - dt_div(lag, weight) * weight) * ent->weight, weight);
	change = (behind ? v - lag : v + lag) - ent->vdisktime;
	ent->vdisktime += change;
	ent->vrest = 0;
	if (ent->ready.on)
		dt_line_move(&level->ready, &ent->ready, ent->class,
			     ent->vdisktime);
	if (ent->gate.on)
		dt_line_move(&level->gate, &ent->gate, ent->class,
			     ent->gate.key + change);
}

void dt_entity_set_weight(struct dt_entity *ent, u32 weight)
{
	struct dt_level *level = dt_level_of(ent);

	if (level) {
		dt_level_settle(level);
		if (dt_entity_busy(ent))
			level->active_weight[ent->class] +=
				(u64)weight - ent->weight;
		reweigh(level, ent, weight);
	}
	ent->weight = weight;
}

void dt_entity_set_class(struct dt_entity *ent, enum dt_class class, u64 now)
{
	struct dt_level *level = dt_level_of(ent);
	bool ready = ent->ready.on, gate = ent->gate.on;
	u64 lag, ahead;

	if (ent->class == class)
		return;
	if (!level) {
		ent->class = class;
		return;
	}
	dt_level_settle(level);
	if (ready)
		dt_line_del(&level->ready, &ent->ready, ent->class);
	if (gate)
		dt_line_del(&level->gate, &ent->gate, ent->class);
	lag = ent->vdisktime - level->ready.vtime[ent->class];
	if (dt_entity_busy(ent)) {
		level->active_weight[ent->class] -= ent->weight;
		level->active_weight[class] += ent->weight;
	}
	ahead = ent->gate.key - ent->vdisktime;
	ent->class = class;
	/* It keeps its distance from the others, now from other ones. */
	ent->vdisktime = level->ready.vtime[class] + lag;
	if (ready)
		dt_line_add(&level->ready, &ent->ready, class, ent->vdisktime,
			    now);
	if (gate)
		dt_line_add(&level->gate, &ent->gate, class,
			    ent->vdisktime + ahead, now);
}
