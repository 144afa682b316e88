// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Nearest: which of a group's processes is served next by a disk with a head.
 *
 * Processes that read here and there are served one after another, by what each
 * has had, and the head goes all over the disk for it. Whose turn it is, shares
 * decide; within it a few milliseconds between processes are nobody's loss. So of
 * those whose virtual time is that of the first in line, or less than NEAR_NS
 * beyond it, the one goes whose next request lies nearest to where what was done
 * last ended. Where each has one request at a time the first is passed over by no
 * more than that and a request of each, and as each takes less, nobody waits for
 * longer than in order; who has many has them in one go, as ever (select.c). Who
 * reads on is left out: he has a turn of his own in that of his group, which is
 * worth the way, and would wait for two of each of the others.
 *
 * Three groups of 25 that read at random, by what they do without it (simulator,
 * ST3250620AS): a disk that takes one request at a time 1.23, two 1.11, four 1.07,
 * eight 1.05, sixteen 1.02; with 31 it would be 1.01, as the disk looks for the
 * nearest itself. With 8 ms it is 0.02 more, and the longest wait 3.4 rounds of the
 * group's for 2.7; with 2 ms 0.03 less.
 *
 * Not behind a write cache that has room: what is nearest there the disk decides,
 * and what writes take is learned from whom it takes when (cache.c).
 */
#include "near.h"
#include "line.h"
#include "queue.h"
#include "select.h"

#define NEAR_NS			(4 * DT_NSEC_PER_MSEC)
/* No more than so many are looked at. */
#define NEAR_MOST		64

static struct dt_queue *queue_of(struct dt_spot *spot)
{
	return DT_CONTAINER(spot, struct dt_queue, ent.ready);
}

static bool seeks(const struct dt_queue *queue)
{
	return queue->seek_mean >= DT_SEEKY_SECTORS;
}

static bool stands_before(const struct dt_spot *spot, const struct dt_spot *other)
{
	return spot->key == other->key ? (s32)(spot->came - other->came) < 0 :
					 dt_before(spot->key, other->key);
}

struct dt_queue *dt_nearest(const struct dt_dev *dev, struct dt_line *line,
			    struct dt_queue *first)
{
	u64 last = first->ent.ready.key + dt_virtual(NEAR_NS, first->ent.weight);
	struct dt_node *node = dt_tree_first(&line->trees[first->ent.class]);
	u64 sector, gap, least = ~0ull;
	struct dt_queue *queue, *nearest = first;
	int nr;

	if (!seeks(first))
		return first;
	/* Nobody stands before his place on the tree. */
	for (nr = 0; node && nr < NEAR_MOST && !dt_before(last, node->key);
	     node = dt_node_next(node), nr++) {
		queue = queue_of(DT_CONTAINER(node, struct dt_spot, node));
		if (dt_before(last, queue->ent.ready.key) ||
		    !queue->ent.nr_queued || !seeks(queue))
			continue;
		sector = dt_queue_next(queue, dev->tun.order,
				       dev->clock_ns)->node.key;
		gap = sector > dev->head_sector ? sector - dev->head_sector :
						  dev->head_sector - sector;
		if (gap < least ||
		    (gap == least && stands_before(&queue->ent.ready,
						   &nearest->ent.ready))) {
			least = gap;
			nearest = queue;
		}
	}
	return nearest;
}
