/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One block layer for the rest of disktime, whatever the kernel's version.
 *
 * Every .c file in kernel/ includes this first. The declarations behind it come
 * from the target kernel's BTF (disktime-private.h, written by tools/genprivate),
 * together with macros that say what that kernel has:
 *
 *	DISKTIME_HAVE_<function>		it exists
 *	DISKTIME_HAVE_<struct>__<member>	the member exists
 *	DISKTIME_ARG_<function>_<n>_<type>	its parameter n (from 0) is of this
 *	DISKTIME_ARG_<struct>__<member>_<n>_<type>	type or points to it
 *
 * Tests are on those facts rather than on LINUX_VERSION_CODE wherever BTF knows,
 * because stable updates move changes between versions; each names the kernel
 * that made the change. What BTF cannot know (macros, constants) goes by version.
 *
 * What may be used, from Module.symvers of Debian's 6.1 and 6.12 (both, unless
 * said otherwise):
 *
 *	elv_register elv_unregister elevator_alloc elv_bio_merge_ok
 *	elv_rqhash_add elv_rqhash_del elv_rb_add elv_rb_del elv_rb_find
 *	elv_rb_former_request elv_rb_latter_request
 *	blk_mq_sched_try_merge blk_mq_sched_try_insert_merge
 *	blk_mq_sched_mark_restart_hctx
 *	blk_mq_run_hw_queue blk_mq_run_hw_queues blk_mq_delay_run_hw_queue(s)
 *	blk_mq_free_request blk_stat_enable_accounting blk_stat_disable_accounting
 *	wbt_enable_default wbt_disable_default sbitmap_queue_min_shallow_depth
 *	blkcg_root blkcg_root_css bio_blkcg_css io_cgrp_subsys
 *	blkcg_policy_register blkcg_policy_unregister
 *	blkcg_activate_policy blkcg_deactivate_policy
 *	blkcg_print_blkgs __blkg_prfill_u64
 *	blkg_conf_prep, blkg_conf_finish (6.1), blkg_conf_init, blkg_conf_exit (6.12)
 *	ioc_find_get_icq ioc_lookup_icq put_io_context
 *
 * Not exported in either, so not to be counted on: elv_rqhash_find,
 * elv_rqhash_reposition, elv_merge, elv_merge_requests, elv_attempt_insert_merge,
 * blkg_dev_name, blkg_conf_open_bdev, blkcg_conf_open_bdev, blkdev_get_no_open,
 * kthread_blkcg, block_class.
 */
#ifndef DISKTIME_COMPAT_H
#define DISKTIME_COMPAT_H

#include "compat/public.h"

/*
 * What BTF cannot tell (macros, inline functions, who holds which lock) was read
 * in the sources of these versions only.
 */
#if !(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)) && \
	!(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0) && \
	LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0))
#error "disktime knows Linux 6.1 and 6.12; kernel/compat/README.md says how to add a version"
#endif

#include "disktime-private.h"

/* Data has no type in BTF; since 3.x it has been a struct blkcg everywhere. */
extern struct blkcg blkcg_root;

/* ------------------------------------------------------------- the elevator */

#define disktime_rb_entry_rq(node)	rb_entry((node), struct request, rb_node)

/*
 * DISKTIME_INIT_SCHED(name, q, eq) { body } defines elevator_mq_ops.init_sched.
 *
 * The body sees the queue and an elevator_queue that is its own: it sets
 * eq->elevator_data, calls disktime_elv_install() before anything that may look
 * for q->elevator (activating the policy does), and returns 0 or an errno. After
 * an errno eq is put and q->elevator is NULL again; after 0 q->elevator is eq,
 * dispatching is from one place for the whole queue, and writeback throttling is
 * off. Called with the queue frozen and quiesced.
 *
 * 6.1, 6.12: init_sched(q, elevator_type) allocates the elevator_queue itself.
 * 7.2: the block layer has allocated it: init_sched(q, elevator_queue).
 */
static inline void disktime_elv_install(struct request_queue *q, struct elevator_queue *eq)
{
	spin_lock_irq(&q->queue_lock);
	q->elevator = eq;
	spin_unlock_irq(&q->queue_lock);
}

/*
 * Writeback throttling delays writes before a scheduler sees them, so that
 * weights would not reach them.
 *
 * 6.1: wbt_*_default() take the request_queue.
 * 6.2: a flag in the elevator_queue keeps wbt from coming back when the queue is
 * registered after the elevator was set. The bit is a macro, which BTF does not
 * hold: 1 in 6.12.
 * 6.3: wbt_*_default() take the gendisk.
 */
#ifdef DISKTIME_HAVE_elevator_queue__flags
#define DISKTIME_ELV_DISABLE_WBT	1
#endif

#ifdef DISKTIME_ARG_wbt_disable_default_0_gendisk
#define disktime_wbt_target(q)	((q)->disk)
#else
#define disktime_wbt_target(q)	(q)
#endif

static inline void disktime_elv_wbt_disable(struct request_queue *q, struct elevator_queue *eq)
{
#ifdef DISKTIME_ELV_DISABLE_WBT
	set_bit(DISKTIME_ELV_DISABLE_WBT, &eq->flags);
#endif
	wbt_disable_default(disktime_wbt_target(q));
}

/* Called from exit_sched(), last. */
static inline void disktime_elv_wbt_enable(struct request_queue *q, struct elevator_queue *eq)
{
#ifdef DISKTIME_ELV_DISABLE_WBT
	clear_bit(DISKTIME_ELV_DISABLE_WBT, &eq->flags);
#endif
	wbt_enable_default(disktime_wbt_target(q));
}

static inline int disktime_elv_started(struct request_queue *q, struct elevator_queue *eq, int ret)
{
	if (ret) {
		if (q->elevator == eq)
			disktime_elv_install(q, NULL);
		return ret;
	}
	if (q->elevator != eq)
		disktime_elv_install(q, eq);
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	disktime_elv_wbt_disable(q, eq);
	return 0;
}

#ifdef DISKTIME_ARG_elevator_mq_ops__init_sched_1_elevator_queue
#define DISKTIME_INIT_SCHED(name, q, eq)						\
static int name##_body(struct request_queue *q, struct elevator_queue *eq);		\
static int name(struct request_queue *q_, struct elevator_queue *eq_)			\
{											\
	return disktime_elv_started(q_, eq_, name##_body(q_, eq_));			\
}											\
static int name##_body(struct request_queue *q, struct elevator_queue *eq)
#else
#define DISKTIME_INIT_SCHED(name, q, eq)						\
static int name##_body(struct request_queue *q, struct elevator_queue *eq);		\
static int name(struct request_queue *q_, struct elevator_type *type_)			\
{											\
	struct elevator_queue *eq_ = elevator_alloc(q_, type_);				\
	int ret_;									\
											\
	if (!eq_)									\
		return -ENOMEM;								\
	ret_ = disktime_elv_started(q_, eq_, name##_body(q_, eq_));			\
	if (ret_)									\
		kobject_put(&eq_->kobj);						\
	return ret_;									\
}											\
static int name##_body(struct request_queue *q, struct elevator_queue *eq)
#endif

/*
 * DISKTIME_INSERT_REQUESTS(name, hctx, list, at_head) { body } defines
 * elevator_mq_ops.insert_requests; at_head is a bool.
 *
 * 6.1: it takes a bool.
 * 6.4: it takes blk_insert_t flags, of which BLK_MQ_INSERT_AT_HEAD is bit 0 (a
 * macro of block/blk-mq.h, which BTF does not hold).
 */
#ifdef DISKTIME_ARG_elevator_mq_ops__insert_requests_2_blk_insert_t
#define DISKTIME_INSERT_AT_HEAD	((__force blk_insert_t)0x01)
#define DISKTIME_INSERT_REQUESTS(name, hctx, list, at_head)				\
static void name##_body(struct blk_mq_hw_ctx *hctx, struct list_head *list,		\
			bool at_head);							\
static void name(struct blk_mq_hw_ctx *hctx_, struct list_head *list_, blk_insert_t flags_)\
{											\
	name##_body(hctx_, list_, flags_ & DISKTIME_INSERT_AT_HEAD);			\
}											\
static void name##_body(struct blk_mq_hw_ctx *hctx, struct list_head *list, bool at_head)
#else
#define DISKTIME_INSERT_REQUESTS(name, hctx, list, at_head)				\
static void name(struct blk_mq_hw_ctx *hctx, struct list_head *list, bool at_head)
#endif

/*
 * DISKTIME_DEPTH_UPDATED(name, q) { body } defines elevator_mq_ops.depth_updated,
 * and name##_q(q) to call it by, from init_hctx() for one.
 *
 * 6.1, 6.12: called once for each hctx, with that hctx.
 * 7.2: called once, with the queue.
 */
#ifdef DISKTIME_ARG_elevator_mq_ops__depth_updated_0_request_queue
#define DISKTIME_DEPTH_UPDATED(name, q)							\
static void name##_q(struct request_queue *q);						\
static void name(struct request_queue *q_)						\
{											\
	name##_q(q_);									\
}											\
static void name##_q(struct request_queue *q)
#else
#define DISKTIME_DEPTH_UPDATED(name, q)							\
static void name##_q(struct request_queue *q);						\
static void name(struct blk_mq_hw_ctx *hctx_)						\
{											\
	name##_q(hctx_->queue);								\
}											\
static void name##_q(struct request_queue *q)
#endif

/*
 * Tells the scheduler tags' maps that a limit as small as depth will be asked
 * for, without which sleepers on a full map may not be woken. From init_hctx()
 * (where a later hctx may have no map yet) and depth_updated().
 */
static inline void disktime_set_min_shallow_depth(struct request_queue *q, unsigned int depth)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx->sched_tags)
			sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags, depth);
}

/* ----------------------------------------------------------------- requests */

/*
 * Has rq been through prepare_request(), and not yet through finish_request()?
 * Only then do rq->elv.priv[] belong to the scheduler.
 *
 * 6.1: RQF_ELV marks every request allocated while a scheduler is set, flush and
 * FUA included, which never see prepare_request() but do see completed_request();
 * their rq->elv shares its place with rq->flush. RQF_ELVPRIV is the mark.
 * 6.5: RQF_USE_SCHED is set for just the requests that the scheduler handles, and
 * finish_request() is followed by clearing it.
 */
static inline bool disktime_rq_is_sched(const struct request *rq)
{
#ifdef RQF_USE_SCHED
	return rq->rq_flags & RQF_USE_SCHED;
#else
	return rq->rq_flags & RQF_ELVPRIV;
#endif
}

/*
 * May something be merged with rq, as far as rq itself goes? For the decision to
 * put it into the merge hash and q->last_merge. (rq_mergeable() is private, the
 * flags that it goes by are not.)
 */
static inline bool disktime_rq_mergeable(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
	case REQ_OP_WRITE_ZEROES:
	case REQ_OP_ZONE_APPEND:
		return false;
	default:
		return !blk_rq_is_passthrough(rq) && !(rq->cmd_flags & REQ_NOMERGE_FLAGS) &&
		       !(rq->rq_flags & RQF_NOMERGE_FLAGS);
	}
}

/*
 * Do the data of flush sequences (FUA, preflush) come to the scheduler?
 *
 * 6.1: no, they go straight to the device; no weight reaches them.
 * 6.5: yes.
 */
static inline bool disktime_flush_is_sched(void)
{
#ifdef RQF_USE_SCHED
	return true;
#else
	return false;
#endif
}

/*
 * blk_mq_alloc_data, as limit_depth() sees it. The same in 6.1 and 6.12, but it
 * is private, so it is kept behind these.
 */
static inline void disktime_data_set_depth(struct blk_mq_alloc_data *data, unsigned int depth)
{
	data->shallow_depth = depth;
}

static inline bool disktime_data_nowait(const struct blk_mq_alloc_data *data)
{
	return data->flags & BLK_MQ_REQ_NOWAIT;
}

static inline struct request_queue *disktime_data_q(const struct blk_mq_alloc_data *data)
{
	return data->q;
}

static inline struct blk_mq_hw_ctx *disktime_data_hctx(const struct blk_mq_alloc_data *data)
{
	return data->hctx;
}

/* How many requests a plug is about to take at once. */
static inline unsigned int disktime_data_nr_tags(const struct blk_mq_alloc_data *data)
{
	return data->nr_tags;
}

/*
 * shallow_depth that admits a request while fewer than depth bits of the map are
 * taken from its beginning.
 *
 * 6.1: it counts bits within each word of the map, so it has to be scaled down
 * (rounded up, at least 1).
 * 6.12 (by a stable update that Debian's kernels have): of the whole map.
 */
static inline unsigned int disktime_shallow_depth(const struct blk_mq_alloc_data *data,
						  unsigned int depth)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	return max(depth, 1u);
#else
	const struct blk_mq_tags *tags = data->hctx->sched_tags;
	u64 bits = (u64)depth << tags->bitmap_tags.sb.shift;

	if (depth >= data->q->nr_requests)
		return 1u << tags->bitmap_tags.sb.shift;
	return max_t(u64, DIV_ROUND_UP_ULL(bits, data->q->nr_requests), 1);
#endif
}

/*
 * What time it is for a task that submits: as of when the block layer read the
 * clock for it, which it keeps in the plug while the task does not sleep, and which
 * is the start of its requests; unless something has happened since, at
 * @event_ns or later. With nothing since, what the task did with its plug open
 * counts as the device's time, a microsecond for one request.
 *
 * 6.9: there is such a reading.
 */
static inline u64 disktime_submit_ns(u64 event_ns)
{
#ifdef PF_BLOCK_TS
	const struct blk_plug *plug = current->plug;

	if (plug && (s64)(plug->cur_ktime - event_ns) > 0)
		return plug->cur_ktime;
#endif
	return ktime_get_ns();
}

/* ------------------------------------------------------------------ cgroups */

static inline struct blkcg *disktime_css_blkcg(struct cgroup_subsys_state *css)
{
	return css ? container_of(css, struct blkcg, css) : NULL;
}

/*
 * The cgroup of the current task. Under RCU. A kernel thread that works for
 * another cgroup says so in a place that is not exported (kthread_blkcg()): for
 * such a thread this is the root.
 */
static inline struct blkcg *disktime_current_blkcg(void)
{
	return disktime_css_blkcg(task_css(current, io_cgrp_id));
}

static inline struct blkcg *disktime_blkcg_parent(struct blkcg *blkcg)
{
	return disktime_css_blkcg(blkcg->css.parent);
}

static inline struct blkg_policy_data *disktime_blkg_pd(struct blkcg_gq *blkg,
							const struct blkcg_policy *pol)
{
	return blkg ? blkg->pd[pol->plid] : NULL;
}

static inline struct blkcg_policy_data *disktime_blkcg_cpd(struct blkcg *blkcg,
							   const struct blkcg_policy *pol)
{
	return blkcg ? blkcg->cpd[pol->plid] : NULL;
}

static inline void disktime_blkg_get(struct blkcg_gq *blkg)
{
	percpu_ref_get(&blkg->refcnt);
}

static inline bool disktime_blkg_tryget(struct blkcg_gq *blkg)
{
	return percpu_ref_tryget(&blkg->refcnt);
}

static inline void disktime_blkg_put(struct blkcg_gq *blkg)
{
	percpu_ref_put(&blkg->refcnt);
}

static inline int disktime_blkg_path(struct blkcg_gq *blkg, char *buf, int len)
{
	return cgroup_path(blkg->blkcg->css.cgroup, buf, len);
}

/* The device's number, or 0 while the disk is being made or torn down. */
static inline dev_t disktime_q_dev(struct request_queue *q)
{
	return q->disk ? disk_devt(q->disk) : 0;
}

static inline dev_t disktime_blkg_dev(struct blkcg_gq *blkg)
{
	return disktime_q_dev(blkg->q);
}

/* An existing blkg or NULL. Under RCU, or the queue lock. */
static inline struct blkcg_gq *disktime_blkg_lookup(struct blkcg *blkcg, struct request_queue *q)
{
	struct blkcg_gq *blkg;

	if (blkcg == &blkcg_root)
		return q->root_blkg;
	blkg = rcu_dereference_raw(blkcg->blkg_hint);
	if (!blkg || blkg->q != q)
		blkg = radix_tree_lookup(&blkcg->blkg_tree, q->id);
	return blkg && blkg->q == q ? blkg : NULL;
}

/*
 * All of a cgroup's blkgs. Under blkcg->lock (irqs off), which also keeps their
 * pds: activation, blkg creation and destruction and deactivation set and clear
 * blkg->pd[] under it.
 */
#define disktime_blkcg_for_each_blkg(blkg, blkcg)					\
	hlist_for_each_entry((blkg), &(blkcg)->blkg_list, blkcg_node)

/* All of a queue's blkgs, children before their parents. Under the queue lock. */
#define disktime_q_for_each_blkg(blkg, q)						\
	list_for_each_entry((blkg), &(q)->blkg_list, q_node)

/*
 * 6.1: blkcg_(de)activate_policy() take the request_queue.
 * 6.3: they take the gendisk.
 */
#ifdef DISKTIME_ARG_blkcg_activate_policy_0_gendisk
#define disktime_policy_target(disk)	(disk)
#else
#define disktime_policy_target(disk)	((disk)->queue)
#endif

static inline int disktime_blkcg_activate(struct gendisk *disk, const struct blkcg_policy *pol)
{
	return blkcg_activate_policy(disktime_policy_target(disk), pol);
}

static inline void disktime_blkcg_deactivate(struct gendisk *disk, const struct blkcg_policy *pol)
{
	blkcg_deactivate_policy(disktime_policy_target(disk), pol);
}

static inline bool disktime_blkcg_active(struct request_queue *q, const struct blkcg_policy *pol)
{
	return test_bit(pol->plid, q->blkcg_pols);
}

/*
 * DISKTIME_PD_ALLOC(name, disk, q, blkcg, gfp) { body } defines
 * blkcg_policy.pd_alloc_fn. disk may be NULL on 6.1, while the disk is made.
 *
 * 6.1: pd_alloc_fn(gfp, q, blkcg).
 * 6.3: pd_alloc_fn(disk, blkcg, gfp).
 */
#ifdef DISKTIME_ARG_blkcg_policy__pd_alloc_fn_0_gendisk
#define DISKTIME_PD_ALLOC_(name)							\
static struct blkg_policy_data *name(struct gendisk *disk_, struct blkcg *blkcg_, gfp_t gfp_)\
{											\
	return name##_body(disk_, disk_->queue, blkcg_, gfp_);				\
}
#else
#define DISKTIME_PD_ALLOC_(name)							\
static struct blkg_policy_data *name(gfp_t gfp_, struct request_queue *q_, struct blkcg *blkcg_)\
{											\
	return name##_body(q_->disk, q_, blkcg_, gfp_);					\
}
#endif
#define DISKTIME_PD_ALLOC(name, disk, q, blkcg, gfp)					\
static struct blkg_policy_data *name##_body(struct gendisk *disk, struct request_queue *q,\
					    struct blkcg *blkcg, gfp_t gfp);		\
DISKTIME_PD_ALLOC_(name)								\
static struct blkg_policy_data *name##_body(struct gendisk *disk, struct request_queue *q,\
					    struct blkcg *blkcg, gfp_t gfp)

/*
 * Called where a pd is allocated and where it is freed.
 *
 * 6.1: a blkg of a removed cgroup leaves the queue's list at once but frees its
 * pds later, from a work item, through a policy that may be unregistered by then:
 * deactivating does not find such a pd. Each pd therefore holds the module.
 * 6.3: the blkg stays on the list until then, and deactivating frees its pd.
 */
static inline void disktime_pd_pin_module(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	__module_get(THIS_MODULE);
#endif
}

static inline void disktime_pd_unpin_module(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	module_put(THIS_MODULE);
#endif
}

/* ------------------------------------------- writes of "MAJ:MIN value" lines */

/*
 * Splits "MAJ:MIN rest" into a device number and the rest, without looking
 * whether there is such a device. -EINVAL unless both numbers are plain decimals
 * and white space follows; -ENODEV for a number that no device can have (the
 * kernel's own parser would let 8:1048576 alias 9:0).
 */
static inline int disktime_conf_parse(char *input, dev_t *dev, char **body)
{
	unsigned int part[2];
	char *at = input;
	int i;

	for (i = 0; i < 2; i++) {
		char *begin = at;

		part[i] = 0;
		while (isdigit(*at) && at - begin < 9)
			part[i] = part[i] * 10 + (*at++ - '0');
		if (at == begin || isdigit(*at))
			return -EINVAL;
		if (i == 0 && *at++ != ':')
			return -EINVAL;
	}
	if (!isspace(*at))
		return -EINVAL;
	if (part[0] >> (32 - MINORBITS) || part[1] >> MINORBITS)
		return -ENODEV;
	*dev = MKDEV(part[0], part[1]);
	*body = skip_spaces(at);
	return 0;
}

/*
 * A write to one device's setting:
 *
 *	ret = disktime_conf_prep(&ctx, blkcg, pol, input);
 *	if (ret)
 *		return ret;
 *	... ctx.dev, ctx.body; ctx.blkg if the policy is active there ...
 *	disktime_conf_exit(&ctx);
 *
 * 0 means that ctx.dev is a whole disk that exists. With ctx.blkg set, which
 * was made if need be, the queue lock is held with irqs off until
 * disktime_conf_exit(), which is then due; rq_qos_mutex is held too, and on 6.1
 * the RCU read lock. With ctx.blkg NULL the policy is not active on the device
 * and nothing is held (disktime_conf_exit() does nothing then). -EINVAL for a
 * malformed line, -ENODEV for no such device or a partition.
 *
 * 6.1: blkg_conf_prep(blkcg, pol, input, ctx) and blkg_conf_finish(), the latter
 * after success only.
 * 6.4: blkg_conf_init(), blkg_conf_prep(blkcg, pol, ctx) and blkg_conf_exit(), the
 * latter always.
 */
struct disktime_conf_ctx {
	dev_t dev;
	char *body;
	struct blkcg_gq *blkg;
	struct blkg_conf_ctx kernel;
};

static inline int disktime_conf_prep(struct disktime_conf_ctx *ctx, struct blkcg *blkcg,
				     const struct blkcg_policy *pol, char *input)
{
	int ret;

	ctx->blkg = NULL;
	ret = disktime_conf_parse(input, &ctx->dev, &ctx->body);
	if (ret)
		return ret;
#ifdef DISKTIME_HAVE_blkg_conf_init
	blkg_conf_init(&ctx->kernel, input);
	ret = blkg_conf_prep(blkcg, pol, &ctx->kernel);
	if (ret)
		blkg_conf_exit(&ctx->kernel);
#else
	ret = blkg_conf_prep(blkcg, pol, input, &ctx->kernel);
#endif
	/* Found out only once the device is known to be there and whole. */
	if (ret == -EOPNOTSUPP)
		return 0;
	if (!ret)
		ctx->blkg = ctx->kernel.blkg;
	return ret;
}

static inline void disktime_conf_exit(struct disktime_conf_ctx *ctx)
{
	if (!ctx->blkg)
		return;
	ctx->blkg = NULL;
#ifdef DISKTIME_HAVE_blkg_conf_init
	blkg_conf_exit(&ctx->kernel);
#else
	blkg_conf_finish(&ctx->kernel);
#endif
}

/*
 * The same with nothing held afterwards, for settings that are kept by device
 * number: where the policy is active the blkg exists when this returns.
 */
static inline int disktime_conf_resolve(struct blkcg *blkcg, const struct blkcg_policy *pol,
					char *input, dev_t *dev, char **body)
{
	struct disktime_conf_ctx ctx;
	int ret = disktime_conf_prep(&ctx, blkcg, pol, input);

	if (ret)
		return ret;
	disktime_conf_exit(&ctx);
	*dev = ctx.dev;
	*body = ctx.body;
	return 0;
}

/* ------------------------------------------------------------------- timers */

/*
 * 6.1, 6.12: hrtimer_init(), then the function is stored.
 * 6.13: hrtimer_setup() does both; 6.15 has only that.
 */
static inline void disktime_hrtimer_setup(struct hrtimer *timer,
					  enum hrtimer_restart (*function)(struct hrtimer *),
					  clockid_t clock, enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, clock, mode);
#else
	hrtimer_init(timer, clock, mode);
	timer->function = function;
#endif
}

#endif
