// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions, from interrupts to the core.
 *
 * While nothing is queued or parked and nobody waits at the gate, a completion
 * decides nothing: it has to be accounted before the next decision, no sooner.
 * So it is left on a list without a lock, with its time, and whoever next takes
 * the lock to look at the core drains the list first. A busy interrupt does not
 * contend with submitters then, nor spin with interrupts off.
 *
 * The core sees the same events in the same order as if each had taken the
 * lock: anything that depends on a completion drains first. The two sides meet
 * like this, with a full barrier in between on both:
 *
 *	completion			insertion, wait at the gate
 *	put on the list			count as queued or waiting
 *	is anything queued, waiting?	is anything on the list?
 *	  then drain			  then drain
 */
#include "disktime.h"
#include "trace.h"

void disktime_arm_at(struct disktime_dev *dev, u64 at)
{
	lockdep_assert_held(&dev->lock);

	/* A timer that comes too early looks, and is started again. */
	if (dev->timer_ns && !dt_before(at, dev->timer_ns))
		return;
	dev->timer_ns = at;
	hrtimer_start(&dev->timer, ns_to_ktime(at), HRTIMER_MODE_ABS);
}
EXPORT_SYMBOL_GPL(disktime_arm_at);

/* One completion reaches the core. After this the request may be used anew. */
static void settle(struct disktime_dev *dev, struct disktime_rq *drq)
{
	struct dt_item *item = &drq->item;
	struct disktime_queue *queue = drq->queue;
	u64 charge = dt_complete(&dev->core, item, drq->done_ns);

	if (trace_disktime_charge_enabled())
		trace_disktime_charge(disktime_q_dev(dev->q),
				      queue->grp->cgroup_id, item->node.key,
				      dev->core.clock_ns - item->dispatch_ns,
				      charge, item->estimate_ns);
	disktime_queue_put(dev, queue, dev->core.clock_ns);
	drq->queue = NULL;
	/* Pairs with disktime_rq_pending(). */
	smp_store_release(&drq->pending, false);
}

void disktime_drain_list(struct disktime_dev *dev)
{
	struct llist_node *list = llist_del_all(&dev->done);
	struct disktime_rq *drq, *next;

	lockdep_assert_held(&dev->lock);

	if (list && list->next)
		list = llist_reverse_order(list);
	llist_for_each_entry_safe(drq, next, list, done)
		settle(dev, drq);
	/* The last of a process's requests may have begun the wait for more. */
	disktime_arm(dev);
}
EXPORT_SYMBOL_GPL(disktime_drain_list);

bool disktime_complete_now(struct disktime_dev *dev, struct disktime_rq *drq)
{
	unsigned long flags;
	bool had_work, work;

	spin_lock_irqsave(&dev->lock, flags);
	/* Whoever drained it in the meantime may have come only to look. */
	had_work = dt_has_work(&dev->core) && drq->pending;
	disktime_drain(dev);
	work = dt_has_work(&dev->core);
	spin_unlock_irqrestore(&dev->lock, flags);
	return work && !had_work;
}
EXPORT_SYMBOL_GPL(disktime_complete_now);
