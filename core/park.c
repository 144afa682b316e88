// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Parties: queues that have turns together, where no order among requests helps
 * (commit.c, spell.c). While it is the others' turn their items are parked.
 *
 * Parked items stand on their queue's lists as always, and are counted as
 * granted, as of somebody who is about to issue: their group is as active as
 * before, and in no line.
 */
#include "entity.h"
#include "park.h"
#include "quota.h"

#define RATIO_MAX		(1000 << DT_RATIO_SHIFT)
/* A better class has so much more than a worse. */
#define RATIO_CLASS		(16 << DT_RATIO_SHIFT)

void dt_park(struct dt_dev *dev, struct dt_queue *queue)
{
	while (queue->ent.nr_queued) {
		dt_path_granted(dev, queue);
		dt_path_unqueued(dev, queue);
		queue->nr_parked++;
		dev->nr_parked++;
	}
}

void dt_unpark(struct dt_dev *dev, struct dt_queue *queue)
{
	while (queue->nr_parked) {
		dt_path_queued(dev, queue, dev->clock_ns);
		dt_unpark_gone(dev, queue);
	}
}

void dt_park_new(struct dt_dev *dev, struct dt_queue *queue)
{
	dt_park(dev, queue);
	dt_path_granted(dev, queue);
	queue->nr_parked++;
	dev->nr_parked++;
}

void dt_unpark_gone(struct dt_dev *dev, struct dt_queue *queue)
{
	dt_path_settled(dev, queue);
	queue->nr_parked--;
	dev->nr_parked--;
}

void dt_party_add(struct dt_list *party, struct dt_queue *queue)
{
	if (dt_list_empty(&queue->party))
		dt_list_add_tail(party, &queue->party);
}

void dt_party_clear(struct dt_list *party)
{
	while (!dt_list_empty(party))
		dt_list_del(party->next);
}

void dt_party_park(struct dt_dev *dev, struct dt_list *party, bool parked)
{
	struct dt_list *pos;
	struct dt_queue *queue;

	dev->parking = parked;
	for (pos = party->next; pos != party; pos = pos->next) {
		queue = DT_CONTAINER(pos, struct dt_queue, party);
		if (parked)
			dt_park(dev, queue);
		else
			dt_unpark(dev, queue);
	}
}

/* What @grp has for each part of @ref, 2^-8; and who competes for it. */
static u64 weight_by(const struct dt_group *grp, const struct dt_group *ref,
		     const struct dt_entity **who)
{
	const struct dt_entity *a, *b;

	for (a = grp->own; a->parent; a = a->parent)
		for (b = ref->own; b->parent; b = b->parent) {
			if (a->parent != b->parent || a == b)
				continue;
			*who = a;
			if (a->class != b->class)
				return a->class < b->class ? RATIO_CLASS : 0;
			return dt_div((u64)a->weight << DT_RATIO_SHIFT,
				      b->weight);
		}
	*who = grp->own;
	return 0;
}

bool dt_in_party(const struct dt_group *grp)
{
	const struct dt_list *pos;

	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next)
		if (!dt_list_empty(&DT_CONTAINER(pos, struct dt_queue,
						 link)->party))
			return true;
	return false;
}

u32 dt_outstanding_of(const struct dt_group *grp)
{
	u32 nr = grp->own->nr_queued + grp->own->nr_inflight;
	const struct dt_list *pos;

	if (!grp->dev->nr_parked)
		return nr;
	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next)
		nr += DT_CONTAINER(pos, struct dt_queue, link)->nr_parked;
	return nr;
}

/* It has done nothing since then, and not because it waits while another of its party does. */
static bool is_away(const struct dt_group *grp, u64 from_ns)
{
	return dt_before(grp->think.last_end_ns, from_ns) &&
	       !(dt_quota_none(grp->dev, grp) && dt_in_party(grp) &&
		 dt_outstanding_of(grp));
}

u32 dt_party_ratio(const struct dt_dev *dev, const struct dt_list *party,
		   u64 from_ns, u32 within)
{
	u64 others = 0, own = 1 << DT_RATIO_SHIFT, weight;
	const struct dt_entity *who, *last = NULL;
	const struct dt_group *ref, *grp;
	const struct dt_list *pos;

	if (dt_list_empty(party))
		return 0;
	ref = DT_CONTAINER(party->next, struct dt_queue, party)->grp;
	/* Children come after their parents, mostly side by side. */
	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		grp = DT_CONTAINER(pos, struct dt_group, link);
		if (grp == ref || is_away(grp, from_ns))
			continue;
		weight = weight_by(grp, ref, &who);
		if (who == last)
			continue;
		last = who;
		if (dt_in_party(grp))
			own += weight;
		else if (grp != dev->root)
			others += weight;
	}
	if (!others)
		return within;
	return (u32)dt_min(dt_div(others << DT_RATIO_SHIFT, own), RATIO_MAX);
}
