// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The whole state as text, for debugfs and for a failed test: one line for the
 * device, one a group, one a queue. Numbers are in the units of their names.
 */
#include "cost.h"
#include "entity.h"
#include "select.h"

#define LINE_MAX	320

struct text {
	char buf[LINE_MAX];
	u32 len;
};

static void put_str(struct text *text, const char *str)
{
	while (*str && text->len < LINE_MAX - 1)
		text->buf[text->len++] = *str++;
	text->buf[text->len] = '\0';
}

static void put_num(struct text *text, const char *name, u64 value)
{
	char digits[21];
	int at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = '0' + (char)(value - dt_div(value, 10) * 10);
		value = dt_div(value, 10);
	} while (value);
	put_str(text, name);
	put_str(text, &digits[at]);
}

static void put_signed(struct text *text, const char *name, s64 value)
{
	put_str(text, name);
	if (value < 0)
		put_str(text, "-");
	put_num(text, "", value < 0 ? -(u64)value : (u64)value);
}

static const char *const class_names[DT_NR_CLASSES] = {
	[DT_RT] = "rt",
	[DT_BE] = "be",
	[DT_WRITEBACK] = "writeback",
	[DT_IDLE] = "idle",
};

static void put_entity(struct text *text, const struct dt_entity *ent)
{
	put_str(text, " class=");
	put_str(text, class_names[ent->class]);
	put_num(text, " weight=", ent->weight);
	/* How far ahead of its level's virtual time, as its disk time. */
	if (ent->parent)
		put_signed(text, " ahead_ns=",
			   ((s64)(dt_entity_vdisktime(ent) -
				  dt_level_vtime(dt_level_of(ent),
						 ent->class)) >>
			    DT_VSHIFT) * (s64)ent->weight);
	put_num(text, " queued=", ent->nr_queued);
	put_num(text, " inflight=", ent->nr_inflight);
	put_num(text, " waiting=", ent->nr_waiting);
	put_num(text, " granted=", ent->nr_granted);
}

static void dump_dev(const struct dt_dev *dev, struct text *text)
{
	put_num(text, "device clock_ns=", dev->clock_ns);
	put_num(text, " busy_ns=", dev->busy_ns);
	put_num(text, " charged_ns=", dev->charged_ns);
	put_signed(text, " ahead_ns=", dev->cache.ahead_ns);
	put_num(text, " idle_ns=", dev->idle_clock_ns);
	put_num(text, " queued=", dev->nr_queued);
	put_num(text, " inflight=", dev->nr_inflight);
	put_num(text, " depth=", dev->depth);
	put_num(text, " usual=", dev->wide.usual);
	put_num(text, " enough=", dev->wide.thin.enough);
	put_num(text, " asked=", dt_asked(dev));
	put_num(text, " serial=", dev->serial.phase);
	put_num(text, " tags=", dev->tags);
	put_num(text, " service_ns=", dev->service_ns);
	put_num(text, " work=", dev->work);
	put_num(text, " holding=", dev->holding);
	put_num(text, " fault=", dev->fault);
}

/* What requests are held to cost, in ns before the scale, and how deep it is. */
static void dump_costs(const struct dt_dev *dev, struct text *text)
{
	const struct dt_fit *fit = &dev->fit;

	put_num(text, "costs limit=", dev->limit);
	put_num(text, " heavy=", dev->nr_heavy);
	put_num(text, " crowded=", dev->crowded);
	put_num(text, " windows=", fit->windows);
	put_num(text, " solos=", dev->solo.nr_spans);
	put_num(text, " written=", dev->written.on);
	put_num(text, " kept_percent=", ((u64)fit->kept * 100) >> 16);
	put_num(text, " read_ns=", fit->base[DT_READ] >> DT_COST_SHIFT);
	put_num(text, " read_sector_ns=", fit->sector[DT_READ] >> DT_COST_SHIFT);
	put_num(text, " write_ns=", fit->base[DT_WRITE] >> DT_COST_SHIFT);
	put_num(text, " write_sector_ns=",
		fit->sector[DT_WRITE] >> DT_COST_SHIFT);
	put_num(text, " scale_percent=", ((u64)fit->scale * 100) >> 16);
	put_num(text, " worth_percent=", ((u64)dev->light.worth * 100) >> 16);
	put_num(text, " slow_percent=", ((u64)dev->light.slow * 100) >> 8);
}

/* What is known of a cache for writes; large writes by the power of two. */
static void dump_cache(const struct dt_dev *dev, struct text *text)
{
	const struct dt_cache *cache = &dev->cache;
	u32 n;

	put_num(text, "cache at_once_percent=",
		((u64)cache->absorbed * 100) >> 16);
	put_num(text, " beside_percent=", ((u64)cache->beside * 100) >> 16);
	put_num(text, " apart_percent=", ((u64)cache->apart * 100) >> 16);
	put_num(text, " span=", cache->open);
	put_num(text, " drains=", cache->drains.on);
	put_num(text, " writes=", cache->nr);
	put_num(text, " known_ns=", cache->known_ns);
	put_num(text, " guessed_ns=", cache->guessed_ns);
	put_num(text, " charged_ns=", cache->charged_ns);
	for (n = 0; n < DT_CACHE_SIZES; n++)
		put_num(text, n ? "," : " least_ns=", cache->least_ns[n]);
}

static void dump_commits(const struct dt_dev *dev, struct text *text)
{
	const struct dt_commits *commits = &dev->commits;

	put_num(text, "commits phase=", commits->phase);
	put_num(text, " open=", commits->nr_open);
	put_num(text, " parked=", dev->nr_parked);
	put_num(text, " inflight=", commits->nr_inflight);
	put_num(text, " least_ns=", commits->least_ns);
	put_num(text, " gap_ns=", commits->gap_ns);
	put_num(text, " ratio_percent=", ((u64)commits->ratio * 100) >> 8);
	put_num(text, " look_ns=", commits->look_ns);
}

static void dump_spells(const struct dt_dev *dev, struct text *text)
{
	const struct dt_spells *spells = &dev->spells;

	put_num(text, "spells phase=", spells->phase);
	put_num(text, " good=", spells->good);
	put_num(text, " failed=", spells->failed);
	put_num(text, " ratio_percent=", ((u64)spells->ratio * 100) >> 8);
	put_num(text, " quota=", spells->quota.units);
	put_num(text, " wrote=", spells->wrote);
	put_num(text, " most=", spells->most);
	put_num(text, " look_ns=", spells->look_ns);
	put_num(text, " again_ns=", spells->again_ns);
}

static void dump_counts(const struct dt_dev *dev, struct text *text)
{
	const struct dt_counts *counts = &dev->counts;

	put_num(text, "counts inserted=", counts->inserted);
	put_num(text, " removed=", counts->removed);
	put_num(text, " dispatched=", counts->dispatched);
	put_num(text, " completed=", counts->completed);
	put_num(text, " requeued=", counts->requeued);
	put_num(text, " empty=", counts->empty);
	put_num(text, " raced=", counts->raced);
	put_num(text, " clamped=", counts->clamped);
	put_num(text, " faults=", counts->faults);
	put_num(text, " unasked=", counts->unasked);
}

void dt_dump(struct dt_dev *dev, void (*line)(void *arg, const char *text),
	     void *arg)
{
	const struct dt_list *pos, *each;
	struct text text = { .len = 0 };
	u64 number = 0;

	dump_dev(dev, &text);
	line(arg, text.buf);
	text.len = 0;
	dump_costs(dev, &text);
	line(arg, text.buf);
	text.len = 0;
	dump_cache(dev, &text);
	line(arg, text.buf);
	text.len = 0;
	dump_commits(dev, &text);
	line(arg, text.buf);
	text.len = 0;
	dump_spells(dev, &text);
	line(arg, text.buf);
	text.len = 0;
	dump_counts(dev, &text);
	line(arg, text.buf);
	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		const struct dt_group *grp =
			DT_CONTAINER(pos, struct dt_group, link);

		text.len = 0;
		put_num(&text, "group ", number++);
		put_entity(&text, &grp->ent);
		put_num(&text, " time_ns=", grp->stats.time_ns[DT_READ] +
					    grp->stats.time_ns[DT_WRITE]);
		put_num(&text, " think_ns=", grp->think.mean_ns);
		put_num(&text, " alone_ns=", grp->lat_alone_ns);
		put_num(&text, " slow_percent=", ((u64)grp->slow * 100) >> 8);
		put_num(&text, " head_ns=", grp->head.read_ns);
		put_num(&text, "/", grp->head.write_ns);
		put_num(&text, " favoured=", grp == dev->light.grp);
		put_num(&text, " waited_for=", grp == dev->lead.grp);
		if (dev->turn_grp == grp)
			put_num(&text, " turn_used_ns=", dev->turn_used_ns);
		if (dev->chain.grp == grp)
			put_num(&text, " links=", dev->chain.nr_links);
		line(arg, text.buf);
		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next) {
			const struct dt_queue *queue =
				DT_CONTAINER(each, struct dt_queue, link);

			text.len = 0;
			put_str(&text, queue->sync ? "  queue sync" :
						     "  queue async");
			put_entity(&text, &queue->ent);
			put_num(&text, " cost_ns=", queue->cost_ns[DT_READ]);
			put_num(&text, "/", queue->cost_ns[DT_WRITE]);
			put_num(&text, " think_ns=", queue->think.mean_ns);
			put_num(&text, " seek=", queue->seek_mean);
			put_num(&text, " follow_ns=", queue->follow_ns);
			if (dev->turn_queue == queue)
				put_str(&text, " turn");
			line(arg, text.buf);
		}
	}
}
