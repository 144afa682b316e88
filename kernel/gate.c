// SPDX-License-Identifier: GPL-2.0-only
/*
 * The gate before the scheduler's tags (core/gate.c has the why).
 *
 * limit_depth() is called in the context of the submitter, under no lock, just
 * before it gets a tag, for which it may sleep anyhow. When all tags are taken
 * it sleeps here instead, in an order that the core decides: each tag that is
 * freed is handed to one waiter. Nothing is held back: waiters exist only
 * while every tag is taken or promised, so whoever would have found a tag
 * without the gate finds it now, and queue freezes, which wait for these very
 * submitters, end when the requests in flight do.
 *
 * A tag counts as used from the moment it is promised to finish_request(). The
 * count is over all hardware queues; where their tags are not shared, a waiter
 * may find its own hardware queue's taken, and then waits there as it would
 * have without us.
 *
 * What was promised to whom is known from the promise to the insertion: the
 * allocation carries a slot number in bits of rq_flags that no RQF_ flag uses,
 * the request then carries the queue.
 *
 * Not made to wait: requests that may not sleep (where they would have to, they
 * are sent to a part of the tags that is full, and fail as if all were), and
 * metadata and swap, for which others wait.
 */
#include "iosched.h"

/*
 * Devices with at least so many tags hand out three quarters of them without
 * formalities: whose they are matters when they are scarce. A group that has
 * taken all those has to go back to its part before it gets one of the rest.
 */
#define PLENTY		64
#define SCARCE(total)	((total) / 4)

struct gate_waiter {
	struct dt_waiter core;
	struct task_struct *task;
};

static req_flags_t slot_to_flags(unsigned int slot)
{
	return (__force req_flags_t)(slot << DISKTIME_SLOT_SHIFT);
}

static u32 tags_total(const struct disktime_iosched *ios)
{
	return READ_ONCE(ios->dev->core.tags);
}

/* Hand out what is free. Under dev->lock. */
void disktime_gate_run(struct disktime_iosched *ios)
{
	struct dt_dev *core = &ios->dev->core;
	struct dt_waiter *waiter;

	lockdep_assert_held(&ios->dev->lock);

	while (core->nr_waiting &&
	       atomic_read(&ios->nr_tags_used) < (int)tags_total(ios)) {
		waiter = dt_gate_grant(core, disktime_now());
		if (!waiter)
			break;
		atomic_inc(&ios->nr_tags_used);
		/* It cannot leave its stack before we drop the lock. */
		wake_up_process(container_of(waiter, struct gate_waiter,
					     core)->task);
	}
}

/* The queue that the current task's next request will probably join. */
static struct disktime_queue *task_queue_get(struct disktime_iosched *ios,
					     blk_opf_t opf)
{
	struct disktime_dev *dev = ios->dev;
	struct disktime_queue *queue = NULL;
	struct disktime_group *grp;
	struct disktime_key key;

	key = disktime_make_key(ios, opf, current->tgid, get_current_ioprio());
	rcu_read_lock();
	grp = disktime_task_group(dev);
	/* A group whose cgroup is gone may have lost its last reference. */
	if (refcount_inc_not_zero(&grp->refs)) {
		queue = disktime_queue_get(dev, grp, &key, disktime_now());
		disktime_group_put_locked(grp);
	}
	rcu_read_unlock();
	return queue;
}

/* Under dev->lock: remember the promise for prepare_request(). */
static unsigned int slot_take(struct disktime_iosched *ios,
			      struct disktime_queue *queue)
{
	unsigned int slot;

	/* Slot 0 means none. */
	for (slot = 1; slot < DISKTIME_NR_SLOTS; slot++) {
		if (!ios->slots[slot]) {
			ios->slots[slot] = queue;
			return slot;
		}
	}
	return 0;
}

/* The promise is kept or given up. Under dev->lock. */
static void settle(struct disktime_iosched *ios, struct disktime_queue *queue)
{
	dt_gate_settle(&ios->dev->core, &queue->core);
	disktime_queue_put(ios->dev, queue, disktime_now());
}

/* A promise that nobody writes down: its request counts when it is prepared. */
static void forgo(struct disktime_iosched *ios, struct disktime_queue *queue)
{
	atomic_dec(&ios->nr_tags_used);
	settle(ios, queue);
}

/*
 * Get the promise of a tag, sleeping for it if @may_sleep, and its slot: 0 if
 * it goes without one. False if it is not to be had.
 *
 * Who may not sleep is let in or not, but gets no slot: should its hardware
 * queue have no tag after all, the allocation fails without a word to us, and
 * the promise would stand for ever.
 */
static noinline bool get_promise(struct disktime_iosched *ios, blk_opf_t opf,
			bool may_sleep, unsigned int *slot)
{
	struct gate_waiter waiter = { .task = current };
	struct disktime_dev *dev = ios->dev;
	struct disktime_queue *queue;
	bool had_work, kick = false;
	bool granted = false;

	*slot = 0;
	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	queue = task_queue_get(ios, opf);
	if (!queue) {
		/* No memory for a queue: it takes its chance among the tags. */
		granted = may_sleep;
		goto out;
	}
	if (atomic_read(&ios->nr_tags_used) < (int)tags_total(ios) &&
	    dt_gate_enter(&dev->core, &queue->core)) {
		atomic_inc(&ios->nr_tags_used);
		granted = true;
		goto granted;
	}
	had_work = dt_has_work(&dev->core);
	dt_gate_wait(&dev->core, &waiter.core, &queue->core, disktime_now());
	/*
	 * Its barrier also pairs with the one in disktime_gate_finished():
	 * either we see the tag that was freed, or it sees us.
	 */
	disktime_drain_again(dev);
	disktime_gate_run(ios);
	/* A wait at the gate ends anticipation, as nobody else may see. */
	kick = !had_work && dt_has_work(&dev->core);
	granted = waiter.core.granted;
	if (!granted && !may_sleep) {
		dt_gate_cancel(&dev->core, &waiter.core, disktime_now());
		disktime_queue_put(dev, queue, disktime_now());
		goto out;
	}
	if (!granted) {
		disktime_arm(dev);
		spin_unlock_irq(&dev->lock);
		if (kick)
			disktime_kick(dev);
		kick = false;
		for (;;) {
			set_current_state(TASK_UNINTERRUPTIBLE);
			if (READ_ONCE(waiter.core.granted))
				break;
			io_schedule();
		}
		__set_current_state(TASK_RUNNING);
		/* Also waits for disktime_gate_run() to be done with us. */
		spin_lock_irq(&dev->lock);
		granted = true;
	}
granted:
	if (may_sleep)
		*slot = slot_take(ios, queue);
	if (!*slot)
		forgo(ios, queue);
out:
	disktime_arm(dev);
	spin_unlock_irq(&dev->lock);
	if (kick)
		disktime_kick(dev);
	return granted;
}

static noinline void promise_one(struct disktime_iosched *ios, blk_opf_t opf,
				 struct blk_mq_alloc_data *data)
{
	bool may_sleep = !disktime_data_nowait(data);
	unsigned int slot;

	if (get_promise(ios, opf, may_sleep, &slot))
		data->rq_flags |= slot_to_flags(slot);
	else if (!may_sleep)
		disktime_data_set_depth(data, disktime_shallow_depth(data, 1));
}

/* Called from __blk_mq_alloc_requests(), maybe twice for one request. */
void disktime_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct elevator_queue *eq = disktime_data_q(data)->elevator;
	struct disktime_iosched *ios = eq->elevator_data;
	int total = tags_total(ios);
	int room = total - atomic_read(&ios->nr_tags_used);

	if (disktime_slot_of(data->rq_flags))
		return;
	if (total >= PLENTY && room > SCARCE(total) &&
	    !READ_ONCE(ios->dev->core.nr_waiting)) {
		/* A plug may take several at once, but not of those. */
		data->nr_tags = min_t(int, data->nr_tags,
				      room - SCARCE(total));
		return;
	}
	/* No batches where each request is handed out. */
	data->nr_tags = 1;
	if (!(opf & (REQ_META | REQ_SWAP)))
		promise_one(ios, opf, data);
}

void disktime_gate_redeem(struct disktime_iosched *ios, struct request *rq)
{
	unsigned int slot = disktime_slot_of(rq->rq_flags);
	struct disktime_queue *queue = NULL;

	rq->rq_flags &= ~slot_to_flags(DISKTIME_NR_SLOTS - 1);
	spin_lock_irq(&ios->dev->lock);
	swap(queue, ios->slots[slot]);
	spin_unlock_irq(&ios->dev->lock);
	rq->elv.priv[1] = queue;
}

void disktime_gate_settle(struct disktime_iosched *ios, struct request *rq)
{
	struct disktime_queue *queue = rq->elv.priv[1];

	rq->elv.priv[1] = NULL;
	settle(ios, queue);
}

void disktime_gate_hand_on(struct disktime_iosched *ios)
{
	unsigned long flags;

	spin_lock_irqsave(&ios->dev->lock, flags);
	disktime_drain(ios->dev);
	disktime_gate_run(ios);
	spin_unlock_irqrestore(&ios->dev->lock, flags);
}
