// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an operator sees and sets of one device: the files of queue/iosched in
 * sysfs, and in debugfs "state" (the core's own dump), "groups" (one line for
 * every group, for tools on machines with thousands) and "counters".
 *
 *	file		unit	default			meaning
 *	slice_usec	us	0: 160 ms rotational,	disk time of a turn; 0 is
 *				no turns otherwise	automatic
 *	idle_usec	us	8000 rotational, 2000	longest anticipation; 0 never
 *	depth		1	0: the device's, 256	requests in flight; 0 is
 *				at most			automatic
 *	order		-	cfq rotational, fifo	among a group's own requests;
 *				otherwise		fifo merges at the back only
 *	strict		0/1	0			exact shares before throughput
 *	health		-	ok			why it is not; takes "rearm"
 */
#include "iosched.h"

static const char *const order_names[] = {
	[DT_ORDER_CFQ] = "cfq",
	[DT_ORDER_DEADLINE] = "deadline",
	[DT_ORDER_FIFO] = "fifo",
};

/* Longest times that are taken: beyond, a typing error is more likely. */
#define SLICE_MAX_USEC	(10 * USEC_PER_SEC)
#define IDLE_MAX_USEC	USEC_PER_SEC

static void tune(struct disktime_iosched *ios, const struct dt_tunables *tun)
{
	struct disktime_dev *dev = ios->dev;

	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	dt_dev_tune(&dev->core, tun, disktime_now());
	disktime_arm(dev);
	spin_unlock_irq(&dev->lock);
	disktime_kick(dev);
}

/* Nothing may hide behind a NUL, which ends the text for every parser. */
static bool has_nul(const char *page, size_t count)
{
	return strnlen(page, count) != count;
}

static int parse_number(const char *page, size_t count, u32 max, u32 *value)
{
	int ret;

	if (has_nul(page, count))
		return -EINVAL;
	if (!isdigit(*page))
		return *page == '-' && isdigit(page[1]) ? -ERANGE : -EINVAL;
	ret = kstrtouint(page, 10, value);
	if (ret)
		return ret;
	return *value > max ? -ERANGE : 0;
}

/* A number in the tunables: how it is kept, and its largest value. */
#define NUMBER_ATTR(name, field, unit, max)				\
static ssize_t name##_show(struct elevator_queue *eq, char *page)	\
{									\
	struct disktime_iosched *ios = eq->elevator_data;		\
									\
	return sysfs_emit(page, "%llu\n",				\
			  (u64)ios->dev->core.tun.field / (unit));	\
}									\
									\
static ssize_t name##_store(struct elevator_queue *eq, const char *page,\
			    size_t count)				\
{									\
	struct disktime_iosched *ios = eq->elevator_data;		\
	struct dt_tunables tun = ios->dev->core.tun;			\
	u32 value;							\
	int ret = parse_number(page, count, max, &value);		\
									\
	if (ret)							\
		return ret;						\
	tun.field = (u64)value * (unit);				\
	tune(ios, &tun);						\
	return count;							\
}

NUMBER_ATTR(slice_usec, slice_ns, NSEC_PER_USEC, SLICE_MAX_USEC)
NUMBER_ATTR(idle_usec, idle_ns, NSEC_PER_USEC, IDLE_MAX_USEC)
NUMBER_ATTR(depth, depth, 1, 65536)
NUMBER_ATTR(strict, strict, 1, 1)

static ssize_t order_show(struct elevator_queue *eq, char *page)
{
	struct disktime_iosched *ios = eq->elevator_data;
	int at, len = 0;

	for (at = 0; at < ARRAY_SIZE(order_names); at++)
		len += sysfs_emit_at(page, len,
				     at == ios->dev->core.tun.order ?
				     "[%s] " : "%s ", order_names[at]);
	page[len - 1] = '\n';
	return len;
}

static ssize_t order_store(struct elevator_queue *eq, const char *page,
			   size_t count)
{
	struct disktime_iosched *ios = eq->elevator_data;
	struct dt_tunables tun = ios->dev->core.tun;
	int at = has_nul(page, count) ? -EINVAL :
					sysfs_match_string(order_names, page);

	if (at < 0)
		return at;
	tun.order = at;
	tune(ios, &tun);
	return count;
}

static ssize_t health_show(struct elevator_queue *eq, char *page)
{
	struct disktime_iosched *ios = eq->elevator_data;

	return sysfs_emit(page, "%s\n", dt_fault_name(ios->dev->core.fault));
}

/* "rearm" after a fault; "fifo" asks for plain order, to try it out. */
static ssize_t health_store(struct elevator_queue *eq, const char *page,
			    size_t count)
{
	struct disktime_iosched *ios = eq->elevator_data;
	struct disktime_dev *dev = ios->dev;
	bool rearm = sysfs_streq(page, "rearm");
	int ret = 0;

	if (has_nul(page, count) || (!rearm && !sysfs_streq(page, "fifo")))
		return -EINVAL;
	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	if (rearm) {
		dt_rearm(&dev->core, disktime_now());
		ios->fault_told = dev->core.fault != DT_OK;
		/* What is broken beyond counting anew stays as it is. */
		ret = dev->core.fault != DT_OK ? -EIO : 0;
	} else {
		dt_fail(&dev->core, DT_FAULT_ASKED, disktime_now());
	}
	disktime_arm(dev);
	spin_unlock_irq(&dev->lock);
	disktime_kick(dev);
	return ret ? ret : count;
}

#define ATTR(name) __ATTR(name, 0644, name##_show, name##_store)

struct elv_fs_entry disktime_attrs[] = {
	ATTR(slice_usec),
	ATTR(idle_usec),
	ATTR(depth),
	ATTR(order),
	ATTR(strict),
	ATTR(health),
	__ATTR_NULL
};

/* ---- debugfs ---- */

#ifdef CONFIG_BLK_DEBUG_FS

static struct disktime_iosched *ios_of(void *data)
{
	struct request_queue *q = data;

	return q->elevator->elevator_data;
}

static void print_line(void *arg, const char *text)
{
	struct seq_file *s = arg;

	seq_puts(s, text);
	seq_putc(s, '\n');
}

static int state_show(void *data, struct seq_file *s)
{
	struct disktime_iosched *ios = ios_of(data);
	struct disktime_dev *dev = ios->dev;
	int broken;

	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	broken = dt_check(&dev->core);
	dt_dump(&dev->core, print_line, s);
	spin_unlock_irq(&dev->lock);
	seq_printf(s, "check %d: %s\n", broken, dt_invariant(broken));
	return 0;
}

static int counters_show(void *data, struct seq_file *s)
{
	struct disktime_iosched *ios = ios_of(data);
	struct disktime_dev *dev = ios->dev;
	struct dt_counts counts;
	u32 queued, inflight, queues, groups;
	u64 busy, charged;

	spin_lock_irq(&dev->lock);
	disktime_drain(dev);
	counts = dev->core.counts;
	queued = dev->core.nr_queued;
	inflight = dev->core.nr_inflight;
	busy = dev->core.busy_ns;
	charged = dev->core.charged_ns;
	queues = dev->nr_queues;
	groups = dev->nr_groups;
	spin_unlock_irq(&dev->lock);
	seq_printf(s, "inserted %llu\nremoved %llu\ndispatched %llu\ncompleted %llu\nrequeued %llu\n",
		   counts.inserted, counts.removed, counts.dispatched,
		   counts.completed, counts.requeued);
	seq_printf(s, "empty %llu\nraced %llu\nclamped %llu\nfaults %llu\nunasked %llu\n",
		   counts.empty, counts.raced, counts.clamped, counts.faults,
		   counts.unasked);
	seq_printf(s, "queued %u\ninflight %u\ntags_used %d\ntags %u\nbypassed %llu\nqueues %u\ngroups %u\n",
		   queued, inflight, atomic_read(&ios->nr_tags_used),
		   dev->core.tags, ios->nr_bypassed, queues, groups);
	seq_printf(s, "busy_nsec %llu\ncharged_nsec %llu\n", busy, charged);
	return 0;
}

static int groups_show(void *data, struct seq_file *s)
{
	struct request_queue *q = data;
	struct blkg_policy_data *pd;
	struct disktime_group *grp;
	struct dt_entity *ent;
	struct blkcg_gq *blkg;
	char *path;

	path = kmalloc(PATH_MAX, GFP_KERNEL);
	if (!path)
		return -ENOMEM;
	spin_lock_irq(&q->queue_lock);
	disktime_q_for_each_blkg(blkg, q) {
		pd = disktime_blkg_pd(blkg, &disktime_policy);
		/* One that is going has let go of its cgroup, path and all. */
		if (!pd || !blkg->online ||
		    disktime_blkg_path(blkg, path, PATH_MAX) < 0)
			continue;
		grp = container_of(pd, struct disktime_group, pd);
		/* What is set on the root holds for its own processes. */
		ent = grp->core.ent.parent ? &grp->core.ent : &grp->core.leaf;
		seq_escape(s, path, " \t\n\\");
		seq_printf(s, " weight=%u class=%s ", READ_ONCE(ent->weight),
			   disktime_class_name(READ_ONCE(ent->class)));
		disktime_show_stats(s, grp);
		seq_putc(s, '\n');
	}
	spin_unlock_irq(&q->queue_lock);
	kfree(path);
	return 0;
}

const struct blk_mq_debugfs_attr disktime_debugfs_attrs[] = {
	{ "state", 0400, state_show },
	{ "groups", 0400, groups_show },
	{ "counters", 0400, counters_show },
	{ },
};

#endif /* CONFIG_BLK_DEBUG_FS */
