// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The core and what stands between it and Rust: allocates what the core's callers embed, so that
 * no layout is written down twice, and reads out fields as arrays of u64 whose
 * order src/ffi.rs repeats.
 */
#include "build.c"

#define NEW(type)	((type *)__builtin_calloc(1, sizeof(type)))

struct dts_dev {
	struct dt_dev dev;
	struct dt_group root;
};

struct dts_item {
	struct dt_item item;
	u64 id;
};

struct dts_waiter {
	struct dt_waiter waiter;
	u64 id;
};

void dts_free(void *ptr)
{
	__builtin_free(ptr);
}

/* ---- the device ---- */

struct dts_dev *dts_dev_new(u32 depth_hw, u32 tags, bool rotational, u64 now)
{
	struct dts_dev *all = NEW(struct dts_dev);

	if (!all)
		return NULL;
	dt_dev_init(&all->dev, &all->root, depth_hw, tags, rotational, now);
	dt_group_init(&all->root, &all->dev, NULL, DT_WEIGHT_DEFAULT, DT_BE);
	return all;
}

struct dt_dev *dts_dev(struct dts_dev *all)
{
	return &all->dev;
}

struct dt_group *dts_root(struct dts_dev *all)
{
	return &all->root;
}

void dts_tunables_get(const struct dt_dev *dev, u64 *out)
{
	out[0] = dev->tun.slice_ns;
	out[1] = dev->tun.idle_ns;
	out[2] = dev->tun.depth;
	out[3] = dev->tun.order;
	out[4] = dev->tun.strict;
}

void dts_tune(struct dt_dev *dev, const u64 *in, u64 now)
{
	struct dt_tunables tun = {
		.slice_ns = in[0],
		.idle_ns = in[1],
		.depth = (u32)in[2],
		.order = (u8)in[3],
		.strict = in[4] != 0,
	};

	dt_dev_tune(dev, &tun, now);
}

void dts_engine(struct dt_dev *dev, u32 engine)
{
	dt_dev_engine(dev, engine);
}

bool dts_has_work(const struct dt_dev *dev)
{
	return dt_has_work(dev);
}

void dts_dev_state(const struct dt_dev *dev, u64 *out)
{
	out[0] = dev->clock_ns;
	out[1] = dev->busy_ns;
	out[2] = dev->charged_ns;
	out[3] = dev->idle_clock_ns;
	out[4] = dev->service_ns;
	out[5] = dev->nr_queued;
	out[6] = dev->nr_inflight;
	out[7] = dev->nr_waiting;
	out[8] = dev->nr_granted - dev->nr_parked;
	out[9] = dev->depth;
	out[10] = dev->holding;
	out[11] = dev->fault;
	out[12] = dev->nr_parked;
	out[13] = dev->solo.grp != NULL;
	out[14] = dev->spells.phase;
	out[15] = dev->written.on;
}

void dts_dev_counts(const struct dt_dev *dev, u64 *out)
{
	out[0] = dev->counts.inserted;
	out[1] = dev->counts.removed;
	out[2] = dev->counts.dispatched;
	out[3] = dev->counts.completed;
	out[4] = dev->counts.requeued;
	out[5] = dev->counts.empty;
	out[6] = dev->counts.raced;
	out[7] = dev->counts.clamped;
	out[8] = dev->counts.faults;
	out[9] = dev->counts.unasked;
}

u64 dts_wake_at(const struct dt_dev *dev)
{
	return dt_wake_at(dev);
}

/* ---- groups and queues ---- */

struct dt_group *dts_group_new(struct dt_dev *dev, struct dt_group *parent,
			       u32 weight, u32 class)
{
	struct dt_group *grp = NEW(struct dt_group);

	if (grp)
		dt_group_init(grp, dev, parent, weight, (enum dt_class)class);
	return grp;
}

bool dts_group_vacant(const struct dt_group *grp)
{
	return !dt_group_busy(grp) && !grp->nr_children && !grp->nr_queues;
}

struct dt_entity *dts_group_entity(struct dt_group *grp)
{
	return &grp->ent;
}

struct dt_entity *dts_leaf_entity(struct dt_group *grp)
{
	return &grp->leaf;
}

struct dt_entity *dts_queue_entity(struct dt_queue *queue)
{
	return &queue->ent;
}

static bool is_parked(const struct dt_entity *ent)
{
	const struct dt_queue *queue = DT_CONTAINER(ent, struct dt_queue, ent);

	return ent->kind == DT_KIND_QUEUE &&
	       dt_is_parked(queue->grp->dev, queue);
}

void dts_entity_state(const struct dt_entity *ent, u64 *out)
{
	out[0] = dt_entity_vdisktime(ent);
	out[1] = ent->weight;
	out[2] = ent->class;
	out[3] = ent->nr_queued;
	out[4] = ent->nr_inflight;
	out[5] = ent->nr_waiting;
	out[6] = ent->nr_granted;
	out[7] = is_parked(ent);
}

void dts_group_stats(const struct dt_group *grp, u64 *out)
{
	const struct dt_stats *stats = &grp->stats;
	int i;

	for (i = 0; i < DT_NR_DIRS; i++) {
		*out++ = stats->time_ns[i];
		*out++ = stats->sectors[i];
		*out++ = stats->ios[i];
	}
	for (i = 0; i < DT_NR_CAUSES; i++)
		*out++ = stats->wait_ns[i];
	*out++ = stats->wait_max_ns;
	*out++ = stats->idle_ns;
	*out++ = stats->dequeues;
	*out++ = stats->slices;
	*out++ = stats->express;
}

struct dt_queue *dts_queue_new(struct dt_group *grp, bool sync, u32 weight,
			       u32 class, u64 now)
{
	struct dt_queue *queue = NEW(struct dt_queue);

	if (queue)
		dt_queue_init(queue, grp, sync, weight, (enum dt_class)class,
			      now);
	return queue;
}

/* ---- items and waiters ---- */

struct dts_item *dts_item_new(u64 id)
{
	struct dts_item *all = NEW(struct dts_item);

	if (all)
		all->id = id;
	return all;
}

struct dt_item *dts_item(struct dts_item *all)
{
	return &all->item;
}

u64 dts_item_id(const struct dt_item *item)
{
	return DT_CONTAINER(item, struct dts_item, item)->id;
}

void dts_item_state(const struct dt_item *item, u64 *out)
{
	out[0] = item->state;
	out[1] = item->node.key;
	out[2] = item->sectors;
	out[3] = item->dir;
	out[4] = item->express;
	out[5] = item->urgent;
	out[6] = item->insert_ns;
	out[7] = item->dispatch_ns;
	out[8] = item->estimate_ns;
}

struct dts_waiter *dts_waiter_new(u64 id)
{
	struct dts_waiter *all = NEW(struct dts_waiter);

	if (all)
		all->id = id;
	return all;
}

struct dt_waiter *dts_waiter(struct dts_waiter *all)
{
	return &all->waiter;
}

u64 dts_waiter_id(const struct dt_waiter *waiter)
{
	return DT_CONTAINER(waiter, struct dts_waiter, waiter)->id;
}

/* ---- damage, for the tests that want it survived ---- */

/* Takes an entity out of a line though it should stand there; says if it did. */
bool dts_corrupt_line(struct dt_entity *ent, bool gate)
{
	struct dt_level *level = dt_level_of(ent);
	struct dt_spot *spot = gate ? &ent->gate : &ent->ready;

	if (!level || !spot->on)
		return false;
	dt_line_del(gate ? &level->gate : &level->ready, spot, ent->class);
	return true;
}

/* ---- for benches: items that are used again, and a list beside the core ---- */

static bool in_use(const struct dts_item *all)
{
	return all->item.state == DT_ITEM_QUEUED ||
	       all->item.state == DT_ITEM_DISPATCHED;
}

/* The same as dt_insert() for a read; says if the item was free. */
bool dts_bare_insert(struct dt_dev *dev, struct dt_queue *queue,
		     struct dts_item *all, u64 sector, u32 sectors, u64 now)
{
	if (in_use(all))
		return false;
	dt_insert(dev, queue, &all->item, DT_READ, sector, sectors, 0, now);
	return true;
}

/* One list, first come, first served, and a limit to what is in flight. */
struct dts_list {
	struct dt_list queued;
	u32 depth;
	u32 nr_inflight;
};

struct dts_list *dts_list_new(u32 depth)
{
	struct dts_list *list = NEW(struct dts_list);

	if (list) {
		dt_list_init(&list->queued);
		list->depth = depth;
	}
	return list;
}

bool dts_list_insert(struct dts_list *list, struct dts_item *all, u64 sector,
		     u32 sectors)
{
	struct dt_item *item = &all->item;

	if (in_use(all))
		return false;
	item->node.key = sector;
	item->sectors = sectors;
	item->state = DT_ITEM_QUEUED;
	dt_list_add_tail(&list->queued, &item->fifo);
	return true;
}

struct dt_item *dts_list_dispatch(struct dts_list *list)
{
	struct dt_item *item;

	if (dt_list_empty(&list->queued) || list->nr_inflight >= list->depth)
		return NULL;
	item = DT_CONTAINER(list->queued.next, struct dt_item, fifo);
	dt_list_unlink(&item->fifo);
	item->state = DT_ITEM_DISPATCHED;
	list->nr_inflight++;
	return item;
}

void dts_list_complete(struct dts_list *list, struct dt_item *item)
{
	if (item->state != DT_ITEM_DISPATCHED)
		return;
	item->state = DT_ITEM_DONE;
	list->nr_inflight--;
}

/* ---- a bare tree ---- */

struct dts_tree {
	struct dt_tree tree;
	struct dt_node nodes[];
};

struct dts_tree *dts_tree_new(u64 nr)
{
	struct dts_tree *all = (struct dts_tree *)__builtin_calloc(
		1, sizeof(*all) + nr * sizeof(all->nodes[0]));

	if (all)
		dt_tree_init(&all->tree);
	return all;
}

static s64 index_of(const struct dts_tree *all, const struct dt_node *node)
{
	return node ? node - all->nodes : -1;
}

void dts_tree_add(struct dts_tree *all, u64 index, u64 key)
{
	dt_tree_add(&all->tree, &all->nodes[index], key);
}

void dts_tree_del(struct dts_tree *all, u64 index)
{
	dt_tree_del(&all->tree, &all->nodes[index]);
}

void dts_tree_move(struct dts_tree *all, u64 index, u64 key)
{
	dt_tree_move(&all->tree, &all->nodes[index], key);
}

s64 dts_tree_first(const struct dts_tree *all)
{
	return index_of(all, dt_tree_first(&all->tree));
}

s64 dts_tree_next(struct dts_tree *all, u64 index)
{
	return index_of(all, dt_node_next(&all->nodes[index]));
}

s64 dts_tree_prev(struct dts_tree *all, u64 index)
{
	return index_of(all, dt_node_prev(&all->nodes[index]));
}

s64 dts_tree_at(const struct dts_tree *all, u64 key)
{
	return index_of(all, dt_tree_at(&all->tree, key));
}

/* The length of the longest way from the root to a node. */
u64 dts_tree_height(const struct dts_tree *all, u64 nr)
{
	const struct dt_node *node;
	u64 index, up, height = 0;

	for (index = 0; index < nr; index++) {
		node = &all->nodes[index];
		if (!node->parent && all->tree.root != node)
			continue;
		for (up = 1; node->parent; up++)
			node = node->parent;
		height = up > height ? up : height;
	}
	return height;
}
