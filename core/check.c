// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Invariants over the whole state of a device, by number.
 *
 * The simulator and the tests call dt_check() after every event, the kernel
 * after rearming and when its state file is read. It takes time in proportion
 * to everything there is.
 */
#include "depth.h"
#include "entity.h"
#include "select.h"

enum {
	INV_COUNTS = 1,
	INV_BALANCE,
	INV_ALL_LIST,
	INV_QUEUE_ITEMS,
	INV_CHILD_SUMS,
	INV_READY,
	INV_GATE,
	INV_KEY,
	INV_TREE,
	INV_WORK,
	INV_HOLD,
	INV_CHARGED,
	INV_PARENT,
	INV_ACTIVE,
	INV_FOLD,
	INV_LONE,
	INV_WATCHED,
	INV_CHAIN,
	NR_INV,
};

const char *dt_invariant(int number)
{
	static const char *const text[NR_INV] = {
		[0] = "all hold",
		[INV_COUNTS] = "the root's counts are the device's",
		[INV_BALANCE] = "inserted = removed + dispatched + queued, dispatched = completed + requeued + in flight",
		[INV_ALL_LIST] = "every queued item stands on exactly one arrival list",
		[INV_QUEUE_ITEMS] = "a queue counts the items on its lists, all of them queued",
		[INV_CHILD_SUMS] = "an entity's counts are the sums of its children's",
		[INV_READY] = "an entity is in its ready line exactly while something below it is queued",
		[INV_GATE] = "an entity is in its gate line exactly while somebody below it waits",
		[INV_KEY] = "an entity stands in its ready line at its vdisktime, and is found on the tree no later",
		[INV_TREE] = "trees are ordered, heaped, counted, and know their first node",
		[INV_WORK] = "there is work exactly if something is queued, fits, and the device is not held",
		[INV_HOLD] = "the device is held only for somebody who has nothing queued, while others have",
		[INV_CHARGED] = "an idle device has charged all its busy time, what lies in its cache beforehand, and no more",
		[INV_ACTIVE] = "a level's active weight and count are those of its busy children",
		[INV_LONE] = "beside a level's lone entity nobody is busy",
		[INV_WATCHED] = "of the flushers no more is parked or in the device than there is, nor of who commits",
		[INV_CHAIN] = "no more links are in flight than there is, and somebody waits for them",
		[INV_FOLD] = "a group has its own queues below its leaf exactly while it has children",
		[INV_PARENT] = "a parent stands before its children in the list of groups",
	};

	return number >= 0 && number < NR_INV ? text[number] : "unknown";
}

/* Walk in order without recursion, and look at each node and its children. */
static bool tree_sound(const struct dt_tree *tree)
{
	struct dt_node *node = tree->root, *prev = NULL;
	u32 nr = 0;

	if (!node)
		return !tree->first && !tree->nr;
	if (node->parent)
		return false;
	while (node->left)
		node = node->left;
	if (tree->first != node)
		return false;
	for (; node; node = dt_node_next(node)) {
		if (node->left && (node->left->parent != node ||
				   node->left->rank > node->rank))
			return false;
		if (node->right && (node->right->parent != node ||
				    node->right->rank > node->rank))
			return false;
		if (prev && (dt_before(node->key, prev->key) ||
			     (node->key == prev->key &&
			      (s32)(node->came - prev->came) <= 0)))
			return false;
		prev = node;
		if (++nr > tree->nr)
			return false;
	}
	return nr == tree->nr;
}

static bool line_sound(const struct dt_line *line)
{
	u32 nr = 0;
	int class;

	for (class = 0; class < DT_NR_CLASSES; class++) {
		if (!tree_sound(&line->trees[class]))
			return false;
		nr += line->trees[class].nr;
	}
	return nr == line->nr;
}

static u32 list_length(const struct dt_list *list)
{
	const struct dt_list *pos;
	u32 nr = 0;

	for (pos = list->next; pos != list; pos = pos->next)
		nr++;
	return nr;
}

/* It is on its tree where it stands, or before. */
static bool spot_sound(const struct dt_spot *spot)
{
	if (!spot->on)
		return true;
	if (spot->came == spot->node.came)
		return spot->key == spot->node.key;
	return !dt_before(spot->key, spot->node.key);
}

static int check_entity(const struct dt_entity *ent)
{
	const struct dt_level *level = dt_level_of(ent);

	if (!level)
		return 0;
	if (level->lone && level->lone != ent && dt_entity_busy(ent))
		return INV_LONE;
	if (ent->ready.on != (ent->nr_queued > 0))
		return INV_READY;
	if (ent->gate.on != (ent->nr_waiting > 0))
		return INV_GATE;
	if ((ent->ready.on && ent->ready.key != ent->vdisktime) ||
	    !spot_sound(&ent->ready) || !spot_sound(&ent->gate))
		return INV_KEY;
	return 0;
}

struct sums {
	u32 queued, granted, inflight, waiting;
	u64 weight;
	u32 busy;
};

static void sum_up(struct sums *sums, const struct dt_entity *ent)
{
	sums->queued += ent->nr_queued;
	sums->granted += ent->nr_granted;
	sums->inflight += ent->nr_inflight;
	sums->waiting += ent->nr_waiting;
	if (ent->nr_queued || ent->nr_granted || ent->nr_inflight ||
	    ent->nr_waiting) {
		sums->weight += ent->weight;
		sums->busy++;
	}
}

static u64 active_weight(const struct dt_level *level)
{
	u64 sum = 0;
	int class;

	for (class = 0; class < DT_NR_CLASSES; class++)
		sum += level->active_weight[class];
	return sum;
}

static bool sums_differ(const struct sums *sums, const struct dt_entity *ent)
{
	return sums->queued != ent->nr_queued ||
	       sums->granted != ent->nr_granted ||
	       sums->inflight != ent->nr_inflight ||
	       sums->waiting != ent->nr_waiting;
}

static int check_queue(const struct dt_queue *queue)
{
	const struct dt_list *pos;
	const struct dt_item *item;
	u32 sorted = 0;

	if (!tree_sound(&queue->sorted))
		return INV_TREE;
	if (queue->ent.nr_queued + queue->nr_parked != list_length(&queue->fifo) +
			list_length(&queue->urgent) ||
	    queue->ent.nr_waiting != list_length(&queue->waiters))
		return INV_QUEUE_ITEMS;
	for (pos = queue->fifo.next; pos != &queue->fifo; pos = pos->next) {
		item = DT_CONTAINER(pos, struct dt_item, fifo);
		if (item->state != DT_ITEM_QUEUED || item->queue != queue)
			return INV_QUEUE_ITEMS;
		sorted += item->sorted;
	}
	if (sorted != queue->sorted.nr)
		return INV_QUEUE_ITEMS;
	return check_entity(&queue->ent);
}

static int check_group(const struct dt_dev *dev, const struct dt_group *grp)
{
	struct sums sums = { 0 }, all = { 0 };
	const struct dt_list *pos;
	bool seen = false;
	int bad;

	if (!line_sound(&grp->children.ready) ||
	    !line_sound(&grp->children.gate) ||
	    !line_sound(&grp->queues.ready) || !line_sound(&grp->queues.gate))
		return INV_TREE;
	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next) {
		const struct dt_queue *queue =
			DT_CONTAINER(pos, struct dt_queue, link);

		bad = check_queue(queue);
		if (bad)
			return bad;
		sum_up(&sums, &queue->ent);
	}
	if (sums_differ(&sums, grp->own))
		return INV_CHILD_SUMS;
	if (grp->own != (grp->nr_children ? &grp->leaf : &grp->ent))
		return INV_FOLD;
	if (sums.weight != active_weight(&grp->queues) ||
	    sums.busy != grp->queues.nr_busy ||
	    dt_list_empty(&grp->active) != !sums.weight)
		return INV_ACTIVE;
	if (!grp->nr_children)
		return check_entity(&grp->ent);
	sum_up(&all, &grp->leaf);
	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		const struct dt_group *child =
			DT_CONTAINER(pos, struct dt_group, link);

		seen |= child == grp;
		if (child->ent.parent != &grp->ent)
			continue;
		if (!seen)
			return INV_PARENT;
		sum_up(&all, &child->ent);
	}
	if (sums_differ(&all, &grp->ent))
		return INV_CHILD_SUMS;
	if (all.weight != active_weight(&grp->children) ||
	    all.busy != grp->children.nr_busy)
		return INV_ACTIVE;
	bad = check_entity(&grp->leaf);
	return bad ? bad : check_entity(&grp->ent);
}

static bool chain_sound(const struct dt_dev *dev)
{
	const struct dt_chain *chain = &dev->chain;

	return chain->nr_links <= dev->nr_inflight &&
	       (chain->grp || !chain->nr_links);
}

static int check_hold(const struct dt_dev *dev)
{
	bool room = dev->nr_inflight < dev->depth;
	bool any = dev->fault ? !dt_list_empty(&dev->all) : dev->nr_queued > 0;
	bool work;

	if (dev->slice_ns && !dev->fault && dt_list_empty(&dev->express) &&
	    dt_has_plenty(dev))
		room = false;
	work = room && any && !dev->holding;
	if (any && !dev->slice_ns && !dev->fault) {
		/*
		 * Between these two it depends on who is first in line, which
		 * a new weight may change; something is in flight then, and
		 * its completion will tell. So it is while others wait for
		 * somebody (lead.c).
		 */
		if ((!dt_room_for(dev, false) || dev->lead.grp) &&
		    (dev->nr_inflight || dev->holding) &&
		    dev->nr_inflight < dev->depth_hw)
			return 0;
		work = dt_room_for(dev, false);
	}
	if (dev->work != work)
		return INV_WORK;
	if (!dev->holding)
		return 0;
	if (!dev->slice_ns)
		return dev->light.awaited && dev->hold_until_ns &&
		       !dev->nr_inflight ? 0 : INV_HOLD;
	if (!dev->turn_grp || !room || !any || dev->fault ||
	    !dt_list_empty(&dev->express))
		return INV_HOLD;
	if (dev->turn_queue ? dev->turn_queue->ent.nr_queued :
			      dev->turn_grp->own->nr_queued)
		return INV_HOLD;
	return 0;
}

static bool watched_sound(const struct dt_dev *dev)
{
	const struct dt_commits *commits = &dev->commits;
	const struct dt_list *pos, *each;
	u32 parked = 0;

	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		const struct dt_group *grp =
			DT_CONTAINER(pos, struct dt_group, link);

		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next)
			parked += DT_CONTAINER(each, struct dt_queue,
					       link)->nr_parked;
	}
	return parked == dev->nr_parked && parked <= dev->nr_granted &&
	       commits->nr_inflight <= dev->nr_inflight &&
	       commits->nr_sync <= dev->nr_queued + dev->nr_inflight + parked &&
	       (commits->nr_inflight || !commits->sectors);
}

int dt_check(struct dt_dev *dev)
{
	const struct dt_counts *counts = &dev->counts;
	const struct dt_entity *root = &dev->root->ent;
	const struct dt_list *pos;
	u64 slack, charged;
	int bad;

	if (root->nr_queued != dev->nr_queued ||
	    root->nr_inflight != dev->nr_inflight ||
	    root->nr_waiting != dev->nr_waiting ||
	    root->nr_granted != dev->nr_granted)
		return INV_COUNTS;
	if (counts->inserted !=
		    counts->removed + counts->dispatched + dev->nr_queued +
		    dev->nr_parked ||
	    counts->dispatched !=
		    counts->completed + counts->requeued + dev->nr_inflight)
		return INV_BALANCE;
	if (list_length(&dev->all) + list_length(&dev->express) !=
	    dev->nr_queued + dev->nr_parked)
		return INV_ALL_LIST;
	if (list_length(&dev->active) != dev->nr_active)
		return INV_ACTIVE;
	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		bad = check_group(dev, DT_CONTAINER(pos, struct dt_group,
						    link));
		if (bad)
			return bad;
	}
	/*
	 * Each request's charge lost less than a nanosecond by its last shift,
	 * and as much for every 65536 events it spanned.
	 */
	slack = 2 * counts->dispatched + 1 + dev->written.held_ns;
	charged = dev->charged_ns + dev->excess_ns - dev->cache.ahead_ns;
	if (dev->engine != DT_ENGINE_GIVEN &&
	    (charged > dev->busy_ns ||
	     (!dev->nr_inflight && !counts->clamped &&
	      dev->busy_ns - charged > slack)))
		return INV_CHARGED;
	if (!watched_sound(dev))
		return INV_WATCHED;
	if (!chain_sound(dev))
		return INV_CHAIN;
	return check_hold(dev);
}
