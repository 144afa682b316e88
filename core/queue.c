// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Order among the items of one queue: by sector, or by arrival.
 *
 * By sector the queue is swept one way, from where its last item ended
 * upwards, and around. An item that has waited past its expiry goes first, so
 * that a stream at one end of the disk does not starve a lone request at the
 * other. The expiries bound waiting inside a queue only; between queues and
 * groups it is shares that bound it.
 *
 * By arrival no order by sector is kept, and no item is found by its sector.
 * What was inserted under that order goes first when another is chosen: it has
 * waited longest.
 *
 * Items inserted at the head (the data of a flush sequence, requests that the
 * device gave back) stand before all of these.
 */
#include "queue.h"

/* In milliseconds, reads then writes. */
static const u32 expiry_ms[][DT_NR_DIRS] = {
	/* A turn or two: processes take turns by themselves. */
	[DT_ORDER_CFQ]		= { 250, 500 },
	/* The classic figures: a read that waits stops a process. */
	[DT_ORDER_DEADLINE]	= { 500, 5000 },
	[DT_ORDER_FIFO]		= { 0, 0 },
};

static struct dt_item *first_of(const struct dt_list *list)
{
	return DT_CONTAINER(list->next, struct dt_item, fifo);
}

dt_inline void dt_queue_add(struct dt_queue *queue, struct dt_item *item, bool urgent,
		  bool sorted)
{
	item->urgent = urgent;
	item->sorted = sorted && !urgent;
	dt_list_add_tail(urgent ? &queue->urgent : &queue->fifo, &item->fifo);
	if (!item->sorted)
		return;
	item->node.rank = 0;
	dt_tree_add(&queue->sorted, &item->node, item->node.key);
}

dt_inline void dt_queue_del(struct dt_queue *queue, struct dt_item *item)
{
	dt_list_unlink(&item->fifo);
	if (item->sorted)
		dt_tree_del(&queue->sorted, &item->node);
}

dt_inline struct dt_item *dt_queue_next(const struct dt_queue *queue,
			      enum dt_order order, u64 now)
{
	struct dt_item *oldest;
	struct dt_node *node;
	u64 age;

	if (!dt_list_empty(&queue->urgent))
		return first_of(&queue->urgent);
	oldest = first_of(&queue->fifo);
	age = now - oldest->insert_ns;
	if (order == DT_ORDER_FIFO || !oldest->sorted ||
	    (!dt_before(now, oldest->insert_ns) &&
	     age > expiry_ms[order][oldest->dir] * DT_NSEC_PER_MSEC))
		return oldest;
	node = dt_tree_at(&queue->sorted, queue->next_sector);
	if (!node)
		node = dt_tree_first(&queue->sorted);
	return DT_CONTAINER(node, struct dt_item, node);
}

struct dt_item *dt_queue_find(struct dt_queue *queue, u64 sector)
{
	struct dt_node *node = dt_tree_at(&queue->sorted, sector);

	if (!node || node->key != sector)
		return NULL;
	return DT_CONTAINER(node, struct dt_item, node);
}

struct dt_item *dt_item_next(struct dt_item *item)
{
	struct dt_node *node;

	if (item->state != DT_ITEM_QUEUED || !item->sorted)
		return NULL;
	node = dt_node_next(&item->node);
	return node ? DT_CONTAINER(node, struct dt_item, node) : NULL;
}

struct dt_item *dt_item_prev(struct dt_item *item)
{
	struct dt_node *node;

	if (item->state != DT_ITEM_QUEUED || !item->sorted)
		return NULL;
	node = dt_node_prev(&item->node);
	return node ? DT_CONTAINER(node, struct dt_item, node) : NULL;
}

void dt_grow(struct dt_dev *dev, struct dt_item *item, u64 sector, u32 sectors)
{
	(void)dev;
	item->sectors = sectors;
	if (item->state != DT_ITEM_QUEUED || !item->sorted)
		item->node.key = sector;
	else
		dt_tree_move(&item->queue->sorted, &item->node, sector);
}
