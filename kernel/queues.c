// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues of processes: found by group and process, made when first needed, kept
 * for a while after their last request because they know the process's habits.
 *
 * They are keyed by the cgroup that a bio belongs to and the process that
 * issued it rather than by io contexts: a kernel thread works for many cgroups,
 * and an io context is shared or missing as clone() and io_uring please.
 */
#include "disktime.h"

/* A process that has not come back by then starts anew. */
#define QUEUE_KEEP_NS	(2 * NSEC_PER_SEC)

/*
 * Weights of the eight best-effort levels, and of the eight realtime ones among
 * themselves: CFQ's time slices of 180 ms down to 40 ms, in its proportion.
 */
static const u16 ioprio_weight[IOPRIO_NR_LEVELS] = {
	180, 160, 140, 120, 100, 80, 60, 40,
};

static u32 hash_key(const struct disktime_group *grp,
		    const struct disktime_key *key)
{
	u64 mix = (unsigned long)grp ^ ((u64)key->tgid << 20) ^
		  ((u64)key->ioprio << 4) ^ ((u64)key->sync << 1) ^ key->head;

	return hash_64(mix, 32);
}

struct disktime_queue *disktime_queue_find(struct disktime_dev *dev,
					   struct disktime_group *grp,
					   const struct disktime_key *key)
{
	struct disktime_queue *queue;

	lockdep_assert_held(&dev->lock);

	if (grp->recent && disktime_same_key(grp->recent->key, *key))
		return grp->recent;
	hash_for_each_possible(dev->queues, queue, hash, hash_key(grp, key)) {
		if (queue->grp == grp && disktime_same_key(queue->key, *key)) {
			grp->recent = queue;
			return queue;
		}
	}
	return NULL;
}

static void class_and_weight(const struct disktime_key *key,
			     enum dt_class *class, u32 *weight)
{
	int level = IOPRIO_PRIO_LEVEL(key->ioprio);

	*class = DT_BE;
	*weight = DT_WEIGHT_DEFAULT;
	if (key->head) {
		*class = DT_RT;
		*weight = DT_WEIGHT_MAX;
	} else if (!key->sync) {
		*class = DT_WRITEBACK;
	} else {
		switch (IOPRIO_PRIO_CLASS(key->ioprio)) {
		case IOPRIO_CLASS_RT:
			*class = DT_RT;
			*weight = ioprio_weight[level];
			break;
		case IOPRIO_CLASS_BE:
			*weight = ioprio_weight[level];
			break;
		case IOPRIO_CLASS_IDLE:
			*class = DT_IDLE;
			break;
		}
	}
}

static void queue_free(struct disktime_dev *dev, struct disktime_queue *queue)
{
	list_del(&queue->idle);
	hash_del(&queue->hash);
	if (queue->grp->recent == queue)
		queue->grp->recent = NULL;
	dt_queue_exit(&queue->core);
	disktime_group_put_locked(queue->grp);
	dev->nr_queues--;
	kfree(queue);
}

/* What it completed last may still be on its way out. */
static bool disused(const struct disktime_queue *queue)
{
	return !queue->refs && !dt_queue_busy(&queue->core);
}

/*
 * A process that waits for each of its requests leaves its queue idle after
 * each: a queue that is used again stays on the list until one looks at it here,
 * and then leaves it, or goes to its end.
 */
void disktime_queue_reap(struct disktime_dev *dev, struct disktime_group *grp,
			 u64 before_ns)
{
	struct disktime_queue *queue, *next;

	lockdep_assert_held(&dev->lock);

	list_for_each_entry_safe(queue, next, &dev->idle_queues, idle) {
		if (grp) {
			if (queue->grp == grp && disused(queue))
				queue_free(dev, queue);
			continue;
		}
		if (queue->looked_ns >= before_ns)
			break;
		if (queue->refs) {
			list_del_init(&queue->idle);
		} else if (queue->idle_since_ns >= before_ns) {
			queue->looked_ns = queue->idle_since_ns;
			list_move_tail(&queue->idle, &dev->idle_queues);
		} else if (disused(queue)) {
			queue_free(dev, queue);
		}
	}
}
EXPORT_SYMBOL_GPL(disktime_queue_reap);

/* NULL when there is no memory. */
struct disktime_queue *disktime_queue_get(struct disktime_dev *dev,
					  struct disktime_group *grp,
					  const struct disktime_key *key,
					  u64 now)
{
	struct disktime_queue *queue = disktime_queue_find(dev, grp, key);
	enum dt_class class;
	u32 weight;

	if (queue) {
		queue->refs++;
		return queue;
	}
	if (!list_empty(&dev->idle_queues) && now > QUEUE_KEEP_NS)
		disktime_queue_reap(dev, NULL, now - QUEUE_KEEP_NS);

	queue = kzalloc(sizeof(*queue), GFP_ATOMIC | __GFP_NOWARN);
	if (!queue)
		return NULL;
	queue->grp = grp;
	queue->key = *key;
	queue->refs = 1;
	INIT_LIST_HEAD(&queue->idle);
	disktime_group_get(grp);
	class_and_weight(key, &class, &weight);
	dt_queue_init(&queue->core, &grp->core, key->sync, weight, class, now);
	hash_add(dev->queues, &queue->hash, hash_key(grp, key));
	dev->nr_queues++;
	return queue;
}
EXPORT_SYMBOL_GPL(disktime_queue_get);
EXPORT_SYMBOL_GPL(disktime_queue_find);

/* Nobody uses it for now, which has not been noted yet. */
void disktime_queue_rest(struct disktime_dev *dev, struct disktime_queue *queue)
{
	queue->looked_ns = queue->idle_since_ns;
	list_add_tail(&queue->idle, &dev->idle_queues);
}
EXPORT_SYMBOL_GPL(disktime_queue_rest);
