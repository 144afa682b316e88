// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Health: what happens when something is wrong.
 *
 * A scheduler that loses a request hangs a machine. So when the state
 * contradicts itself, or a group is not served though others are, the device
 * turns to plain arrival order over one list that no algorithm touches: every
 * queued item is on dev->all from its insertion to its dispatch, whatever the
 * lines say. Accounting goes on; shares do not hold. Rearming builds the lines and
 * their counters anew from what stands in the queues, and takes effect only if
 * all invariants hold afterwards.
 */
#include "account.h"
#include "chain.h"
#include "commit.h"
#include "entity.h"
#include "select.h"
#include "spell.h"

/* A request that waits longer than this, and than its share explains. */
#define STUCK_NS		(120 * DT_NSEC_PER_SEC)
/* By so much a group may be later than its share says. */
#define STUCK_FACTOR		4
/* More than the inverse of any class's floor. */
#define STUCK_CLASS		64
/* Whoever is told that there is work asks for it sooner. */
#define UNASKED_NS		(DT_NSEC_PER_SEC / 2)
/* Two years: for ever, and four times as much still fits a u64. */
#define PATIENCE_MAX_NS		(1ull << 56)

void dt_fail(struct dt_dev *dev, enum dt_fault fault, u64 now)
{
	struct dt_list *item;

	dt_clock(dev, now);
	if (dev->fault)
		return;
	dev->fault = fault;
	dt_commits_reset(dev);
	dt_spells_reset(dev);
	dev->holding = false;
	dev->light.awaited = NULL;
	dt_dev_derive(dev);
	dev->counts.faults++;
	dev->turn_grp = NULL;
	dev->turn_queue = NULL;
	dev->back = NULL;
	dt_chain_forget(dev, NULL);
	dev->hold_idle_ns = 0;
	/* One list from here on: the express items first. */
	while (!dt_list_empty(&dev->express)) {
		item = dev->express.prev;
		dt_list_del(item);
		dt_list_add_head(&dev->all, item);
	}
	dt_dev_update(dev);
}

static void clear_entity(struct dt_entity *ent)
{
	ent->ready.on = false;
	ent->gate.on = false;
	ent->nr_queued = 0;
	ent->nr_waiting = 0;
	/* Its line's virtual time begins anew, and all start even. */
	ent->vdisktime = 0;
	ent->vrest = 0;
	if (ent->level)
		dt_level_init(ent->level);
}

/* What is in flight or granted stays counted, and keeps its weight in. */
static void count_entity(struct dt_entity *ent)
{
	if (!ent->parent || !dt_entity_busy(ent))
		return;
	dt_level_of(ent)->active_weight[ent->class] += ent->weight;
	dt_level_of(ent)->nr_busy++;
}

/* Stand everything that is queued or waits at the gate in line again. */
static void rebuild_queue(struct dt_dev *dev, struct dt_queue *queue)
{
	struct dt_list *pos;

	for (pos = queue->fifo.next; pos != &queue->fifo; pos = pos->next)
		dt_path_queued(dev, queue, dev->clock_ns);
	for (pos = queue->urgent.next; pos != &queue->urgent; pos = pos->next)
		dt_path_queued(dev, queue, dev->clock_ns);
	for (pos = queue->waiters.next; pos != &queue->waiters; pos = pos->next)
		dt_path_wait(dev, queue, dev->clock_ns);
}

static void rebuild(struct dt_dev *dev)
{
	struct dt_list *pos, *each;
	struct dt_group *grp;
	struct dt_queue *queue;

	dev->nr_queued = 0;
	dev->nr_waiting = 0;
	dev->nr_active = 0;
	dt_list_init(&dev->active);
	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		grp = DT_CONTAINER(pos, struct dt_group, link);
		clear_entity(&grp->ent);
		clear_entity(&grp->leaf);
		dt_level_init(&grp->children);
		dt_list_init(&grp->active);
		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next) {
			queue = DT_CONTAINER(each, struct dt_queue, link);
			clear_entity(&queue->ent);
		}
	}
	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		grp = DT_CONTAINER(pos, struct dt_group, link);
		count_entity(&grp->ent);
		count_entity(&grp->leaf);
		if (dt_entity_busy(grp->own))
			dt_group_note_change(grp, true);
		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next) {
			queue = DT_CONTAINER(each, struct dt_queue, link);
			count_entity(&queue->ent);
			rebuild_queue(dev, queue);
		}
	}
}

void dt_rearm(struct dt_dev *dev, u64 now)
{
	u8 fault = dev->fault;

	if (!fault)
		return;
	dt_clock(dev, now);
	rebuild(dev);
	dev->fault = DT_OK;
	dt_dev_derive(dev);
	dt_dev_update(dev);
	if (dt_check(dev)) {
		dev->fault = fault;
		dt_dev_derive(dev);
		dt_dev_update(dev);
	}
}

/*
 * A group of weight 1 beside one of weight 10000 is served once in 100 s on a
 * disk of 10 ms a request, and two such pairs one above the other make it two
 * weeks, and rightly so: the mean charge divided by its share, with some slack.
 */
static u64 patience(const struct dt_dev *dev, const struct dt_group *grp)
{
	u64 wait = dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]);
	const struct dt_entity *ent;
	const struct dt_level *level;
	u64 ratio;
	int class;

	for (ent = grp->own; ent->parent; ent = ent->parent) {
		level = dt_level_of(ent);
		ratio = 1 + dt_div(level->active_weight[ent->class],
				   ent->weight);
		for (class = 0; class < ent->class; class++)
			if (level->active_weight[class]) {
				ratio *= STUCK_CLASS;
				break;
			}
		if (wait > dt_div(PATIENCE_MAX_NS, ratio))
			return PATIENCE_MAX_NS;
		wait *= ratio;
	}
	return dt_max(STUCK_NS, wait * STUCK_FACTOR);
}

void dt_watch(struct dt_dev *dev, u64 now)
{
	struct dt_item *oldest;
	struct dt_group *grp;
	u64 since;

	if (dev->work && !dev->nr_inflight &&
	    dt_before(dev->clock_ns + UNASKED_NS, now))
		dev->counts.unasked++;
	if (dev->fault || dt_list_empty(&dev->all))
		return;
	oldest = DT_CONTAINER(dev->all.next, struct dt_item, all);
	grp = oldest->queue->grp;
	since = dt_later(oldest->insert_ns, grp->last_dispatch_ns);
	if (dt_before(since + patience(dev, grp), now) &&
	    dt_before(since, dev->last_dispatch_ns))
		dt_fail(dev, DT_FAULT_STUCK, now);
}

const char *dt_fault_name(enum dt_fault fault)
{
	static const char *const names[DT_NR_FAULTS] = {
		[DT_OK] = "ok",
		[DT_FAULT_LOST] = "fifo: a ready line led to no request",
		[DT_FAULT_COUNT] = "fifo: a counter fell below zero",
		[DT_FAULT_STUCK] = "fifo: a request waited past the limit",
		[DT_FAULT_ASKED] = "fifo: asked for",
	};

	return fault < DT_NR_FAULTS ? names[fault] : "unknown";
}
