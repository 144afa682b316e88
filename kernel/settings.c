// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cgroup files: io.disktime.weight, .class and .stat.
 *
 * Settings live with the cgroup, by device number: they may be made before a
 * device is scheduled by disktime, and survive a change of scheduler. A write
 * is parsed in full before anything is changed. On the root cgroup they hold
 * for the root's own processes and kernel threads, as nothing stands beside
 * the root itself.
 */
#include "disktime.h"

static struct disktime_cgroup *cpd_to_cgroup(struct blkcg_policy_data *cpd)
{
	return container_of(cpd, struct disktime_cgroup, cpd);
}

static struct disktime_cgroup *blkcg_to_cgroup(struct blkcg *blkcg)
{
	return cpd_to_cgroup(disktime_blkcg_cpd(blkcg, &disktime_policy));
}

struct blkcg_policy_data *disktime_cpd_alloc(gfp_t gfp)
{
	struct disktime_cgroup *cgroup = kzalloc(sizeof(*cgroup), gfp);

	if (!cgroup)
		return NULL;
	spin_lock_init(&cgroup->lock);
	INIT_LIST_HEAD(&cgroup->overrides);
	cgroup->weight = DT_WEIGHT_DEFAULT;
	cgroup->class = DT_BE;
	return &cgroup->cpd;
}

void disktime_cpd_free(struct blkcg_policy_data *cpd)
{
	struct disktime_cgroup *cgroup = cpd_to_cgroup(cpd);
	struct disktime_override *override, *next;

	list_for_each_entry_safe(override, next, &cgroup->overrides, link)
		kfree(override);
	kfree(cgroup);
}

static struct disktime_override *find_override(struct disktime_cgroup *cgroup,
					       dev_t dev)
{
	struct disktime_override *override;

	lockdep_assert_held(&cgroup->lock);

	list_for_each_entry(override, &cgroup->overrides, link)
		if (override->dev == dev)
			return override;
	return NULL;
}

void disktime_group_apply(struct blkg_policy_data *pd)
{
	struct disktime_group *grp =
		container_of(pd, struct disktime_group, pd);
	struct disktime_cgroup *cgroup = blkcg_to_cgroup(pd->blkg->blkcg);
	struct disktime_override *override;
	struct dt_entity *ent;
	unsigned long flags;
	u32 weight;
	u8 class;

	spin_lock_irqsave(&cgroup->lock, flags);
	weight = cgroup->weight;
	class = cgroup->class;
	override = find_override(cgroup, disktime_blkg_dev(pd->blkg));
	if (override && override->weight)
		weight = override->weight;
	if (override && override->class != DT_NR_CLASSES)
		class = override->class;
	spin_unlock_irqrestore(&cgroup->lock, flags);

	spin_lock_irqsave(&grp->dev->lock, flags);
	disktime_drain(grp->dev);
	ent = grp->core.ent.parent ? &grp->core.ent : &grp->core.leaf;
	dt_entity_set_weight(ent, weight);
	dt_entity_set_class(ent, class, disktime_now());
	spin_unlock_irqrestore(&grp->dev->lock, flags);
}

/* After a change to a cgroup's settings for @dev, or for all (dev 0). */
static void apply_to_cgroup(struct blkcg *blkcg, dev_t dev)
{
	struct blkg_policy_data *pd;
	struct blkcg_gq *blkg;

	spin_lock_irq(&blkcg->lock);
	disktime_blkcg_for_each_blkg(blkg, blkcg) {
		pd = disktime_blkg_pd(blkg, &disktime_policy);
		if (pd && (!dev || disktime_blkg_dev(blkg) == dev))
			disktime_group_apply(pd);
	}
	spin_unlock_irq(&blkcg->lock);
}

/* ---- what may be set: a weight or a class ---- */

static const char *const class_names[DT_NR_CLASSES] = {
	[DT_RT] = "rt",
	[DT_BE] = "be",
	[DT_IDLE] = "idle",
};

const char *disktime_class_name(u8 class)
{
	return class_names[class];
}
EXPORT_SYMBOL_GPL(disktime_class_name);

/* One kind of setting: how to read one, where it is kept, what "unset" is. */
struct setting {
	int (*parse)(const char *text, u32 *value);
	void (*show)(struct seq_file *s, u32 value);
	u32 (*get)(const struct disktime_cgroup *cgroup,
		   const struct disktime_override *override);
	void (*set)(struct disktime_cgroup *cgroup,
		    struct disktime_override *override, u32 value);
	u32 unset;
	u32 initial;
};

static int weight_parse(const char *text, u32 *value)
{
	int ret;

	/* A sign or another base is no weight, whatever kstrtouint() thinks. */
	if (!isdigit(*text))
		return *text == '-' && isdigit(text[1]) ? -ERANGE : -EINVAL;
	ret = kstrtouint(text, 10, value);
	if (ret)
		return ret;
	return *value < DT_WEIGHT_MIN || *value > DT_WEIGHT_MAX ? -ERANGE : 0;
}

static void weight_show(struct seq_file *s, u32 value)
{
	seq_printf(s, "%u", value);
}

static u32 weight_get(const struct disktime_cgroup *cgroup,
		      const struct disktime_override *override)
{
	return override ? override->weight : cgroup->weight;
}

static void weight_set(struct disktime_cgroup *cgroup,
		       struct disktime_override *override, u32 value)
{
	if (override)
		override->weight = value;
	else
		cgroup->weight = value;
}

static const struct setting weight_setting = {
	.parse = weight_parse,
	.show = weight_show,
	.get = weight_get,
	.set = weight_set,
	.unset = 0,
	.initial = DT_WEIGHT_DEFAULT,
};

static int class_parse(const char *text, u32 *value)
{
	for (*value = 0; *value < DT_NR_CLASSES; (*value)++)
		if (class_names[*value] && !strcmp(text, class_names[*value]))
			return 0;
	return -EINVAL;
}

static void class_show(struct seq_file *s, u32 value)
{
	seq_puts(s, class_names[value]);
}

static u32 class_get(const struct disktime_cgroup *cgroup,
		     const struct disktime_override *override)
{
	return override ? override->class : cgroup->class;
}

static void class_set(struct disktime_cgroup *cgroup,
		      struct disktime_override *override, u32 value)
{
	if (override)
		override->class = value;
	else
		cgroup->class = value;
}

static const struct setting class_setting = {
	.parse = class_parse,
	.show = class_show,
	.get = class_get,
	.set = class_set,
	.unset = DT_NR_CLASSES,
	.initial = DT_BE,
};

/* ---- the files ---- */

static void set_default(struct blkcg *blkcg, const struct setting *setting,
			u32 value)
{
	struct disktime_cgroup *cgroup = blkcg_to_cgroup(blkcg);

	spin_lock_irq(&cgroup->lock);
	setting->set(cgroup, NULL, value);
	spin_unlock_irq(&cgroup->lock);
	apply_to_cgroup(blkcg, 0);
}

static int set_override(struct blkcg *blkcg, const struct setting *setting,
			dev_t dev, u32 value)
{
	struct disktime_cgroup *cgroup = blkcg_to_cgroup(blkcg);
	struct disktime_override *override, *spare = NULL;

	if (value != setting->unset) {
		spare = kzalloc(sizeof(*spare), GFP_KERNEL);
		if (!spare)
			return -ENOMEM;
		spare->dev = dev;
		spare->class = DT_NR_CLASSES;
	}
	spin_lock_irq(&cgroup->lock);
	override = find_override(cgroup, dev);
	if (!override && spare) {
		override = spare;
		spare = NULL;
		list_add_tail(&override->link, &cgroup->overrides);
	}
	if (override) {
		setting->set(cgroup, override, value);
		if (!override->weight && override->class == DT_NR_CLASSES)
			list_del(&override->link);
		else
			override = NULL;
	}
	spin_unlock_irq(&cgroup->lock);
	kfree(spare);
	kfree(override);
	apply_to_cgroup(blkcg, dev);
	return 0;
}

/*
 * "N", "default N", "default default" (what it was at first), "MAJ:MIN N",
 * "MAJ:MIN default" (no longer its own).
 */
static ssize_t setting_write(struct kernfs_open_file *of, char *buf,
			     size_t nbytes, const struct setting *setting)
{
	struct blkcg *blkcg = disktime_css_blkcg(of_css(of));
	char *text, *body;
	dev_t dev;
	u32 value;
	int ret;

	/* What stands behind an embedded NUL would go unseen. */
	if (strlen(buf) != nbytes)
		return -EINVAL;
	text = strim(buf);
	if (!strchr(text, ':')) {
		if (!strncmp(text, "default", 7) && isspace(text[7]))
			text = skip_spaces(text + 7);
		if (!strcmp(text, "default")) {
			value = setting->initial;
		} else {
			ret = setting->parse(text, &value);
			if (ret)
				return ret;
		}
		set_default(blkcg, setting, value);
		return nbytes;
	}

	ret = disktime_conf_parse(text, &dev, &body);
	if (ret)
		return ret;
	if (!strcmp(body, "default")) {
		value = setting->unset;
	} else {
		ret = setting->parse(body, &value);
		if (ret)
			return ret;
	}
	ret = disktime_conf_resolve(blkcg, &disktime_policy, text, &dev, &body);
	if (ret)
		return ret;
	ret = set_override(blkcg, setting, dev, value);
	return ret ? ret : nbytes;
}

static int setting_show(struct seq_file *s, const struct setting *setting)
{
	struct disktime_cgroup *cgroup =
		blkcg_to_cgroup(disktime_css_blkcg(seq_css(s)));
	struct disktime_override *override;
	u32 value;

	spin_lock_irq(&cgroup->lock);
	seq_puts(s, "default ");
	setting->show(s, setting->get(cgroup, NULL));
	seq_putc(s, '\n');
	list_for_each_entry(override, &cgroup->overrides, link) {
		value = setting->get(cgroup, override);
		if (value == setting->unset)
			continue;
		seq_printf(s, "%u:%u ", MAJOR(override->dev),
			   MINOR(override->dev));
		setting->show(s, value);
		seq_putc(s, '\n');
	}
	spin_unlock_irq(&cgroup->lock);
	return 0;
}

static ssize_t weight_file_write(struct kernfs_open_file *of, char *buf,
				 size_t nbytes, loff_t off)
{
	return setting_write(of, buf, nbytes, &weight_setting);
}

static int weight_file_show(struct seq_file *s, void *v)
{
	return setting_show(s, &weight_setting);
}

static ssize_t class_file_write(struct kernfs_open_file *of, char *buf,
				size_t nbytes, loff_t off)
{
	return setting_write(of, buf, nbytes, &class_setting);
}

static int class_file_show(struct seq_file *s, void *v)
{
	return setting_show(s, &class_setting);
}

static u64 to_usec(u64 ns)
{
	return div_u64(ns, NSEC_PER_USEC);
}

/* "key=value" for all that is counted of one group; no device, no newline. */
void disktime_show_stats(struct seq_file *s, struct disktime_group *grp)
{
	struct dt_stats stats;
	unsigned long flags;
	u32 queued, inflight, waiting;
	u64 wait = 0;
	int i;

	spin_lock_irqsave(&grp->dev->lock, flags);
	disktime_drain(grp->dev);
	stats = grp->core.stats;
	queued = grp->core.own->nr_queued;
	inflight = grp->core.own->nr_inflight;
	waiting = grp->core.own->nr_waiting;
	spin_unlock_irqrestore(&grp->dev->lock, flags);

	for (i = 0; i < DT_NR_CAUSES; i++)
		wait += stats.wait_ns[i];
	seq_printf(s, "time_usec=%llu sectors=%llu ios=%llu queued=%u wait_usec=%llu idle_usec=%llu dequeues=%llu slices=%llu",
		   to_usec(stats.time_ns[DT_READ] + stats.time_ns[DT_WRITE]),
		   stats.sectors[DT_READ] + stats.sectors[DT_WRITE],
		   stats.ios[DT_READ] + stats.ios[DT_WRITE], queued,
		   to_usec(wait), to_usec(stats.idle_ns), stats.dequeues,
		   stats.slices);
	seq_printf(s, " rtime_usec=%llu wtime_usec=%llu rsectors=%llu wsectors=%llu rios=%llu wios=%llu",
		   to_usec(stats.time_ns[DT_READ]),
		   to_usec(stats.time_ns[DT_WRITE]), stats.sectors[DT_READ],
		   stats.sectors[DT_WRITE], stats.ios[DT_READ],
		   stats.ios[DT_WRITE]);
	seq_printf(s, " wait_share_usec=%llu wait_class_usec=%llu wait_anticipation_usec=%llu wait_depth_usec=%llu wait_tag_usec=%llu wait_max_usec=%llu",
		   to_usec(stats.wait_ns[DT_WAIT_SHARE]),
		   to_usec(stats.wait_ns[DT_WAIT_CLASS]),
		   to_usec(stats.wait_ns[DT_WAIT_IDLE]),
		   to_usec(stats.wait_ns[DT_WAIT_DEPTH]),
		   to_usec(stats.wait_ns[DT_WAIT_TAG]),
		   to_usec(stats.wait_max_ns));
	seq_printf(s, " inflight=%u waiting=%u express=%llu", inflight, waiting,
		   stats.express);
}
EXPORT_SYMBOL_GPL(disktime_show_stats);

static int stat_file_show(struct seq_file *s, void *v)
{
	struct blkcg *blkcg = disktime_css_blkcg(seq_css(s));
	struct blkg_policy_data *pd;
	struct blkcg_gq *blkg;
	dev_t dev;

	spin_lock_irq(&blkcg->lock);
	disktime_blkcg_for_each_blkg(blkg, blkcg) {
		pd = disktime_blkg_pd(blkg, &disktime_policy);
		dev = disktime_blkg_dev(blkg);
		if (!pd || !dev)
			continue;
		seq_printf(s, "%u:%u ", MAJOR(dev), MINOR(dev));
		disktime_show_stats(s, container_of(pd, struct disktime_group,
						    pd));
		seq_putc(s, '\n');
	}
	spin_unlock_irq(&blkcg->lock);
	return 0;
}

struct cftype disktime_files[] = {
	{
		.name = "disktime.weight",
		.seq_show = weight_file_show,
		.write = weight_file_write,
	},
	{
		.name = "disktime.class",
		.seq_show = class_file_show,
		.write = class_file_write,
	},
	{
		.name = "disktime.stat",
		.seq_show = stat_file_show,
	},
	{ }	/* the end */
};
