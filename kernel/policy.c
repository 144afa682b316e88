// SPDX-License-Identifier: GPL-2.0-only
/*
 * disktime's block-cgroup policy: a group of the core for every cgroup on every
 * device that asks for it, whatever schedules there.
 *
 * A user (an elevator, a device-mapper target) creates a disktime_dev for its
 * request queue, and activates the policy on it. From then on the block layer
 * calls back here for each cgroup that does I/O on the device.
 */
#include "disktime.h"
#include "compat/fit.h"
#include "core/entity.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

EXPORT_TRACEPOINT_SYMBOL_GPL(disktime_activate);
EXPORT_TRACEPOINT_SYMBOL_GPL(disktime_pick);
EXPORT_TRACEPOINT_SYMBOL_GPL(disktime_charge);
EXPORT_TRACEPOINT_SYMBOL_GPL(disktime_anticipate);
EXPORT_TRACEPOINT_SYMBOL_GPL(disktime_fallback);

/* The devices that have a user; pd_alloc looks its device up here. */
static LIST_HEAD(disktime_devs);
static DEFINE_SPINLOCK(disktime_devs_lock);

static struct disktime_dev *find_dev(struct request_queue *q)
{
	struct disktime_dev *dev, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&disktime_devs_lock, flags);
	list_for_each_entry(dev, &disktime_devs, link) {
		if (dev->q == q) {
			found = dev;
			break;
		}
	}
	spin_unlock_irqrestore(&disktime_devs_lock, flags);
	return found;
}

/* ---- groups ---- */

void disktime_group_get(struct disktime_group *grp)
{
	refcount_inc(&grp->refs);
}
EXPORT_SYMBOL_GPL(disktime_group_get);

/* Drop a reference; the last one takes the group, and so its parent's, away. */
void disktime_group_put_locked(struct disktime_group *grp)
{
	struct disktime_group *parent;

	lockdep_assert_held(&grp->dev->lock);

	while (grp && refcount_dec_and_test(&grp->refs)) {
		parent = grp->parent;
		if (grp->core.dev) {
			dt_group_exit(&grp->core);
			grp->dev->nr_groups--;
		}
		/* The caller, or a group that is left, holds the device. */
		disktime_dev_put(grp->dev);
		kfree_rcu(grp, rcu);
		grp = parent;
	}
}
EXPORT_SYMBOL_GPL(disktime_group_put_locked);

struct disktime_group *disktime_task_group(struct disktime_dev *dev)
{
	return disktime_blkg_group(dev,
			disktime_blkg_lookup(disktime_current_blkcg(), dev->q));
}
EXPORT_SYMBOL_GPL(disktime_task_group);

/* Called from blkg_alloc(), blkcg_activate_policy(); maybe under queue_lock. */
DISKTIME_PD_ALLOC(disktime_pd_alloc, disk, q, blkcg, gfp)
{
	struct disktime_dev *dev = find_dev(q);
	struct disktime_group *grp;

	if (!dev)
		return NULL;
	grp = kzalloc_node(sizeof(*grp), gfp, q->node);
	if (!grp)
		return NULL;
	refcount_set(&grp->refs, 1);
	refcount_inc(&dev->refs);
	grp->dev = dev;
	disktime_pd_pin_module();
	return &grp->pd;
}

/*
 * Called from blkg_create(), blkcg_activate_policy() with parents first; under
 * queue_lock and blkcg->lock.
 */
static void disktime_pd_init(struct blkg_policy_data *pd)
{
	struct disktime_group *grp = disktime_pd_group(pd);
	struct disktime_group *parent = NULL;
	struct disktime_dev *dev = grp->dev;
	struct blkcg_gq *blkg = pd->blkg;

	if (blkg->parent)
		parent = disktime_pd_group(disktime_blkg_pd(blkg->parent,
							    &disktime_policy));

	grp->cgroup_id = cgroup_id(blkg->blkcg->css.cgroup);
	spin_lock(&dev->lock);
	disktime_drain(dev);
	if (parent) {
		grp->parent = parent;
		disktime_group_get(parent);
		dt_group_init(&grp->core, &dev->core, &parent->core,
			      DT_WEIGHT_DEFAULT, DT_BE);
	} else {
		dt_group_init(&grp->core, &dev->core, NULL, DT_WEIGHT_DEFAULT,
			      DT_BE);
		dev->core.root = &grp->core;
		dev->root = grp;
	}
	dev->nr_groups++;
	spin_unlock(&dev->lock);
	disktime_group_apply(pd);
}

/*
 * Called once the blkg is on its cgroup's list, under blkcg->lock: what was set
 * since pd_init() did not find it there.
 */
static void disktime_pd_online(struct blkg_policy_data *pd)
{
	disktime_group_apply(pd);
}

/* Called when the cgroup goes, or the policy; under queue_lock, blkcg->lock. */
static void disktime_pd_offline(struct blkg_policy_data *pd)
{
	struct disktime_group *grp = disktime_pd_group(pd);
	struct disktime_dev *dev = grp->dev;

	spin_lock(&dev->lock);
	disktime_drain(dev);
	disktime_queue_reap(dev, grp, 0);
	spin_unlock(&dev->lock);
}

/*
 * Called from blkg_free_workfn(), with no bio of the cgroup left, or from
 * blkcg_deactivate_policy(). The end of a request may still be on its way here.
 */
static void disktime_pd_free(struct blkg_policy_data *pd)
{
	struct disktime_group *grp = disktime_pd_group(pd);
	struct disktime_dev *dev = grp->dev;
	unsigned long flags;

	refcount_inc(&dev->refs);
	spin_lock_irqsave(&dev->lock, flags);
	disktime_drain(dev);
	disktime_queue_reap(dev, grp, 0);
	disktime_group_put_locked(grp);
	spin_unlock_irqrestore(&dev->lock, flags);
	disktime_dev_put(dev);
	disktime_pd_unpin_module();
}

/* Called for io.stat; under blkcg's or the queue's lock. */
static void disktime_pd_stat(struct blkg_policy_data *pd, struct seq_file *s)
{
	struct disktime_group *grp = disktime_pd_group(pd);
	unsigned long flags;
	u64 time, idle, wait;

	spin_lock_irqsave(&grp->dev->lock, flags);
	disktime_drain(grp->dev);
	time = grp->core.stats.time_ns[DT_READ] +
	       grp->core.stats.time_ns[DT_WRITE];
	idle = grp->core.stats.idle_ns;
	wait = grp->core.stats.wait_ns[DT_WAIT_SHARE] +
	       grp->core.stats.wait_ns[DT_WAIT_CLASS] +
	       grp->core.stats.wait_ns[DT_WAIT_IDLE] +
	       grp->core.stats.wait_ns[DT_WAIT_DEPTH] +
	       grp->core.stats.wait_ns[DT_WAIT_TAG];
	spin_unlock_irqrestore(&grp->dev->lock, flags);
	seq_printf(s, " disktime.time_usec=%llu disktime.idle_usec=%llu disktime.wait_usec=%llu",
		   div_u64(time, NSEC_PER_USEC), div_u64(idle, NSEC_PER_USEC),
		   div_u64(wait, NSEC_PER_USEC));
}

struct blkcg_policy disktime_policy = {
	.dfl_cftypes	= disktime_files,
	.cpd_alloc_fn	= disktime_cpd_alloc,
	.cpd_free_fn	= disktime_cpd_free,
	.pd_alloc_fn	= disktime_pd_alloc,
	.pd_init_fn	= disktime_pd_init,
	.pd_online_fn	= disktime_pd_online,
	.pd_offline_fn	= disktime_pd_offline,
	.pd_free_fn	= disktime_pd_free,
	.pd_stat_fn	= disktime_pd_stat,
};
EXPORT_SYMBOL_GPL(disktime_policy);

/* ---- devices ---- */

struct disktime_dev *disktime_dev_create(struct request_queue *q, u32 depth_hw,
					 u32 tags, bool rotational)
{
	struct disktime_dev *dev = kzalloc_node(sizeof(*dev), GFP_KERNEL,
						q->node);

	if (!dev)
		return NULL;
	spin_lock_init(&dev->lock);
	refcount_set(&dev->refs, 1);
	dev->q = q;
	init_llist_head(&dev->done);
	INIT_LIST_HEAD(&dev->idle_queues);
	INIT_LIST_HEAD(&dev->link);
	hash_init(dev->queues);
	dt_dev_init(&dev->core, NULL, depth_hw, tags, rotational,
		    disktime_now());
	return dev;
}
EXPORT_SYMBOL_GPL(disktime_dev_create);

/* After this every cgroup of the device has a group. May sleep. */
int disktime_dev_activate(struct disktime_dev *dev)
{
	int ret;

	if (find_dev(dev->q))
		return -EBUSY;
	spin_lock_irq(&disktime_devs_lock);
	list_add_tail(&dev->link, &disktime_devs);
	spin_unlock_irq(&disktime_devs_lock);

	ret = disktime_blkcg_activate(dev->q->disk, &disktime_policy);
	if (!ret && dev->root)
		return 0;
	/* No root group: the disk is going. */
	if (!ret)
		disktime_blkcg_deactivate(dev->q->disk, &disktime_policy);
	spin_lock_irq(&disktime_devs_lock);
	list_del_init(&dev->link);
	spin_unlock_irq(&disktime_devs_lock);
	return ret ? ret : -EIO;
}
EXPORT_SYMBOL_GPL(disktime_dev_activate);

/* No request may be left. Groups of removed cgroups may linger on. */
void disktime_dev_deactivate(struct disktime_dev *dev)
{
	spin_lock_irq(&dev->lock);
	disktime_queue_reap(dev, NULL, U64_MAX);
	spin_unlock_irq(&dev->lock);
	disktime_blkcg_deactivate(dev->q->disk, &disktime_policy);
	spin_lock_irq(&disktime_devs_lock);
	list_del_init(&dev->link);
	spin_unlock_irq(&disktime_devs_lock);
}
EXPORT_SYMBOL_GPL(disktime_dev_deactivate);

void disktime_dev_put(struct disktime_dev *dev)
{
	if (refcount_dec_and_test(&dev->refs))
		kfree(dev);
}
EXPORT_SYMBOL_GPL(disktime_dev_put);

/* ---- the module ---- */

EXPORT_SYMBOL_GPL(dt_insert);
EXPORT_SYMBOL_GPL(dt_remove);
EXPORT_SYMBOL_GPL(dt_grow);
EXPORT_SYMBOL_GPL(dt_queue_find);
EXPORT_SYMBOL_GPL(dt_item_next);
EXPORT_SYMBOL_GPL(dt_item_prev);
EXPORT_SYMBOL_GPL(dt_dispatch);
EXPORT_SYMBOL_GPL(dt_complete);
EXPORT_SYMBOL_GPL(dt_pass);
EXPORT_SYMBOL_GPL(dt_requeue);
EXPORT_SYMBOL_GPL(dt_tick);
EXPORT_SYMBOL_GPL(dt_commit_begin);
EXPORT_SYMBOL_GPL(dt_commit_end);
EXPORT_SYMBOL_GPL(dt_dev_resize);
EXPORT_SYMBOL_GPL(dt_dev_tune);
EXPORT_SYMBOL_GPL(dt_gate_enter);
EXPORT_SYMBOL_GPL(dt_gate_wait);
EXPORT_SYMBOL_GPL(dt_gate_cancel);
EXPORT_SYMBOL_GPL(dt_gate_grant);
EXPORT_SYMBOL_GPL(dt_gate_settle);
EXPORT_SYMBOL_GPL(dt_fail);
EXPORT_SYMBOL_GPL(dt_rearm);
EXPORT_SYMBOL_GPL(dt_watch);
EXPORT_SYMBOL_GPL(dt_fault_name);
EXPORT_SYMBOL_GPL(dt_check);
EXPORT_SYMBOL_GPL(dt_invariant);
EXPORT_SYMBOL_GPL(dt_dump);

static int __init disktime_init(void)
{
	int ret = disktime_compat_check_fit();

	if (ret)
		return ret;
	return blkcg_policy_register(&disktime_policy);
}

static void __exit disktime_exit(void)
{
	blkcg_policy_unregister(&disktime_policy);
	/* Groups are freed by RCU, with code of this module's kernel only. */
	rcu_barrier();
}

module_init(disktime_init);
module_exit(disktime_exit);

MODULE_DESCRIPTION("disktime: shares of disk time for cgroups");
MODULE_AUTHOR("The disktime developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
