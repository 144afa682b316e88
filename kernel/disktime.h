/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the modules share: a device with its lock, the groups of its cgroups,
 * and the queues of their processes.
 *
 * Locks, outermost first:
 *
 *	q->rq_qos_mutex, q->blkcg_mutex (the block layer's)
 *	  q->queue_lock
 *	    blkcg->lock
 *	      cpd->lock			a cgroup's settings
 *	      dev->lock			everything of one device: the core's
 *					state, queues, references to queues
 *
 * cpd->lock and dev->lock are never held together. All of them are taken with
 * interrupts off. Running a hardware queue may take queue_lock, so it is done
 * with none of these held.
 *
 * Lifetimes. A request holds a queue, a queue holds its group, a group holds
 * its parent and its device. A group also lives while its cgroup's policy data
 * does. The core's part of a group leaves the tree with its last reference, so
 * requests in flight outlive the removal of their cgroup.
 */
#ifndef DISKTIME_KERNEL_H
#define DISKTIME_KERNEL_H

#include "compat/compat.h"
#include "core/disktime.h"

#define DISKTIME_QUEUE_HASH_BITS	6

/* A cgroup's setting for one device, or its default (dev_t 0). */
struct disktime_override {
	struct list_head link;		/* disktime_cgroup.overrides */
	dev_t dev;
	u32 weight;			/* 0: the default holds */
	u8 class;			/* DT_NR_CLASSES: the default holds */
};

/* Per cgroup. Settings are kept here by device, so they outlive schedulers. */
struct disktime_cgroup {
	struct blkcg_policy_data cpd;	/* first */
	spinlock_t lock;		/* all below */
	u32 weight;
	u8 class;
	struct list_head overrides;
};

/* Per device. */
struct disktime_dev {
	spinlock_t lock;
	struct dt_dev core;
	struct request_queue *q;
	struct disktime_group *root;	/* valid while the policy is active */
	struct list_head link;		/* the list of all devices */
	refcount_t refs;
	struct llist_head done;		/* disktime_rq.done; see completions.c */
	struct hrtimer timer;		/* for the core's wake_at */
	u64 timer_ns;			/* when it is due; 0: off */
	struct list_head idle_queues;	/* disktime_queue.idle, as they came */
	u32 nr_queues;
	u32 nr_groups;
	DECLARE_HASHTABLE(queues, DISKTIME_QUEUE_HASH_BITS);
};

/* Per cgroup and device. */
struct disktime_group {
	struct blkg_policy_data pd;	/* first */
	struct dt_group core;
	struct disktime_dev *dev;
	struct disktime_group *parent;
	refcount_t refs;
	struct disktime_queue *recent;	/* last found; dev->lock */
	u64 cgroup_id;			/* for tracing; pd.blkg may be gone */
	u64 nr_inserted;
	u64 nr_merged;
	struct rcu_head rcu;
};

/* Whose requests stand in one queue. */
struct disktime_key {
	union {
		struct {
			pid_t tgid;	/* 0: all processes of the group */
			u16 ioprio;
			bool sync;
			bool head;	/* requests inserted at the head */
		};
		u64 all;
	};
};

struct disktime_queue {
	struct dt_queue core;
	struct disktime_group *grp;
	struct disktime_key key;
	struct hlist_node hash;		/* disktime_dev.queues */
	struct list_head idle;		/* since refs was 0, till one looks */
	u64 idle_since_ns;		/* when refs fell to 0 last */
	u64 looked_ns;			/* as good as when it came to the list */
	u32 refs;			/* requests and waiters; dev->lock */
};

/* What is kept for a request; found through rq->elv.priv[0]. */
struct disktime_rq {
	struct dt_item item;
	struct request *rq;
	struct disktime_queue *queue;	/* referenced while set; dev->lock */
	struct llist_node done;		/* disktime_dev.done */
	u64 done_ns;
	u64 commit_ns;			/* since when it waits for a flush, or 0 */
	pid_t tgid;			/* who allocated it */
	bool pending;			/* on its way through dev->done */
};

static inline struct disktime_group *disktime_group_of(struct dt_group *grp)
{
	return container_of(grp, struct disktime_group, core);
}

static inline struct disktime_group *
disktime_pd_group(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct disktime_group, pd) : NULL;
}

static inline struct disktime_queue *disktime_queue_of(struct dt_queue *queue)
{
	return container_of(queue, struct disktime_queue, core);
}

static inline u64 disktime_now(void)
{
	return ktime_get_ns();
}

void disktime_arm_at(struct disktime_dev *dev, u64 at);

/* Start the timer as the core asks for: last under dev->lock. */
static inline void disktime_arm(struct disktime_dev *dev)
{
	u64 at = dt_wake_at(&dev->core);

	if (unlikely(at))
		disktime_arm_at(dev, at);
}

/* policy.c */
extern struct blkcg_policy disktime_policy;
struct disktime_dev *disktime_dev_create(struct request_queue *q, u32 depth_hw,
					 u32 tags, bool rotational);
int disktime_dev_activate(struct disktime_dev *dev);
void disktime_dev_deactivate(struct disktime_dev *dev);
void disktime_dev_put(struct disktime_dev *dev);
/*
 * The group of a blkg, or the root's. On 6.1 the policy data of a cgroup that
 * was removed outlives the use of the device it was made for: should a bio of
 * that cgroup still come, its group belongs to the past.
 */
static inline struct disktime_group *
disktime_blkg_group(struct disktime_dev *dev, struct blkcg_gq *blkg)
{
	struct disktime_group *grp =
		disktime_pd_group(disktime_blkg_pd(blkg, &disktime_policy));

	return grp && grp->dev == dev ? grp : dev->root;
}

/* The group of a bio, or the root's. The bio keeps it. */
static inline struct disktime_group *disktime_bio_group(struct disktime_dev *dev,
							struct bio *bio)
{
	return disktime_blkg_group(dev, bio ? bio->bi_blkg : NULL);
}

/* The group of the current task, or the root's. Under RCU. */
struct disktime_group *disktime_task_group(struct disktime_dev *dev);
/* Under dev->lock, as the queue holds the group's last reference but one. */
void disktime_group_get(struct disktime_group *grp);
void disktime_group_put_locked(struct disktime_group *grp);

/* settings.c: what cgroups were told */
extern struct cftype disktime_files[];
struct blkcg_policy_data *disktime_cpd_alloc(gfp_t gfp);
void disktime_cpd_free(struct blkcg_policy_data *cpd);
/* Give a group what is set for it. Under blkcg->lock. */
void disktime_group_apply(struct blkg_policy_data *pd);
const char *disktime_class_name(u8 class);
void disktime_show_stats(struct seq_file *s, struct disktime_group *grp);

/* queues.c; all under dev->lock */
static inline bool disktime_same_key(struct disktime_key a,
				     struct disktime_key b)
{
	BUILD_BUG_ON(sizeof(a) != sizeof(a.all));
	return a.all == b.all;
}

struct disktime_queue *disktime_queue_get(struct disktime_dev *dev,
					  struct disktime_group *grp,
					  const struct disktime_key *key,
					  u64 now);
struct disktime_queue *disktime_queue_find(struct disktime_dev *dev,
					   struct disktime_group *grp,
					   const struct disktime_key *key);
void disktime_queue_rest(struct disktime_dev *dev, struct disktime_queue *queue);
static inline void disktime_queue_put(struct disktime_dev *dev,
				      struct disktime_queue *queue, u64 now)
{
	lockdep_assert_held(&dev->lock);

	if (--queue->refs)
		return;
	queue->idle_since_ns = now;
	if (unlikely(list_empty(&queue->idle)))
		disktime_queue_rest(dev, queue);
}
/* Free queues that nobody has used since @before_ns, or all those of @grp. */
void disktime_queue_reap(struct disktime_dev *dev, struct disktime_group *grp,
			 u64 before_ns);

/* completions.c */
bool disktime_complete_now(struct disktime_dev *dev, struct disktime_rq *drq);
void disktime_drain_list(struct disktime_dev *dev);

/* Account what has completed, before the core is asked. Under dev->lock. */
static inline void disktime_drain(struct disktime_dev *dev)
{
	if (!llist_empty(&dev->done))
		disktime_drain_list(dev);
}

/* After something has been queued, or waits: see completions.c. */
static inline void disktime_drain_again(struct disktime_dev *dev)
{
	/* Pairs with the one in disktime_complete(). */
	smp_mb();
	disktime_drain(dev);
}

/*
 * A dispatched request is done, at @now. Returns whether there is work that
 * nobody may have been told of.
 */
static inline bool disktime_complete(struct disktime_dev *dev,
				     struct disktime_rq *drq, u64 now)
{
	drq->done_ns = now;
	drq->pending = true;
	/* A full barrier: pairs with the one in disktime_drain_again(). */
	llist_add(&drq->done, &dev->done);
	if (!dt_has_items(&dev->core) && !READ_ONCE(dev->core.nr_waiting))
		return false;
	return disktime_complete_now(dev, drq);
}

/* Whether a completed request has not reached the core; then hands off it. */
static inline bool disktime_rq_pending(const struct disktime_rq *drq)
{
	return smp_load_acquire(&drq->pending);
}

#endif /* DISKTIME_KERNEL_H */
