// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The gate: who gets the next free request.
 *
 * A device has a fixed number of requests (tags), two for a disk that takes
 * one at a time. Whoever finds none free has to wait before its request
 * exists, where no scheduler sees it. If those waiters barge, a group with
 * many of them has all the requests, and selection is left with nothing to
 * select from: weights 40, 20 and 10 end as 75, 20 and 5 with 16 requests.
 *
 * So waiters stand in lines of their own, shaped like the ready lines, and a
 * request that becomes free is handed to one of them. The order is that in
 * which the device will want them: an entity stands at
 *
 *	vdisktime + held * mean charge / weight
 *
 * the virtual time it will have when all that it holds already has been
 * served. With two requests and three groups the gate is the scheduler, one
 * request ahead of the device.
 *
 * Order alone is not enough: a process asks for one request at a time, and
 * where completions come in bursts there are more free requests than waiters
 * for a moment, and they would go to each alike. So each group, and each
 * process in it, has a part of the requests in proportion to its share among
 * those that hold or want any,
 *
 *	part = requests * product over the path of weight / active weight
 *
 * which is rarely a whole number. The whole requests in it are kept for the
 * group while it is active. What the fractions leave goes, one more for each,
 * to who is furthest behind in disk time, if that leaves free what the others'
 * whole parts still lack: where the device takes all that is queued at once,
 * the parts are the shares, and this is all the feedback there is. Beyond its part it gets a request only while
 * the device could not be kept full with what all hold together. So no disk
 * time is lost by keeping requests free, and who asks for few does not hold
 * the rest back. But where there are as many requests as the device takes, that is
 * always so, and who has a hundred waiting has each that is free before somebody
 * whose last one was just done can ask for his next. The last few of many
 * are therefore not for who holds more than his part, while the others hold little.
 *
 * Quotas by share alone, without the order and the exception, can not serve
 * three groups with two requests, and idle the device whenever a group needs
 * fewer than its part.
 */
#include "account.h"
#include "entity.h"
#include "park.h"
#include "select.h"
#include "slice.h"

#define PART_SHIFT	16

/* Up to so many requests each single one matters. */
#define TAGS_FEW	64

/* Of more one in so many is kept free, while the others hold one in so many. */
#define TAGS_FREE	32
#define TAGS_LITTLE	16
/* Or there were others so lately. */
#define LATELY_NS	(10 * DT_NSEC_PER_MSEC)

void dt_gate_wait(struct dt_dev *dev, struct dt_waiter *waiter,
		  struct dt_queue *queue, u64 now)
{
	dt_clock(dev, now);
	waiter->queue = queue;
	waiter->since_ns = dev->clock_ns;
	waiter->granted = false;
	dt_list_add_tail(&queue->waiters, &waiter->link);
	dt_path_wait(dev, queue, dev->clock_ns);
	/* The device is not held for somebody who finds no request. */
	dt_dev_update(dev);
}

static void leave(struct dt_dev *dev, struct dt_waiter *waiter, bool granted,
		  u64 now)
{
	struct dt_queue *queue = waiter->queue;

	dt_list_del(&waiter->link);
	dt_path_unwait(dev, queue, granted);
	if (dt_before(waiter->since_ns, now))
		queue->grp->stats.wait_ns[DT_WAIT_TAG] +=
			now - waiter->since_ns;
}

void dt_gate_cancel(struct dt_dev *dev, struct dt_waiter *waiter, u64 now)
{
	if (!waiter->granted)
		leave(dev, waiter, false, now);
	else
		dt_gate_settle(dev, waiter->queue);
}

/*
 * A class's part of the requests while a better one is active. Reads while
 * writeback waits are common, hence its larger part.
 */
static const u8 lower_part[DT_NR_CLASSES] = {
	[DT_RT] = 1,
	[DT_BE] = 16,
	[DT_WRITEBACK] = 4,
	[DT_IDLE] = 16,
};

/*
 * The entity's part of its parent's requests, both in 2^-16 requests. One that
 * is about to ask for its first counts as active already.
 */
static u64 part_of(const struct dt_entity *ent, u64 part)
{
	const struct dt_level *level = dt_level_of(ent);
	u64 active = level->active_weight[ent->class];
	int class;

	if (!dt_entity_busy(ent))
		active += ent->weight;
	part = dt_div(part * ent->weight, active);
	for (class = 0; class < ent->class; class++)
		if (level->active_weight[class])
			return dt_div(part, lower_part[ent->class]);
	return part;
}

static u64 held(const struct dt_entity *ent)
{
	return (u64)ent->nr_queued + ent->nr_granted + ent->nr_inflight;
}

/* A group's part of all requests, in 2^-16 requests. */
static u64 group_part(const struct dt_dev *dev, const struct dt_group *grp)
{
	u64 part = (u64)dev->tags << PART_SHIFT;
	const struct dt_entity *ent;

	/* The order of the factors does not matter to the product. */
	for (ent = grp->own; ent->parent; ent = ent->parent)
		part = part_of(ent, part);
	return part;
}

/*
 * What the other groups' whole parts still lack. With more groups than
 * requests there is next to nothing in whole parts, and with many requests one
 * more or less is no matter: neither is worth the walk.
 */
static u64 kept_for_others(const struct dt_dev *dev, const struct dt_group *grp)
{
	const struct dt_list *pos;
	u64 whole, kept = 0;

	if (dev->tags > TAGS_FEW || dev->nr_active > dev->tags)
		return 0;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		const struct dt_group *other = dt_active_group(pos);

		whole = group_part(dev, other) >> PART_SHIFT;
		if (other != grp && whole > held(other->own))
			kept += whole - held(other->own);
	}
	return kept;
}

/* Whether the lines serve @other before @grp: at the level where they part. */
static bool goes_before(const struct dt_group *other,
			const struct dt_group *grp)
{
	const struct dt_entity *a, *b;

	for (a = other->own; a->parent; a = a->parent)
		for (b = grp->own; b->parent; b = b->parent)
			if (a->parent == b->parent)
				return a->class == b->class &&
				       dt_before(a->vdisktime, b->vdisktime);
	return false;
}

static bool is_furthest_behind(const struct dt_dev *dev,
			       const struct dt_group *grp)
{
	const struct dt_list *pos;

	if (dev->tags > TAGS_FEW || dev->nr_active > dev->tags)
		return true;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		if (goes_before(dt_active_group(pos), grp))
			return false;
	return true;
}

/*
 * What is free is about to be gone to somebody who holds more than his part,
 * beside others who hold little. Who asks for few at a time asks for the next when one
 * is done, and would find that it was given away meanwhile.
 */
static bool takes_the_last(const struct dt_dev *dev, const struct dt_group *grp,
			   u64 all)
{
	u64 own = held(grp->own);

	if (dev->tags <= TAGS_FEW || all + dev->tags / TAGS_FREE < dev->tags ||
	    all - own > dev->tags / TAGS_LITTLE)
		return false;
	if (dev->nr_active > 1)
		return own >= group_part(dev, grp) >> PART_SHIFT;
	/* There will be two again. */
	return 2 * own >= dev->tags &&
	       dt_before(dev->clock_ns, dev->several_ns + LATELY_NS);
}

/* May @queue, somebody of which waits, have one more request now? */
static bool admits(const struct dt_dev *dev, const struct dt_queue *queue)
{
	const struct dt_entity *own = queue->ent.parent;
	u64 all = (u64)dev->nr_queued + dev->nr_granted + dev->nr_inflight;
	u64 part;

	/* What is parked keeps no device busy, nor would more of it. */
	if (all < dev->depth + dev->nr_parked && !dt_is_parked(dev, queue))
		return !takes_the_last(dev, queue->grp, all);
	/* Who asks for the next when one is done is away for a moment. */
	if (dev->nr_active == 1 && takes_the_last(dev, queue->grp, all))
		return false;
	part = group_part(dev, queue->grp);
	if (held(own) >= part >> PART_SHIFT) {
		/* Only a fraction is left of its part, if that. */
		if (held(own) << PART_SHIFT >= dt_max(part, 1) ||
		    all + kept_for_others(dev, queue->grp) >= dev->tags)
			return false;
		/* Without a whole request there is nothing but the order. */
		if (part >> PART_SHIFT && !is_furthest_behind(dev, queue->grp))
			return false;
	}
	part = part_of(&queue->ent, part);
	return held(&queue->ent) << PART_SHIFT < dt_max(part, 1);
}

/*
 * While a party is parked it stands where it stood, before long in front of all
 * others: of those it is who has waited for longest. Takes time in proportion to
 * all queues that are active.
 */
static noinline struct dt_queue *first_not_parked(struct dt_dev *dev)
{
	const struct dt_list *pos, *each;
	struct dt_queue *queue, *found = NULL;
	struct dt_waiter *waiter;
	struct dt_group *grp;
	u64 since = 0;

	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		grp = dt_active_group(pos);
		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next) {
			queue = DT_CONTAINER(each, struct dt_queue, link);
			if (dt_list_empty(&queue->waiters) ||
			    dt_is_parked(dev, queue))
				continue;
			waiter = DT_CONTAINER(queue->waiters.next,
					      struct dt_waiter, link);
			if (!found || dt_before(waiter->since_ns, since)) {
				found = queue;
				since = waiter->since_ns;
			}
		}
	}
	return found;
}

/* The queue whose turn it is at the gate, or NULL. Serves nobody yet. */
static struct dt_queue *first_in_line(struct dt_dev *dev, u64 now)
{
	struct dt_entity *ent = &dev->root->ent;
	struct dt_queue *queue, *other;
	struct dt_spot *spot;

	/* The others have what they could use now. */
	if (dev->solo.grp && dev->solo.grp->own->nr_waiting)
		ent = dev->solo.grp->own;
	else if (dt_is_sliced(dev) && dev->spells.slices.grp->own->nr_waiting)
		ent = dev->spells.slices.grp->own;
	while (ent->kind != DT_KIND_QUEUE) {
		spot = dt_line_pick(&ent->level->gate, now);
		if (!spot)
			return NULL;
		ent = DT_CONTAINER(spot, struct dt_entity, gate);
	}
	queue = dt_entity_queue(ent);
	if (unlikely(dt_is_parked(dev, queue))) {
		other = first_not_parked(dev);
		queue = other ? other : queue;
	}
	return dt_list_empty(&queue->waiters) ? NULL : queue;
}

bool dt_gate_keeps_for(struct dt_dev *dev, const struct dt_group *grp)
{
	struct dt_queue *queue;

	if (!dev->nr_waiting || grp->own->nr_granted)
		return true;
	if (held(grp->own) < group_part(dev, grp) >> PART_SHIFT)
		return true;
	queue = first_in_line(dev, dev->clock_ns);
	return !queue || queue->grp == grp;
}

/* Without the lines, after a fault: takes time in proportion to all queues. */
static struct dt_queue *longest_waiting(const struct dt_dev *dev)
{
	const struct dt_list *pos, *each;
	struct dt_queue *queue, *found = NULL;
	struct dt_waiter *waiter;
	u64 since = 0;

	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		struct dt_group *grp = DT_CONTAINER(pos, struct dt_group, link);

		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next) {
			queue = DT_CONTAINER(each, struct dt_queue, link);
			if (dt_list_empty(&queue->waiters))
				continue;
			waiter = DT_CONTAINER(queue->waiters.next,
					      struct dt_waiter, link);
			if (!found || dt_before(waiter->since_ns, since)) {
				found = queue;
				since = waiter->since_ns;
			}
		}
	}
	return found;
}

struct dt_waiter *dt_gate_grant(struct dt_dev *dev, u64 now)
{
	u64 cost = dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]);
	struct dt_waiter *waiter;
	struct dt_entity *ent;
	struct dt_queue *queue;

	if (!dev->nr_waiting)
		return NULL;
	queue = dev->fault ? NULL : first_in_line(dev, now);
	if (queue && !admits(dev, queue))
		return NULL;
	if (unlikely(!queue)) {
		dt_fail(dev, DT_FAULT_LOST, now);
		queue = longest_waiting(dev);
		if (!queue)
			return NULL;
	}
	for (ent = &queue->ent; ent->parent; ent = ent->parent)
		dt_line_served(&dt_level_of(ent)->gate, ent->class, cost, now);
	waiter = DT_CONTAINER(queue->waiters.next, struct dt_waiter, link);
	leave(dev, waiter, true, now);
	waiter->granted = true;
	return waiter;
}

bool dt_gate_enter(struct dt_dev *dev, struct dt_queue *queue)
{
	if (dev->nr_waiting || !admits(dev, queue))
		return false;
	dt_path_granted(dev, queue);
	return true;
}

void dt_gate_settle(struct dt_dev *dev, struct dt_queue *queue)
{
	dt_path_settled(dev, queue);
}
