// SPDX-License-Identifier: GPL-2.0-only
/*
 * disktime as an I/O scheduler.
 *
 * The block layer's side of the core: requests become items of the queue of
 * their cgroup and process, the device's dispatch order is the core's, and its
 * timer is kept. One lock a device; hardware queues share all there is, so any
 * of them may dispatch a request that was prepared for another.
 *
 * A request lives through these callbacks:
 *
 *	limit_depth -> prepare -> insert -> dispatch -> completed -> finish
 *			  |         |           `-> requeue -> insert ...
 *			  |         `-> merged into another -> finish
 *			  `-> never inserted (flush, errors) -> finish
 *
 * The core ignores completions of what it has not dispatched, so the second
 * completion of a flush sequence, and requests that come back past the
 * scheduler, upset no count.
 */
#include "iosched.h"
#include "trace.h"

/* Bounds what follows from a device that says it takes any number at once. */
#define DISKTIME_DEPTH_CAP	4096

#define DISKTIME_WATCH_INTERVAL	(2 * HZ)

static struct kmem_cache *disktime_chunk_cache;

/* ---- kicking and waking ---- */

void disktime_kick(struct disktime_dev *dev)
{
	if (dt_has_work(&dev->core))
		blk_mq_run_hw_queues(dev->q, true);
}

static enum hrtimer_restart disktime_timer(struct hrtimer *timer)
{
	struct disktime_dev *dev =
		container_of(timer, struct disktime_dev, timer);
	unsigned long flags;

	spin_lock_irqsave(&dev->lock, flags);
	dev->timer_ns = 0;
	disktime_drain(dev);
	dt_tick(&dev->core, disktime_now());
	disktime_arm(dev);
	spin_unlock_irqrestore(&dev->lock, flags);

	disktime_kick(dev);
	return HRTIMER_NORESTART;
}

static void tell_fault(struct disktime_iosched *ios)
{
	struct dt_dev *core = &ios->dev->core;

	if (ios->fault_told || core->fault == DT_OK)
		return;
	ios->fault_told = true;
	trace_disktime_fallback(disktime_q_dev(ios->q), core->fault);
	pr_err("disktime: %s: serving in order of arrival (%s); write rearm to iosched/health to go on\n",
	       ios->q->disk ? ios->q->disk->disk_name : "?",
	       dt_fault_name(core->fault));
}

/*
 * A host's tags, which all hardware queues share, are resized after
 * depth_updated() was called, so that their number is seen only now.
 */
static void follow_shared_tags(struct disktime_iosched *ios, u64 now)
{
	struct request_queue *q = ios->q;
	u32 tags = READ_ONCE(q->nr_requests);

	if (!(q->tag_set->flags & BLK_MQ_F_TAG_HCTX_SHARED) || !tags ||
	    tags == ios->dev->core.tags)
		return;
	dt_dev_resize(&ios->dev->core, ios->depth_hw, tags, now);
	disktime_gate_run(ios);
}

static void disktime_watch(struct work_struct *work)
{
	struct disktime_iosched *ios = container_of(to_delayed_work(work),
					struct disktime_iosched, watch);
	struct disktime_dev *dev = ios->dev;
	u64 now = disktime_now();

	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	dt_watch(&dev->core, now);
	tell_fault(ios);
	follow_shared_tags(ios, now);
	/* For whom a turn that ended has made room, with nothing in flight. */
	disktime_gate_run(ios);
	if (now > 5 * NSEC_PER_SEC)
		disktime_queue_reap(dev, NULL, now - 5 * NSEC_PER_SEC);
	spin_unlock_irq(&dev->lock);

	disktime_kick(dev);
	queue_delayed_work(system_unbound_wq, &ios->watch,
			   DISKTIME_WATCH_INTERVAL);
}

/* ---- items ---- */

static noinline struct disktime_rq *new_chunk(struct disktime_rq **slot)
{
	struct disktime_rq *chunk;

	chunk = kmem_cache_zalloc(disktime_chunk_cache,
				  GFP_NOWAIT | __GFP_NOWARN);
	if (chunk && cmpxchg(slot, NULL, chunk)) {
		kmem_cache_free(disktime_chunk_cache, chunk);
		chunk = READ_ONCE(*slot);
	}
	return chunk;
}

static struct disktime_rq *rq_memory(struct request *rq)
{
	struct disktime_hctx *own = rq->mq_hctx->sched_data;
	unsigned int tag = rq->internal_tag;
	struct disktime_rq **slot, *chunk;

	if (!own || tag >= DISKTIME_TAGS_MAX)
		return NULL;
	slot = &own->chunks[tag / DISKTIME_RQS_PER_CHUNK];
	chunk = READ_ONCE(*slot);
	if (unlikely(!chunk)) {
		chunk = new_chunk(slot);
		if (!chunk)
			return NULL;
	}
	return &chunk[tag % DISKTIME_RQS_PER_CHUNK];
}

/* Account what has completed, taking the lock for it. */
static noinline void drain_now(struct disktime_dev *dev)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->lock, flags);
	disktime_drain(dev);
	spin_unlock_irqrestore(&dev->lock, flags);
}

/*
 * A bio that asks for a flush is one request from here to its end, whatever
 * the block layer makes of it meanwhile; those steps pass by the scheduler.
 */
static noinline void begin_commit(struct disktime_dev *dev,
				  struct disktime_rq *drq)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->lock, flags);
	disktime_drain(dev);
	drq->commit_ns = disktime_now();
	dt_commit_begin(&dev->core, drq->commit_ns);
	disktime_arm(dev);
	spin_unlock_irqrestore(&dev->lock, flags);
}

/*
 * A drive whose cache survives is asked for no flush; there the journal's
 * writes are the commits. Under dev->lock.
 */
static noinline void begin_journal(struct disktime_dev *dev,
				   struct request *rq, struct disktime_rq *drq,
				   u64 now)
{
	if (!op_is_sync(rq->cmd_flags) || !op_is_write(req_op(rq)))
		return;
	drq->commit_ns = now;
	dt_commit_begin(&dev->core, now);
}

static noinline void end_commit(struct disktime_dev *dev,
				struct disktime_rq *drq)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->lock, flags);
	disktime_drain(dev);
	dt_commit_end(&dev->core, drq->commit_ns, disktime_now());
	drq->commit_ns = 0;
	disktime_arm(dev);
	spin_unlock_irqrestore(&dev->lock, flags);
	disktime_kick(dev);
}

/* Called from blk_mq_rq_ctx_init(). The bio is not known yet. */
static void disktime_prepare_request(struct request *rq)
{
	struct disktime_iosched *ios = rq->q->elevator->elevator_data;
	struct disktime_rq *drq = rq_memory(rq);

	disktime_gate_prepared(ios, rq);
	rq->elv.priv[0] = drq;
	if (!drq)
		return;
	/* Its last use may have ended, but not been accounted. */
	if (unlikely(disktime_rq_pending(drq)))
		drain_now(ios->dev);
	drq->item.state = DT_ITEM_FREE;
	drq->rq = rq;
	drq->queue = NULL;
	drq->tgid = current->tgid;
	drq->commit_ns = 0;
	if (unlikely(rq->cmd_flags & REQ_PREFLUSH)) {
		ios->flushes = true;
		begin_commit(ios->dev, drq);
	}
}

static void forget_merging(struct request_queue *q, struct request *rq)
{
	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
}

/*
 * The request goes, whatever became of it. What has become dispatchable is
 * dispatched when its tag is free: see disktime_completed_request().
 */
static noinline void drop(struct disktime_iosched *ios, struct request *rq,
			  struct disktime_rq *drq)
{
	struct disktime_dev *dev = ios->dev;
	bool had_work, work;
	unsigned long flags;
	u64 now;

	spin_lock_irqsave(&dev->lock, flags);
	had_work = dt_has_work(&dev->core);
	disktime_drain(dev);
	if (drq->queue) {
		now = disktime_now();
		if (drq->item.state == DT_ITEM_QUEUED)
			forget_merging(rq->q, rq);
		dt_remove(&dev->core, &drq->item, now);
		dt_complete(&dev->core, &drq->item, now);
		disktime_queue_put(dev, drq->queue, now);
		drq->queue = NULL;
	}
	work = dt_has_work(&dev->core);
	disktime_arm(dev);
	spin_unlock_irqrestore(&dev->lock, flags);
	if (work && !had_work)
		blk_mq_sched_mark_restart_hctx(rq->mq_hctx);
}

/* It was promised a tag, had it, and was never inserted. */
static noinline void give_up_promise(struct disktime_iosched *ios,
				     struct request *rq)
{
	unsigned long flags;

	spin_lock_irqsave(&ios->dev->lock, flags);
	disktime_gate_inserted(ios, rq);
	spin_unlock_irqrestore(&ios->dev->lock, flags);
}

/* Called from blk_mq_free_request(), in any context. */
static void disktime_finish_request(struct request *rq)
{
	struct disktime_iosched *ios = rq->q->elevator->elevator_data;
	struct disktime_rq *drq;

	if (!disktime_rq_is_sched(rq))
		return;
	drq = disktime_rq_of(rq);
	if (unlikely(rq->elv.priv[1]))
		give_up_promise(ios, rq);
	/* Freed without having been dispatched, or completed. */
	if (drq && READ_ONCE(drq->queue) && !disktime_rq_pending(drq))
		drop(ios, rq, drq);
	if (drq && unlikely(drq->commit_ns))
		end_commit(ios->dev, drq);
	rq->elv.priv[0] = NULL;
	disktime_gate_finished(ios);
}

/* One that was not the last to be found; @key on the stack here alone. */
static noinline struct disktime_queue *look_for(struct disktime_dev *dev,
						struct disktime_group *grp,
						struct disktime_key key, u64 now)
{
	return disktime_queue_get(dev, grp, &key, now);
}

/* The queue that a new item belongs to, referenced; NULL: no memory. */
static __always_inline struct disktime_queue *
queue_for(struct disktime_iosched *ios, struct request *rq,
	  const struct disktime_rq *drq, bool at_head, u64 now)
{
	struct disktime_dev *dev = ios->dev;
	struct disktime_key key = { .head = true, .sync = true };
	struct disktime_group *grp = disktime_bio_group(dev, rq->bio);
	struct disktime_queue *queue = grp->recent;

	if (!at_head)
		key = disktime_make_key(ios, rq->cmd_flags, drq->tgid,
					req_get_ioprio(rq));
	if (likely(queue && disktime_same_key(queue->key, key))) {
		queue->refs++;
		return queue;
	}
	return look_for(dev, grp, key, now);
}

/*
 * Whether a request for which there is room is issued as soon as the queue is
 * run. Where it might wait for something that we do not see, a budget, a tag
 * that other queues use too or a busy device, it does so in its line.
 */
static bool may_pass(const struct disktime_iosched *ios,
		     const struct blk_mq_hw_ctx *hctx)
{
	return ios->passes && !(hctx->flags & BLK_MQ_F_TAG_QUEUE_SHARED) &&
	       !READ_ONCE(hctx->dispatch_busy);
}

/*
 * A request that has passed alone is for the next dispatch to have. They are
 * linked one way by hand: with CONFIG_DEBUG_LIST, which distributions set, two
 * calls a request less.
 */
static void pass_on(struct disktime_iosched *ios, struct request *rq)
{
	struct list_head *node = &rq->queuelist;

	node->next = NULL;
	if (ios->passed)
		ios->passed_last->next = node;
	else
		WRITE_ONCE(ios->passed, node);
	ios->passed_last = node;
}

static struct request *take_passed(struct disktime_iosched *ios)
{
	struct list_head *node = ios->passed;

	WRITE_ONCE(ios->passed, node->next);
	INIT_LIST_HEAD(node);
	return list_entry(node, struct request, queuelist);
}

/*
 * Whether it is for the device to have at @now, nobody being before it. One
 * reading of the clock does for all that are inserted together.
 */
static __always_inline bool pass(struct disktime_iosched *ios,
				 struct request *rq, u64 now)
{
	struct disktime_dev *dev = ios->dev;
	struct disktime_rq *drq;
	struct dt_item *item;

	if (!disktime_rq_is_sched(rq))
		return false;
	drq = disktime_rq_of(rq);
	if (!drq)
		return false;
	if (!drq->queue)
		drq->queue = queue_for(ios, rq, drq, false, now);
	item = &drq->item;
	if (unlikely(!drq->queue) ||
	    !dt_pass(&dev->core, &drq->queue->core, item,
		     op_is_write(req_op(rq)) ? DT_WRITE : DT_READ,
		     blk_rq_pos(rq), blk_rq_sectors(rq), now))
		return false;
	drq->queue->grp->nr_inserted++;
	disktime_gate_inserted(ios, rq);
	if (trace_disktime_pick_enabled())
		trace_disktime_pick(disktime_q_dev(ios->q),
				    drq->queue->grp->cgroup_id, item->node.key,
				    item->sectors, 0, item->estimate_ns,
				    dev->core.nr_inflight);
	return true;
}

/* Under dev->lock. */
static void insert_one(struct disktime_iosched *ios, struct request *rq,
		       bool at_head, struct list_head *free)
{
	struct disktime_rq *drq = disktime_rq_is_sched(rq) ?
				  disktime_rq_of(rq) : NULL;
	struct disktime_dev *dev = ios->dev;
	struct disktime_queue *queue;
	struct request_queue *q = ios->q;
	unsigned int flags = 0;
	bool was_idle;
	u64 now;

	/*
	 * Discards of many ranges would be merged here with those of any
	 * cgroup, and without a word to us. Their bios have had their chance.
	 */
	if (dt_has_items(&dev->core) && !at_head && req_op(rq) != REQ_OP_DISCARD &&
	    blk_mq_sched_try_insert_merge(q, rq, free))
		return;

	/*
	 * It has existed since then and waits since then; a clock read less. A
	 * request that comes back has been here later than that.
	 */
	now = dt_later(rq->start_time_ns, dev->core.clock_ns);
	if (drq && !drq->queue)
		drq->queue = queue_for(ios, rq, drq, at_head, now);
	if (!drq || !drq->queue) {
		/* No memory: served first, unweighed, rather than lost. */
		pass_on(ios, rq);
		ios->nr_bypassed++;
		return;
	}
	queue = drq->queue;
	was_idle = !queue->grp->core.own->nr_queued;
	if (at_head)
		flags |= DT_INSERT_HEAD;
	if (rq->cmd_flags & (REQ_META | REQ_SWAP))
		flags |= DT_INSERT_EXPRESS;
	if (flags && !at_head && !ios->flushes && !drq->commit_ns)
		begin_journal(dev, rq, drq, now);
	dt_insert(&dev->core, &queue->core, &drq->item,
		  op_is_write(req_op(rq)) ? DT_WRITE : DT_READ,
		  blk_rq_pos(rq), blk_rq_sectors(rq), flags, now);
	disktime_gate_inserted(ios, rq);
	queue->grp->nr_inserted++;
	if (was_idle && trace_disktime_activate_enabled())
		trace_disktime_activate(disktime_q_dev(q),
					queue->grp->cgroup_id,
					queue->grp->core.ent.weight);

	if (!at_head && disktime_rq_mergeable(rq)) {
		elv_rqhash_add(q, rq);
		if (!q->last_merge)
			q->last_merge = rq;
	}
}

/* Put the rest of the list in line, and let go of dev->lock. */
static noinline void insert_rest(struct disktime_iosched *ios,
				 struct list_head *list, bool at_head)
{
	struct disktime_dev *dev = ios->dev;
	struct request *rq, *next;
	LIST_HEAD(free);

	list_for_each_entry_safe(rq, next, list, queuelist) {
		INIT_LIST_HEAD(&rq->queuelist);
		insert_one(ios, rq, at_head, &free);
	}
	INIT_LIST_HEAD(list);
	disktime_drain_again(dev);
	disktime_arm(dev);
	spin_unlock_irq(&dev->lock);

	while (!list_empty(&free)) {
		rq = list_first_entry(&free, struct request, queuelist);
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

/*
 * Several requests while nothing is queued. Those that pass go where others
 * stand that the driver had no room for: they are issued together before the
 * scheduler is asked for more, and each takes half of what asking takes. Lets
 * go of dev->lock.
 */
static noinline void insert_several(struct disktime_iosched *ios,
				    struct blk_mq_hw_ctx *hctx,
				    struct list_head *list)
{
	u64 now = disktime_now();
	struct list_head *node;
	struct request *rq;
	LIST_HEAD(passed);

	list_for_each(node, list) {
		rq = list_entry(node, struct request, queuelist);
		if (!pass(ios, rq, now))
			break;
		rq->rq_flags |= RQF_STARTED;
	}
	list_cut_before(&passed, list, node);
	if (list_empty(list))
		spin_unlock_irq(&ios->dev->lock);
	else
		insert_rest(ios, list, false);
	if (list_empty(&passed))
		return;
	spin_lock(&hctx->lock);
	list_splice_tail(&passed, &hctx->dispatch);
	spin_unlock(&hctx->lock);
}

/* Called from blk_mq_insert_request(), blk_mq_dispatch_plug_list(). */
DISKTIME_INSERT_REQUESTS(disktime_insert_requests, hctx, list, at_head)
{
	struct disktime_iosched *ios = hctx->queue->elevator->elevator_data;
	struct disktime_dev *dev = ios->dev;
	struct request *rq;
	u64 now;

	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	if (!dev->core.nr_queued && !at_head && may_pass(ios, hctx)) {
		if (list->next->next != list) {
			insert_several(ios, hctx, list);
			return;
		}
		rq = list_entry(list->next, struct request, queuelist);
		now = disktime_submit_ns(dev->core.clock_ns);
		if (likely(pass(ios, rq, now))) {
			INIT_LIST_HEAD(list);
			pass_on(ios, rq);
			/* Nothing is queued: no completion is needed. */
			spin_unlock_irq(&dev->lock);
			return;
		}
	}
	insert_rest(ios, list, at_head);
}

/* Called from __blk_mq_do_dispatch_sched(), on several CPUs at once. */
static struct request *disktime_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct request_queue *q = hctx->queue;
	struct disktime_iosched *ios = q->elevator->elevator_data;
	struct disktime_dev *dev = ios->dev;
	struct request *rq = NULL;
	struct disktime_rq *drq;
	struct dt_item *item;

	spin_lock_irq(&dev->lock);
	if (ios->passed) {
		rq = take_passed(ios);
		goto out;
	}
	disktime_drain(dev);
	item = dt_dispatch(&dev->core, disktime_now());
	if (dev->core.nr_waiting)
		disktime_gate_run(ios);
	if (item) {
		drq = disktime_rq_of_item(item);
		rq = drq->rq;
		forget_merging(q, rq);
		if (trace_disktime_pick_enabled())
			trace_disktime_pick(disktime_q_dev(q),
					    drq->queue->grp->cgroup_id,
					    item->node.key, item->sectors,
					    item->dispatch_ns - item->insert_ns,
					    item->estimate_ns,
					    dev->core.nr_inflight);
	}
	if (unlikely(dev->core.fault))
		tell_fault(ios);
	disktime_arm(dev);
out:
	spin_unlock_irq(&dev->lock);
	if (rq)
		rq->rq_flags |= RQF_STARTED;
	return rq;
}

/* Called from blk_mq_hctx_has_pending() and while dispatching; no lock. */
static bool disktime_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct disktime_iosched *ios = hctx->queue->elevator->elevator_data;

	return dt_has_work(&ios->dev->core) ||
	       READ_ONCE(ios->passed);
}

/*
 * Called from __blk_mq_end_request_acct(), before the request is freed. What
 * has become dispatchable is dispatched when its tags are free as well: the
 * block layer runs a hardware queue that is marked so after freeing them.
 */
static void disktime_completed_request(struct request *rq, u64 now)
{
	struct disktime_iosched *ios = rq->q->elevator->elevator_data;
	struct disktime_rq *drq;

	if (!disktime_rq_is_sched(rq))
		return;
	drq = disktime_rq_of(rq);
	/* A flush sequence ends twice. */
	if (!drq || disktime_rq_pending(drq) || !READ_ONCE(drq->queue) ||
	    drq->item.state != DT_ITEM_DISPATCHED)
		return;
	if (disktime_complete(ios->dev, drq, now))
		blk_mq_sched_mark_restart_hctx(rq->mq_hctx);
}

/* Called from blk_mq_requeue_request(). */
static void disktime_requeue_request(struct request *rq)
{
	struct disktime_iosched *ios = rq->q->elevator->elevator_data;
	struct disktime_dev *dev = ios->dev;
	struct disktime_rq *drq;
	unsigned long flags;

	if (!disktime_rq_is_sched(rq))
		return;
	drq = disktime_rq_of(rq);
	if (!drq || !drq->queue)
		return;
	spin_lock_irqsave(&dev->lock, flags);
	disktime_drain(dev);
	dt_requeue(&dev->core, &drq->item, disktime_now());
	disktime_queue_put(dev, drq->queue, disktime_now());
	drq->queue = NULL;
	disktime_arm(dev);
	spin_unlock_irqrestore(&dev->lock, flags);
}

/* ---- merging ---- */

static noinline bool merge_bio(struct disktime_iosched *ios,
			       struct request_queue *q, struct bio *bio,
			       unsigned int nr_segs)
{
	struct request *free = NULL;
	bool merged;

	spin_lock_irq(&ios->dev->lock);
	merged = blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	spin_unlock_irq(&ios->dev->lock);
	if (free)
		blk_mq_free_request(free);
	return merged;
}

/* Called from blk_mq_submit_bio(), before a tag is taken. */
static bool disktime_bio_merge(struct request_queue *q, struct bio *bio,
			       unsigned int nr_segs)
{
	struct disktime_iosched *ios = q->elevator->elevator_data;

	return dt_has_items(&ios->dev->core) &&
	       merge_bio(ios, q, bio, nr_segs);
}

/* Called from elv_merge(), under dev->lock: may bio go before a request? */
static int disktime_request_merge(struct request_queue *q, struct request **rq,
				  struct bio *bio)
{
	struct disktime_iosched *ios = q->elevator->elevator_data;
	struct disktime_dev *dev = ios->dev;
	struct disktime_queue *queue;
	struct disktime_key key;
	struct dt_item *item;
	struct request *found;

	key = disktime_make_key(ios, bio->bi_opf, current->tgid,
				bio->bi_ioprio);
	queue = disktime_queue_find(dev, disktime_bio_group(dev, bio), &key);
	if (!queue)
		return ELEVATOR_NO_MERGE;
	item = dt_queue_find(&queue->core, bio_end_sector(bio));
	if (!item)
		return ELEVATOR_NO_MERGE;
	found = disktime_rq_of_item(item)->rq;
	/* Discards merge by range, for which the block layer looks elsewhere. */
	if (req_op(found) == REQ_OP_DISCARD || !elv_bio_merge_ok(found, bio))
		return ELEVATOR_NO_MERGE;
	*rq = found;
	return ELEVATOR_FRONT_MERGE;
}

/*
 * Called from elv_bio_merge_ok(), under dev->lock. Requests of different
 * groups must never become one: its time would be charged to one of them.
 */
static bool disktime_allow_merge(struct request_queue *q, struct request *rq,
				 struct bio *bio)
{
	struct disktime_iosched *ios = q->elevator->elevator_data;
	struct disktime_rq *drq = disktime_rq_is_sched(rq) ?
				  disktime_rq_of(rq) : NULL;

	return drq && drq->queue &&
	       drq->queue->grp == disktime_bio_group(ios->dev, bio) &&
	       drq->queue->key.sync == op_is_sync(bio->bi_opf);
}

/* Called from elv_merged_request(), under dev->lock. */
static void disktime_request_merged(struct request_queue *q,
				    struct request *rq, enum elv_merge type)
{
	struct disktime_iosched *ios = q->elevator->elevator_data;
	struct disktime_rq *drq = disktime_rq_of(rq);

	if (drq)
		dt_grow(&ios->dev->core, &drq->item, blk_rq_pos(rq),
			blk_rq_sectors(rq));
}

/* Called from elv_merge_requests(), under dev->lock: next is part of rq now. */
static void disktime_requests_merged(struct request_queue *q,
				     struct request *rq, struct request *next)
{
	struct disktime_iosched *ios = q->elevator->elevator_data;
	struct disktime_rq *drq = disktime_rq_of(rq);
	struct disktime_rq *gone = disktime_rq_of(next);

	forget_merging(q, next);
	if (gone && gone->queue) {
		gone->queue->grp->nr_merged++;
		dt_remove(&ios->dev->core, &gone->item, disktime_now());
	}
	if (drq)
		dt_grow(&ios->dev->core, &drq->item, blk_rq_pos(rq),
			blk_rq_sectors(rq));
}

/* Called from elv_latter_request(), under dev->lock. */
static struct request *disktime_next_request(struct request_queue *q,
					     struct request *rq)
{
	struct disktime_rq *drq = disktime_rq_of(rq);
	struct dt_item *item = drq ? dt_item_next(&drq->item) : NULL;

	return item ? disktime_rq_of_item(item)->rq : NULL;
}

/* Called from elv_former_request(), under dev->lock. */
static struct request *disktime_former_request(struct request_queue *q,
					       struct request *rq)
{
	struct disktime_rq *drq = disktime_rq_of(rq);
	struct dt_item *item = drq ? dt_item_prev(&drq->item) : NULL;

	return item ? disktime_rq_of_item(item)->rq : NULL;
}

/* ---- init and exit ---- */

/*
 * Hardware queues that processes map to and that interrupt. Those for polling
 * are left out: who polls has its own, and they would count as room here.
 */
static bool counts(const struct blk_mq_hw_ctx *hctx)
{
	return hctx->nr_ctx && hctx->type != HCTX_TYPE_POLL;
}

static u32 hw_depth(struct request_queue *q)
{
	u32 each = q->tag_set->queue_depth;
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;
	u64 depth = 0;

	if (q->tag_set->flags & BLK_MQ_F_TAG_HCTX_SHARED)
		depth = each;
	else
		queue_for_each_hw_ctx(q, hctx, i)
			depth += counts(hctx) ? each : 0;
	return clamp_t(u64, depth, 1, DISKTIME_DEPTH_CAP);
}

/* All scheduler tags there are; the maps know before q->nr_requests does. */
static u32 sched_tags(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;
	u32 tags = 0;

	if (q->tag_set->flags & BLK_MQ_F_TAG_HCTX_SHARED)
		return max(q->nr_requests, 1ul);
	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx->sched_tags && counts(hctx))
			tags += hctx->sched_tags->bitmap_tags.sb.depth;
	return max(tags, 1u);
}

static void resize(struct disktime_iosched *ios)
{
	struct disktime_dev *dev = ios->dev;

	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	ios->depth_hw = hw_depth(ios->q);
	dt_dev_resize(&dev->core, ios->depth_hw, sched_tags(ios->q),
		      disktime_now());
	spin_unlock_irq(&dev->lock);
}

/* Called from blk_mq_update_nr_requests(), with the queue frozen. */
DISKTIME_DEPTH_UPDATED(disktime_depth_updated, q)
{
	resize(q->elevator->elevator_data);
	disktime_set_min_shallow_depth(q, 1);
}

/* Called from blk_mq_init_sched(), blk_mq_realloc_hw_ctxs(). */
static int disktime_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct disktime_hctx *own = kzalloc_node(sizeof(*own), GFP_KERNEL,
						 hctx->numa_node);

	if (!own)
		return -ENOMEM;
	hctx->sched_data = own;
	disktime_depth_updated_q(hctx->queue);
	return 0;
}

/* Called from blk_mq_exit_sched(), with no request left. */
static void disktime_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct disktime_iosched *ios = hctx->queue->elevator->elevator_data;
	struct disktime_hctx *own = hctx->sched_data;
	unsigned int i;

	spin_lock_irq(&ios->dev->lock);
	disktime_drain(ios->dev);
	spin_unlock_irq(&ios->dev->lock);
	for (i = 0; i < DISKTIME_NR_CHUNKS; i++)
		if (own->chunks[i])
			kmem_cache_free(disktime_chunk_cache, own->chunks[i]);
	kfree(own);
	hctx->sched_data = NULL;
}

/* Called from elevator_switch(), with the queue frozen and quiesced. */
DISKTIME_INIT_SCHED(disktime_init_sched, q, eq)
{
	struct disktime_iosched *ios;
	int ret = -ENOMEM;

	ios = kzalloc_node(sizeof(*ios), GFP_KERNEL, q->node);
	if (!ios)
		return ret;
	ios->q = q;
	ios->depth_hw = hw_depth(q);
	ios->passes = !q->mq_ops->get_budget;
	atomic_set(&ios->nr_tags_used, 0);
	INIT_DELAYED_WORK(&ios->watch, disktime_watch);

	ios->dev = disktime_dev_create(q, ios->depth_hw, q->nr_requests,
				       !blk_queue_nonrot(q));
	if (!ios->dev)
		goto free_ios;
	disktime_hrtimer_setup(&ios->dev->timer, disktime_timer,
			       CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	eq->elevator_data = ios;
	disktime_elv_install(q, eq);
	ret = disktime_dev_activate(ios->dev);
	if (ret)
		goto put_dev;
	queue_delayed_work(system_unbound_wq, &ios->watch,
			   DISKTIME_WATCH_INTERVAL);
	return 0;

put_dev:
	disktime_dev_put(ios->dev);
free_ios:
	kfree(ios);
	return ret;
}

static void check_balance(struct disktime_iosched *ios)
{
	struct dt_dev *core = &ios->dev->core;
	struct dt_counts *counts = &core->counts;

	WARN_ONCE(core->nr_queued || core->nr_inflight || core->nr_waiting ||
		  core->nr_granted || core->commits.nr_open || atomic_read(&ios->nr_tags_used) ||
		  counts->inserted != counts->removed + counts->dispatched ||
		  counts->dispatched != counts->completed + counts->requeued,
		  "disktime: queued %u inflight %u waiting %u granted %u tags %d, inserted %llu removed %llu dispatched %llu completed %llu requeued %llu",
		  core->nr_queued, core->nr_inflight, core->nr_waiting,
		  core->nr_granted, atomic_read(&ios->nr_tags_used),
		  counts->inserted, counts->removed, counts->dispatched,
		  counts->completed, counts->requeued);
	WARN_ONCE(counts->empty, "disktime: %llu empty dispatches\n",
		  counts->empty);
}

/* Called from blk_mq_exit_sched(), with the queue frozen and quiesced. */
static void disktime_exit_sched(struct elevator_queue *eq)
{
	struct disktime_iosched *ios = eq->elevator_data;

	cancel_delayed_work_sync(&ios->watch);
	hrtimer_cancel(&ios->dev->timer);
	check_balance(ios);
	disktime_dev_deactivate(ios->dev);
	disktime_elv_wbt_enable(ios->q, eq);
	disktime_dev_put(ios->dev);
	kfree(ios);
}

static struct elevator_type disktime_elevator = {
	.ops = {
		.limit_depth		= disktime_limit_depth,
		.prepare_request	= disktime_prepare_request,
		.finish_request		= disktime_finish_request,
		.requeue_request	= disktime_requeue_request,
		.insert_requests	= disktime_insert_requests,
		.dispatch_request	= disktime_dispatch_request,
		.has_work		= disktime_has_work,
		.completed_request	= disktime_completed_request,
		.bio_merge		= disktime_bio_merge,
		.allow_merge		= disktime_allow_merge,
		.request_merge		= disktime_request_merge,
		.request_merged		= disktime_request_merged,
		.requests_merged	= disktime_requests_merged,
		.next_request		= disktime_next_request,
		.former_request		= disktime_former_request,
		.depth_updated		= disktime_depth_updated,
		.init_hctx		= disktime_init_hctx,
		.exit_hctx		= disktime_exit_hctx,
		.init_sched		= disktime_init_sched,
		.exit_sched		= disktime_exit_sched,
	},
	.elevator_attrs		= disktime_attrs,
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs	= disktime_debugfs_attrs,
#endif
	.elevator_name		= "disktime",
	.elevator_owner		= THIS_MODULE,
};

static int __init disktime_iosched_init(void)
{
	int ret;

	disktime_chunk_cache = kmem_cache_create("disktime_rqs",
			DISKTIME_RQS_PER_CHUNK * sizeof(struct disktime_rq),
			0, SLAB_HWCACHE_ALIGN, NULL);
	if (!disktime_chunk_cache)
		return -ENOMEM;
	ret = elv_register(&disktime_elevator);
	if (ret)
		kmem_cache_destroy(disktime_chunk_cache);
	return ret;
}

static void __exit disktime_iosched_exit(void)
{
	elv_unregister(&disktime_elevator);
	kmem_cache_destroy(disktime_chunk_cache);
}

module_init(disktime_iosched_init);
module_exit(disktime_iosched_exit);

MODULE_DESCRIPTION("disktime I/O scheduler");
MODULE_AUTHOR("The disktime developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_ALIAS("disktime-iosched");
