// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Depth: how much is in flight while somebody asks for little.
 *
 * What is in the device is out of reach: no weight helps a request that stands
 * there behind 256 others. Who asks for much does not mind, and the device
 * needs many requests to keep all of its parts busy. Who has one request at a
 * time, or eight, waits for all of them each time.
 *
 * So requests are of two kinds. Light ones go to the device at once, of all
 * others at most dev->limit are in flight. A group's requests are light
 *
 * - while it is behind, by disk time, further than what is in flight explains:
 *   it does not ask for its share, or does not get it; but not where it could
 *   use much and is not late, as then it is costs that are wrong; or
 * - while it is favoured: nothing tells costs where a device's slots are never
 *   full, but that a group is late can be seen all the same. One group at a
 *   time, the one that is furthest from what is due to it.
 *
 * What is due to a group that has a share of 1/n by weight is a slowdown of n:
 * as much as it would have of a device that is its own for 1/n of the time. So
 * a group that asks for little is judged by
 *
 *	slow = share * latency / latency alone
 *
 * where the latency counts from insertion, and alone it would be the mean in
 * probes (below) or, with none, what all that it has outstanding costs. One that
 * is behind has the share of one of two, however many there are.
 *
 * The others are not judged by costs, which may be wrong, but by what is left to
 * them: how much they complete, by how much that is while they are not held
 * back (fit.kept; the windows of cost.c). What is divided by its like needs no
 * costs. Now and then nobody is held back, to see what that would be. How
 * late they are is by that as well, or by what they do alone where that has been
 * seen (fit.alone; solo.c).
 *
 * The limit is found by control, without knowing the device:
 *
 * - It falls while the light groups are above SLOW and are worse off than the
 *   others, and grows while they are below, or the others are worse off, or
 *   nobody is light, until it is the depth again.
 * - It falls no further than where the others have lost the part w of what they
 *   would have, where w is what the light groups could use themselves, three times
 *   that if they read, but no less than LOSS, and no more than LOSS_MAX or LOSS
 *   for each request that they have outstanding, which of who thinks between bursts
 *   is the mean. Where costs are not known w is the last of these.
 * - It falls anyway while that is for nothing.
 * - It grows where all requests are alike and who is favoured is ahead by disk time,
 *   which is known there, while how late it is is not: a probe finds room in a cache.
 * - Below one it goes on by pauses (pace.c).
 * - It moves once a window, by steps in proportion to what is left to lose, or
 *   by up to half of it while nothing is lost: what it does is seen before it is
 *   done again.
 *
 * A reader that asks for a fiftieth of the device thus costs the others at most
 * a tenth; one that could use half of it gets about half of what it does alone.
 *
 * If a group is as late with next to nothing of others' in the device, it is not
 * the others, and it is favoured no more for a while. Writes may wait for a cache
 * that writes fill, and look late for what they have done themselves: for their
 * sake reads are left most of what they have, until one was late and is not.
 *
 * The depth itself (dev->depth) is what the device takes, but no more than
 * DEPTH_AUTO: enough for any single device, and little enough that deep queues
 * wait here and not in there. Light requests go beyond that as well.
 *
 * Probe. Who has never been alone has never seen how long that takes. So every
 * now and then one group that asks for little has the device for itself, for
 * some of its requests. That takes a thirtieth of the time at most, and less
 * and less where it finds what was known.
 *
 * Nothing of this on devices with turns: there a group has the disk for itself
 * (select.c).
 */
#include "cost.h"
#include "depth.h"
#include "entity.h"
#include "lead.h"
#include "pace.h"
#include "quota.h"
#include "serial.h"
#include "slice.h"
#include "solo.h"
#include "spell.h"
#include "wide.h"
#include "written.h"

/* How slow is in 2^-8, and no more than this. */
#define SLOW_SHIFT		8
#define SLOW_MAX		(1024 << SLOW_SHIFT)
/* What is due, but for some noise, and what is better than that. */
#define SLOW			235
#define SLOW_LOW		215

/*
 * A group is judged, and the limit looked at, no more often than this, or where
 * its requests take longer than SLOW_NS a part of that. All times below are for
 * drives where it is this.
 */
#define LOOK_NS			DT_NSEC_PER_MSEC
#define LOOK_MOST_NS		(64 * DT_NSEC_PER_MSEC)
#define LOOK_PART		2
#define SLOW_NS			(16 * DT_NSEC_PER_MSEC)
/* If less comes it is after so many times as long. */
#define LOOK_LONGEST		20
/* Or after this, where whoever was light has requests and is not. */
#define NONE_NS			(100 * DT_NSEC_PER_MSEC)
/* By so many requests at least, and twice what it has in flight. */
#define JUDGE_ITEMS		16
/* While it is not light, by one of so many of each direction. */
#define SAMPLE			16
/* The limit is moved after so many judgements, or one that is plain. */
#define JUDGEMENTS		3
/* At the least limit, after so many windows, it did not help. */
#define STUCK			12
#define STUCK_PART		10

/* Of what the others would have, 2^-16. */
#define LOSS			6000
#define LOSS_MAX		36000
/* Readers may cost the others so many times what they could use. */
#define READS_WORTH		3
/* They have so much more than is to be left to them that two can become one. */
#define PLENTY			2048
/* By more than this in a window it is still on its way down. */
#define KEPT_FALLS		3072
/* By so much pauses are shorter at once, at most. */
#define PAUSE_HALF		32768
/* Of so many one is much. */
#define FEW			8
/* What is less than one counts for it to begin with; 2^-16. */
#define HALF			32768
/* So much is left to others that it costs them nothing. */
#define FOR_NOTHING		(65536 - LOSS / 4)

/* The limit falls faster where a group is 4 to 4 * FAR times later than due, */
#define FAR			8
/*
 * while the others lose no more than this, or half of what they may; by a half
 * at most beyond that.
 */
#define LEAP_LOSS		2048
#define LEAP_MOST		4

/* Whatever the weights. */
#define LOSS_MOST		61440
/* What reads lose for a write's sake, and where that has been seen to help. */
#define READS_LOSS		20000
#define READS_LOSS_HELPED	29000
/* So much is left to them that it is to be measured well. */
#define KEEP_MUCH		32768
#define KEEP_LITTLE		16384
/* Nobody who is due as much as somebody was asks for little, after this. */
#define SHARE_NS		(200 * DT_NSEC_PER_MSEC)
/* Who was favoured, and is replaced by one who is behind, is not for so long. */
#define INSTEAD_NS		DT_NSEC_PER_SEC
/* Reads count as being there for so long. */
#define READS_NS		DT_NSEC_PER_SEC

/* A probe lasts for so many, at most so long, and comes no more often. */
#define PROBE_ITEMS		16
#define PROBE_ENOUGH		4
/* What it finds counts for so much less than what was known. */
#define PROBE_SLOWER		16
#define PROBE_QUICKER		4
#define PROBE_NS		(50 * DT_NSEC_PER_MSEC)
#define PROBE_EVERY_NS		(100 * DT_NSEC_PER_MSEC)
#define PROBE_SELDOM_NS		(10 * DT_NSEC_PER_SEC)
#define PROBE_PART		30
/* The same for a group that was in none. */
#define PROBE_PART_FIRST	10
/* Nobody is held back no more often than this, and in this part of the time. */
#define FREE_EVERY_NS		(250 * DT_NSEC_PER_MSEC)
#define FREE_PART		100
/* At first a cache may have room, and it pays to look again. */
#define FREE_PART_EARLY		10
#define FREE_EARLY_NS		DT_NSEC_PER_SEC
/* If it took so long the limit that was before is of no use. */
#define FREE_LONGEST_NS		DT_NSEC_PER_SEC

/*
 * Further behind than by this, and by so many requests, is who asks for less
 * than its share: more than dither (cost.c) makes, less than a sleeper's credit.
 */
#define LAG_NS			(4 * DT_NSEC_PER_MSEC)
#define LAG_REQUESTS		4
#define LAG_MAX_NS		(12 * DT_NSEC_PER_MSEC)

/* Nobody else had anything for so long, and so many times as long as one is in the device. */
#define STARVE_NS		(250 * DT_NSEC_PER_MSEC)
#define STARVE_STAYS		4

/* Who was favoured is no further ahead than this when that is over. */
#define LEAD_NS			(100 * DT_NSEC_PER_MSEC)
/* And where nobody writes it is over when it is so far ahead. */
#define FAR_AHEAD_NS		DT_NSEC_PER_SEC

/* Most requests wait inside the device: more or fewer than these, 2^-16. */
#define CROWD_MANY		32768
#define CROWD_FEW		16384
#define CROWD_SHIFT		6

/* On drives that are slow all takes longer, up to LOOK_MOST_NS / LOOK_NS times. */
static u64 slowly(const struct dt_dev *dev, u64 ns)
{
	return dt_div(ns * dev->light.look_ns, LOOK_NS);
}

static void next_look(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;

	light->nr = 0;
	light->judged = 0;
	light->most = 0;
	light->until_ns = dev->clock_ns + light->look_ns;
}

/* Marked as light, and first in line; who has a solo is only that. */
static void set_favoured(struct dt_dev *dev, struct dt_group *grp)
{
	dev->light.grp = grp;
	dev->light.first = grp;
}

static void set_crowded(struct dt_dev *dev, bool crowded)
{
	dev->crowded = crowded;
	dev->crowd_limit = crowded ? CROWD_FEW : CROWD_MANY;
	dt_dev_derive(dev);
}

void dt_depth_init(struct dt_dev *dev)
{
	dev->limit = dev->depth;
	dev->light.on = false;
	dev->light.probing = false;
	set_favoured(dev, NULL);
	dev->fit.alone = 0;
	dt_solo_init(dev);
	dt_written_init(dev);
	dt_lead_init(dev);
	dev->quick[DT_READ] = (struct dt_quick) { 0 };
	dev->quick[DT_WRITE] = (struct dt_quick) { 0 };
	dev->light.then = NULL;
	dev->light.read_ns = dev->clock_ns - READS_NS;
	dev->light.freeing = false;
	dev->light.look_ns = LOOK_NS;
	dev->light.slowly = false;
	dev->light.rest = HALF;
	dev->light.free_every_ns = FREE_EVERY_NS;
	dev->light.probe_every_ns = PROBE_EVERY_NS;
	/* With turns nobody looks; overlap then. */
	dev->crowd = 0;
	set_crowded(dev, false);
	next_look(dev);
}

static bool lags(const struct dt_dev *dev, const struct dt_level *level,
		 const struct dt_entity *ent)
{
	s64 behind = (s64)(level->ready.vtime[ent->class] - ent->vdisktime);
	u64 cost, lag;

	if (level->lone == ent || behind <= 0)
		return false;
	cost = dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]);
	lag = dt_min(LAG_NS + LAG_REQUESTS * cost, LAG_MAX_NS) +
	      ent->nr_inflight * cost;
	return (u64)behind > dt_virtual(lag, ent->weight);
}

/* The other way: who leads has more than its share. */
static bool leads(const struct dt_dev *dev, const struct dt_level *level,
		  const struct dt_entity *ent)
{
	s64 ahead = (s64)(ent->vdisktime - level->ready.vtime[ent->class]);

	return level->lone != ent &&
	       ahead > (s64)dt_virtual(LAG_NS + ent->nr_inflight *
				       dt_max(dev->cost_ns[DT_READ],
					      dev->cost_ns[DT_WRITE]),
				       ent->weight);
}

/* Costs that nobody has learned do not tell who is behind, but among equals. */
static bool lag_counts(const struct dt_dev *dev)
{
	return !dev->light.probing &&
	       (!dev->crowded || dt_costs_known(dev) || dt_fit_alike(dev));
}

static noinline bool path_lags(const struct dt_dev *dev,
			       const struct dt_entity *ent)
{
	if (!lag_counts(dev))
		return false;
	for (; ent->parent; ent = ent->parent)
		if (lags(dev, ent->parent->level, ent))
			return true;
	return false;
}

/*
 * Whether it has more than is due to it, or another has less. Among equals that is known,
 * however late it seems.
 */
static bool has_more(const struct dt_dev *dev, const struct dt_group *grp)
{
	const struct dt_entity *ent;
	const struct dt_list *pos;
	u32 nr = 0;

	if (!grp || !dt_fit_alike(dev) || !dt_were_alike(dev) ||
	    path_lags(dev, grp->own))
		return false;
	for (ent = grp->own; ent->parent; ent = ent->parent)
		if (leads(dev, ent->parent->level, ent))
			return true;
	for (pos = dev->active.next; pos != &dev->active && nr < FEW;
	     pos = pos->next, nr++)
		if (dt_active_group(pos) != grp &&
		    path_lags(dev, dt_active_group(pos)->own))
			return true;
	return false;
}

/*
 * Far ahead, where nobody writes and costs are known: it is not the one who is late. What a
 * request can take is less than what it takes alone where a throttle lets the first pass.
 */
static bool is_far_ahead(const struct dt_dev *dev, const struct dt_item *item)
{
	const struct dt_entity *ent = item->queue->grp->own;
	const struct dt_level *level;
	u64 others;
	s64 ahead;

	if (item->dir != DT_READ || dev->spells.both || !dt_costs_known(dev))
		return false;
	for (; ent->parent; ent = ent->parent) {
		level = ent->parent->level;
		others = level->active_weight[ent->class];
		if (dt_entity_busy(ent))
			others -= ent->weight;
		ahead = (s64)(ent->vdisktime - level->ready.vtime[ent->class]);
		/* With nobody else of its class the level's time stands still. */
		if (others && level->lone != ent &&
		    ahead > (s64)dt_virtual(FAR_AHEAD_NS, ent->weight))
			return true;
	}
	return false;
}

/*
 * No more than its part of the slots, which is one of @nr; of more than a few, were
 * there one more.
 */
static inline bool holds_part(const struct dt_dev *dev,
			      const struct dt_group *grp, u32 nr)
{
	const struct dt_entity *own = grp->own;
	u32 held = own->nr_queued + own->nr_inflight;

	return (nr + (held > DT_LITTLE)) * held <=
	       dt_min(dev->wide.little, dev->lead.part_of);
}

static inline bool holds_little(const struct dt_dev *dev,
				const struct dt_group *grp)
{
	return holds_part(dev, grp, dev->nr_active);
}

bool dt_is_well_off(const struct dt_dev *dev, const struct dt_group *grp)
{
	return grp->well_off && holds_little(dev, grp);
}

/*
 * Whether any other has something to do. Who is alone may be behind those that have
 * left, which matters to nobody.
 */
static inline bool has_company(const struct dt_dev *dev,
			       const struct dt_group *grp)
{
	return dev->nr_active > !dt_list_empty(&grp->active);
}

dt_inline bool dt_is_light(const struct dt_dev *dev, const struct dt_group *grp)
{
	return grp == dev->light.grp ||
	       (holds_little(dev, grp) && has_company(dev, grp) &&
		!dt_is_written(dev) && !grp->well_off && !dev->slice_ns &&
		dev->engine != DT_ENGINE_OVERLAP && path_lags(dev, grp->own));
}

bool dt_lets_through(struct dt_dev *dev)
{
	struct dt_entity *ent = &dev->root->ent;
	struct dt_level *level;
	struct dt_spot *spot;

	if (!dt_list_empty(&dev->express))
		return true;
	if (dev->solo.grp || dt_is_sliced(dev))
		return dt_favoured(dev) && dev->nr_inflight < dev->depth;
	if (dt_favoured(dev))
		return true;
	if (!lag_counts(dev) || dt_is_written(dev))
		return false;
	for (;;) {
		level = ent->level;
		spot = dt_line_pick(&level->ready, dev->clock_ns);
		if (!spot)
			return false;
		ent = DT_CONTAINER(spot, struct dt_entity, ready);
		if (ent->kind == DT_KIND_QUEUE)
			return false;
		if (lags(dev, level, ent))
			return true;
	}
}

void dt_depth_forget(struct dt_dev *dev, const struct dt_group *grp)
{
	struct dt_light *light = &dev->light;

	dt_solo_forget(dev, grp);
	dt_slices_forget(dev, grp);
	dt_quota_forget(dev, grp);
	dt_lead_forget(dev, grp);
	if (light->first == grp)
		light->first = NULL;
	if (light->awaited == grp)
		dt_pause_wake(dev);
	if (light->grp == grp)
		light->grp = NULL;
	if (light->behind == grp)
		light->behind = NULL;
	if (light->then == grp)
		light->then = NULL;
}

/*
 * The group has never been served so quickly. One that was never alone has not
 * seen how quick that is, and takes what another's request did that was no
 * smaller.
 */
static noinline void note_quick(struct dt_dev *dev, const struct dt_item *item,
				u64 latency)
{
	struct dt_group *grp = item->queue->grp;
	struct dt_quick *quick = &dev->quick[item->dir];

	if (!grp->lat_min_ns)
		latency = dt_quickest(dev, item, latency);
	grp->lat_min_ns = latency;
	if (!quick->ns || latency <= quick->ns) {
		quick->ns = latency;
		quick->sectors = item->sectors;
	}
}

/* The least latencies, and how many are far from them. */
static inline bool is_crowded(struct dt_dev *dev, const struct dt_item *item,
			      u64 latency)
{
	const struct dt_group *grp = item->queue->grp;
	u32 crowd = dev->crowd;

	/* Where none is known it is 0, and this the greatest of all numbers. */
	if (unlikely(latency <= grp->lat_min_ns - 1))
		note_quick(dev, item, latency);
	crowd -= crowd >> CROWD_SHIFT;
	if (2 * latency > 3 * grp->lat_min_ns)
		crowd += 65536 >> CROWD_SHIFT;
	dev->crowd = crowd;
	return crowd > dev->crowd_limit;
}

static inline void watch(struct dt_dev *dev, const struct dt_item *item,
			 u64 latency)
{
	bool crowded = is_crowded(dev, item, latency);

	/* While others wait for it, somebody finds little that is in the way. */
	if (unlikely(crowded != dev->crowded) && !dev->lead.grp)
		set_crowded(dev, crowded);
}

/* The same while somebody is held back, and with what probes say. */
static inline void watch_probe(struct dt_dev *dev, const struct dt_item *item,
			       u64 latency, bool quiet)
{
	struct dt_group *grp = item->queue->grp;
	struct dt_light *light = &dev->light;
	bool crowded;

	if (quiet && 8 * latency < 7 * grp->lat_min_ns)
		light->probe_every_ns = PROBE_EVERY_NS;
	crowded = is_crowded(dev, item, latency) || dev->limit < dev->depth ||
		  dev->lead.grp;
	if (crowded != dev->crowded)
		set_crowded(dev, crowded);
	if (quiet) {
		if (grp->probe != light->probe) {
			grp->probe = light->probe;
			grp->lat_probe_ns = latency;
		}
		grp->lat_probe_ns = dt_min(grp->lat_probe_ns, latency);
	} else if (grp->probe && !light->probing) {
		/* Nobody was in its way, and yet it took longer than ever. */
		if (grp->lat_probe_ns > grp->lat_min_ns)
			grp->lat_min_ns += (grp->lat_probe_ns -
					    grp->lat_min_ns) / 4;
		grp->probe = 0;
	}
}

u64 dt_share_of(const struct dt_group *grp)
{
	const struct dt_entity *ent;
	const struct dt_level *level;
	u64 share = 65536, weight;
	int class;

	for (ent = grp->own; ent->parent; ent = ent->parent) {
		level = ent->parent->level;
		for (class = DT_RT; class < ent->class; class++)
			if (level->active_weight[class])
				return 0;
		weight = level->active_weight[ent->class];
		if (!dt_entity_busy(ent))
			weight += ent->weight;
		share = dt_div(share * ent->weight, weight);
	}
	return share;
}

/* Nobody is held back until it is known what that leaves to whom. */
static void begin_free(struct dt_dev *dev, u32 limit)
{
	struct dt_light *light = &dev->light;

	light->freeing = true;
	light->well = light->slowly;
	light->limit_then = limit;
	dev->limit = dev->depth;
	dt_fit_forget_free(dev);
	light->free_from_ns = dev->clock_ns;
}

/*
 * Who is favoured goes first whatever that is charged, and waits afterwards until
 * the others have had as much; but not for ever.
 */
static void settle_favoured(struct dt_dev *dev)
{
	if (dev->light.grp)
		dt_path_lead(dev, dev->light.grp->own, LEAD_NS);
}

/*
 * So many it asks for, 2^-4: what it has outstanding, or where it thinks between two
 * bursts what it had in the mean since it was judged.
 */
static u64 asks(const struct dt_dev *dev, const struct dt_group *grp)
{
	if (grp->nr_asked && dt_thinks(dev, grp))
		return dt_div((u64)grp->asked << 4, grp->nr_asked);
	return (grp->own->nr_queued + grp->own->nr_inflight + 1ull) << 4;
}

/*
 * Whether what was found still holds if @grp is favoured now: others were held back
 * for it while it was behind, or for another who asks for few, as by turns a process
 * and the journal it waits for, so that they are all but the same others.
 */
static bool holds_for(const struct dt_dev *dev, const struct dt_group *grp)
{
	const struct dt_light *light = &dev->light;

	if (!grp || dev->limit == dev->depth || light->freeing)
		return false;
	return grp == light->behind ||
	       (light->grp && asks(dev, light->grp) <= FEW << 4);
}

static void favour(struct dt_dev *dev, struct dt_group *grp)
{
	struct dt_light *light = &dev->light;
	bool holds = holds_for(dev, grp);

	settle_favoured(dev);
	set_favoured(dev, grp);
	light->from_ns = dev->clock_ns;
	if (holds)
		return;
	dev->fit.alone = 0;
	light->slow_then = grp ? grp->slow : 0;
	light->slow = 0;
	light->worth = 0;
	light->helped = false;
	light->stuck = 0;
	light->pause = 0;
	if (!grp)
		return;
	/* What is left to the others is known where another was. */
	light->free_every_ns = slowly(dev, FREE_EVERY_NS);
	begin_free(dev, dev->depth);
}

/* While there are spells all are let through, and nobody is first. */
void dt_depth_pause(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;

	settle_favoured(dev);
	light->then = light->grp;
	light->limit = dev->limit;
	set_favoured(dev, NULL);
	dev->limit = dev->depth;
}

void dt_depth_resume(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;

	set_favoured(dev, light->then);
	dev->limit = light->limit;
	next_look(dev);
}

/* What a request would have taken, were its group alone. */
static u64 latency_alone(const struct dt_dev *dev, const struct dt_group *grp,
			 const struct dt_item *item, u32 all)
{
	/* One after the other is the longest that it keeps itself waiting. */
	if (grp->lat_alone_ns)
		return dt_min(grp->lat_alone_ns, all * grp->lat_min_ns);
	return dt_max(grp->lat_min_ns,
		      all * dt_cost_raw(&dev->fit, item->dir, item->sectors));
}

/* What a group may cost the others for so many requests; 2^-16 of what they do. */
static u64 most_loss(const struct dt_dev *dev, const struct dt_group *grp)
{
	return LOSS * asks(dev, grp) >> 4;
}

/* The part of the device that the group could use, were it alone; 2^-16. */
static u64 want_of(const struct dt_dev *dev, const struct dt_group *grp,
		   const struct dt_item *item)
{
	u64 all = asks(dev, grp), cost, most = most_loss(dev, grp);

	cost = all * dt_cost_raw(&dev->fit, item->dir, item->sectors) >> 4;
	if (!dt_costs_known(dev))
		return most;
	return dt_min(most, dt_div(cost << 16,
				   latency_alone(dev, grp, item,
						 (u32)((all + 15) >> 4))));
}

/* What the others may lose for its sake, where it could use @want. */
static u64 worth_of(const struct dt_dev *dev, const struct dt_group *grp,
		    const struct dt_item *item, u64 want)
{
	if (item->dir == DT_READ)
		want = dt_min(READS_WORTH * want, most_loss(dev, grp));
	return want;
}

static u32 mean_of(u32 mean, u64 sample)
{
	return mean ? (u32)((3ull * mean + sample) / 4) : (u32)sample;
}

/* Of several by turns, as a process and the journal it waits for, the greatest. */
static void note_share(struct dt_dev *dev, u64 share)
{
	struct dt_light *light = &dev->light;

	if (share < light->share &&
	    dt_before(dev->clock_ns, light->share_ns + slowly(dev, SHARE_NS)))
		return;
	light->share = share;
	light->share_ns = dev->clock_ns;
}

/* How slow the group is, if it is time to say so, or 0. */
static u32 judge_group(struct dt_dev *dev, struct dt_group *grp,
		       const struct dt_item *item)
{
	u32 all = grp->own->nr_queued + grp->own->nr_inflight + 1;
	u32 many = item->light ? 1 : SAMPLE;
	u64 slow, share, took, late;

	if (!grp->judge_ns)
		grp->judge_ns = dev->clock_ns + dev->light.look_ns;
	grp->late_ns += many * (dev->clock_ns - item->insert_ns);
	grp->alone_ns += many * latency_alone(dev, grp, item, all);
	grp->asked += many * all;
	grp->nr_asked += many;
	if (dt_before(dev->clock_ns, grp->judge_ns))
		return 0;
	late = dev->clock_ns - grp->judge_ns;
	grp->nr_late += many;
	if (grp->nr_late < dt_max(JUDGE_ITEMS, 2 * grp->own->nr_inflight) &&
	    late < LOOK_LONGEST * dev->light.look_ns)
		return 0;
	/* Of who waits here it is known at once how fast it is served. */
	took = grp->late_ns;
	if (grp->own->nr_queued && late < 2 * LOOK_LONGEST * dev->light.look_ns)
		took = (late + dev->light.look_ns) * all;
	slow = dt_min(dt_div(took << SLOW_SHIFT, grp->alone_ns), SLOW_MAX);
	share = dt_share_of(grp);
	/* Who asks for little is judged as one of two. */
	if (item->light && grp != dev->light.grp && share)
		share = dt_max(share, 32768);
	slow = dt_max((slow * share) >> 16, 1);
	if (item->light || grp == dev->light.grp) {
		note_share(dev, share);
		dev->light.slow_now = (u32)slow;
	}
	grp->slow = mean_of(grp->slow, slow);
	grp->late_ns = 0;
	grp->alone_ns = 0;
	grp->nr_late = 0;
	grp->judge_ns = dev->clock_ns + dev->light.look_ns;
	return grp->slow;
}

/* The part of all that is done which is light while nobody is held back; 2^-16. */
static u64 light_part(const struct dt_dev *dev)
{
	const struct dt_free *free = &dev->fit.free;

	return dt_div(free->nr_light << 16,
		      dt_max(free->nr_light + dt_load_nr(&free->heavy.load), 1));
}

/* So much is to be left to the others of what they would have; 2^-16. */
static u32 to_keep(const struct dt_dev *dev)
{
	const struct dt_light *light = &dev->light;
	u64 loss = dt_max(dt_min(light->worth, LOSS_MAX), LOSS);

	/* The little that a reader may cost is by what they have alone. */
	if (loss == LOSS && dt_fit_alike(dev))
		loss -= dt_min(light_part(dev), LOSS / 2);

	if (light->beside_reads)
		loss = dt_min(loss, light->helped && !dev->fit.alone ?
				    READS_LOSS_HELPED : READS_LOSS);
	/* That is for who has as great a share as they have. */
	loss = dt_div(loss * light->share, dt_max(65536 - light->share, 1));
	return 65536 - (u32)dt_min(loss, LOSS_MOST);
}

/* Where requests take long it is long before there is anything to be seen. */
static void note_pace(struct dt_dev *dev, u64 latency)
{
	struct dt_light *light = &dev->light;
	u64 look = LOOK_NS;

	if (latency > SLOW_NS)
		look += (latency - SLOW_NS) / LOOK_PART;
	look = dt_min((7 * light->look_ns + look) / 8, LOOK_MOST_NS);
	light->look_ns = look;
	light->slowly = look > LOOK_NS && to_keep(dev) >= KEEP_MUCH;
}

/* Whether it is clearly later than who is favoured; who is light has no need of it else. */
static bool is_furthest(const struct dt_dev *dev, const struct dt_item *item,
			u32 slow)
{
	const struct dt_light *light = &dev->light;

	if (!item->light)
		return 2ull * slow > 3ull * light->slow;
	return light->grp && dt_fit_alike(dev) &&
	       2ull * slow > 3ull * light->grp->slow;
}

/* The favoured group is none for so many times as long as it was. */
static void favour_later(struct dt_dev *dev)
{
	struct dt_group *grp = dev->light.grp;

	if (grp)
		grp->again_ns = dev->clock_ns + STUCK_PART *
				(dev->clock_ns - dev->light.from_ns);
	favour(dev, NULL);
}

/*
 * Who is favoured goes first, and where it could use all that there is nobody else has
 * anything. It may look late for ever: what it takes alone may be wrong.
 */
static bool others_starve(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_light *light = &dev->light;
	const struct dt_stats *stats = &light->grp->stats;
	u64 done = dev->counts.completed - stats->ios[DT_READ] -
		   stats->ios[DT_WRITE];

	if (done != light->others_done || dev->limit <= 1 ||
	    dev->nr_queued <= light->grp->own->nr_queued) {
		light->others_done = done;
		light->others_ns = dev->clock_ns;
		return false;
	}
	return dev->clock_ns - light->others_ns >
	       STARVE_NS + STARVE_STAYS * (dev->clock_ns - item->dispatch_ns);
}

/* Whether it holds little, where who is favoured is there also between two requests. */
static bool holds_little_beside(const struct dt_dev *dev,
				const struct dt_group *grp)
{
	const struct dt_group *first = dev->light.grp;

	return holds_part(dev, grp, dev->nr_active +
				    (first && dt_list_empty(&first->active)));
}

static bool reads_lately(const struct dt_dev *dev)
{
	return dt_before(dev->clock_ns, dev->light.read_ns + READS_NS);
}

static void judge(struct dt_dev *dev, struct dt_group *grp,
		  const struct dt_item *item)
{
	struct dt_light *light = &dev->light;
	bool ours = grp == light->grp || item->light, beside_reads;
	u64 want;
	u32 slow;

	beside_reads = item->dir == DT_WRITE && reads_lately(dev);
	if (item->dir == DT_READ)
		light->read_ns = dev->clock_ns;
	if (!ours && (!holds_little_beside(dev, grp) || grp->own->nr_waiting))
		return;
	/* What was made to wait by a probe says nothing. */
	if ((!grp->lat_alone_ns && !dt_costs_known(dev)) ||
	    (!grp->own->nr_queued &&
	     dt_before(item->insert_ns, light->probe_end_ns)))
		return;
	slow = judge_group(dev, grp, item);
	if (!slow)
		return;
	want = want_of(dev, grp, item);
	if (ours)
		light->worth = mean_of(light->worth,
				       worth_of(dev, grp, item, want));
	grp->asked = 0;
	grp->nr_asked = 0;
	/* Who could use much has it: behind or not, costs must be wrong. */
	grp->well_off = slow < SLOW_LOW && 4 * want > 65536;
	if (grp == light->grp) {
		if (!holds_little(dev, grp) ||
		    (dev->limit == dev->depth &&
		     (slow < SLOW_LOW || has_more(dev, grp))))
			favour(dev, NULL);
		else if (others_starve(dev, item) || is_far_ahead(dev, item))
			favour_later(dev);
	} else if (slow > SLOW && is_furthest(dev, item, slow) &&
		   !dt_before(dev->clock_ns, grp->again_ns) &&
		   !has_more(dev, grp)) {
		/* What made the other seem late was not who is late and behind. */
		if (item->light)
			light->grp->again_ns = dev->clock_ns + slowly(dev, INSTEAD_NS);
		favour(dev, grp);
	}
	if (ours) {
		light->behind = light->grp ? NULL : grp;
		note_pace(dev, dev->clock_ns - item->insert_ns);
		light->slow = mean_of(light->slow, slow);
		light->beside_reads = beside_reads;
		/* It was late, and is not: it is the others it waits for. */
		light->helped |= dev->limit < dev->depth &&
				 light->slow < SLOW &&
				 light->slow_then > 4 * SLOW;
		light->judged++;
	}
}

static void begin_probe(struct dt_dev *dev, struct dt_group *grp)
{
	struct dt_light *light = &dev->light;

	/* A group that was in none has 0. */
	if (!++light->probe)
		light->probe = 1;
	light->probing = true;
	light->then = light->grp;
	set_favoured(dev, grp);
	light->limit = dev->limit;
	light->probe_from_ns = dev->clock_ns;
	light->quiet_ns = 0;
	light->alone_ns = 0;
	light->nr_alone = 0;
	light->nr_first = 0;
	dev->limit = 0;
	next_look(dev);
	light->until_ns = dev->clock_ns + slowly(dev, PROBE_NS);
}

/*
 * What one probe found. Many a one finds a drive that still writes what others have
 * left in its cache, and none one that is quicker than it is.
 */
static void learn_alone(struct dt_group *grp, u64 latency)
{
	s64 more = (s64)(latency - grp->lat_alone_ns);

	if (!grp->lat_alone_ns)
		grp->lat_alone_ns = latency;
	else
		grp->lat_alone_ns += more / (more > 0 ? PROBE_SLOWER :
							PROBE_QUICKER);
}

/* @grp: whose it was, or NULL where that is not known. */
static void end_probe(struct dt_dev *dev, struct dt_group *grp)
{
	struct dt_light *light = &dev->light;
	u64 took = dev->clock_ns - light->probe_from_ns;

	if (grp && light->nr_alone >= PROBE_ENOUGH)
		learn_alone(grp, dt_div(light->alone_ns, light->nr_alone));
	light->probing = false;
	light->probe_end_ns = dev->clock_ns;
	light->probed = light->grp;
	set_favoured(dev, light->then);
	light->probe_first_ns = dev->clock_ns +
				PROBE_PART_FIRST * took;
	light->probe_next_ns = dev->clock_ns +
			       slowly(dev, light->probe_every_ns) +
			       PROBE_PART * took;
	/* The less there is to find, the less it is looked for. */
	light->probe_every_ns = dt_min(2 * light->probe_every_ns,
				       PROBE_SELDOM_NS);
	dev->limit = light->limit;
	next_look(dev);
}

static void set_limit(struct dt_dev *dev, u64 limit)
{
	limit = dt_max(dt_min(limit, dev->depth), 1);
	/* What it does is seen when there are no more than that. */
	if (limit < dev->depth)
		dev->fit.settle = dev->nr_heavy < limit ? 1 :
				  1 + dev->nr_heavy - (u32)limit;
	dev->limit = (u32)limit;
}

static void allow_more(struct dt_dev *dev)
{
	u32 pause = dev->light.pause;

	if (pause)
		dev->light.pause = pause - (pause + 3) / 4;
	else
		set_limit(dev, dev->limit + dev->limit / 16 + 1);
}

/* Who was light has requests, and is no more; and there are reads that need the depth. */
static bool is_over_for_good(const struct dt_dev *dev)
{
	const struct dt_group *grp = dev->light.behind;

	return !dev->light.grp && grp && dt_entity_busy(grp->own) &&
	       reads_lately(dev);
}

/*
 * Nobody is paused for who asks for nothing; and where looks are long it would take many
 * for the limit to be the depth again.
 */
static void allow_soon(struct dt_dev *dev)
{
	dev->light.pause = 0;
	if (is_over_for_good(dev) &&
	    LOOK_LONGEST * dev->light.look_ns > NONE_NS)
		set_limit(dev, 2ull * dev->limit);
}

/* Whether the favoured group is as late as it was, with nobody in its way. */
static bool is_stuck(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;

	/* It was favoured before it was seen how late it is. */
	if (dev->limit > 1)
		light->slow_then = dt_max(light->slow_then, light->slow);
	if (!light->grp || dev->limit > 1 || light->slow <= SLOW ||
	    4ull * light->slow < 3ull * light->slow_then)
		light->stuck = 0;
	else
		light->stuck++;
	return light->stuck == STUCK;
}

static void note_free(struct dt_dev *dev, u64 every_ns, u64 took_ns)
{
	struct dt_light *light = &dev->light;

	light->free_next_ns = dev->clock_ns + every_ns +
			      (every_ns < slowly(dev, FREE_EARLY_NS) ?
			       FREE_PART_EARLY : FREE_PART) * took_ns;
	light->free_seldom_ns = dev->clock_ns + FREE_PART * took_ns +
				slowly(dev, PROBE_SELDOM_NS);
}

static void end_free(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;
	u64 took = dev->clock_ns - light->free_from_ns;

	light->freeing = false;
	if (took > slowly(dev, FREE_LONGEST_NS))
		light->limit_then = dev->depth;
	note_free(dev, light->free_every_ns, took);
	light->free_every_ns = dt_min(2 * light->free_every_ns,
				      slowly(dev, PROBE_SELDOM_NS));
	if (light->limit_then < dev->depth)
		dev->fit.kept = 0;
	set_limit(dev, light->limit_then);
}

/* By how much the others are worse off than alone, by their share; 2^-8. */
static u64 slow_others(const struct dt_dev *dev)
{
	const struct dt_free *free = &dev->fit.free;
	u64 share = 65536 - dev->light.share;
	u64 slow = dt_div(share << SLOW_SHIFT, dev->fit.kept);

	/* What they do alone has been seen (solo.c). */
	if (dev->fit.alone)
		return dt_div(share << SLOW_SHIFT, dev->fit.alone);
	/* Among equals it is known what they have less even so. */
	if (dt_fit_alike(dev))
		slow += dt_div(slow * free->nr_light,
			       dt_max(dt_load_nr(&free->heavy.load), 1));
	return slow;
}

/*
 * How much of the limit goes at once, beyond what the others are seen to lose: while
 * that is little it tells nothing of how far the limit is from where it is more.
 * Not once more before that has helped: what waits for a cache is not helped by it.
 */
static u64 leap(const struct dt_light *light, u64 limit, u64 far)
{
	if (!far || limit <= 2 ||
	    (light->slow_leapt && 8ull * light->slow_now > 7ull * light->slow_leapt))
		return 0;
	return limit * dt_min(far, LEAP_MOST) / (2 * LEAP_MOST);
}

static void move_limit(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;
	u32 keep = to_keep(dev), kept = dev->fit.kept;
	u64 ours = light->slow, theirs = slow_others(dev), part, most;
	u64 limit = dt_min(dev->limit, light->most), little, far;
	bool nothing = kept > FOR_NOTHING && !light->grp;
	bool falls = kept + KEPT_FALLS < light->kept_then;

	light->kept_then = kept;

	if (kept < keep && light->pause) {
		dt_pause_less(dev, dt_div((u64)(keep - kept) << 16, keep));
	} else if (kept < keep) {
		light->rest = HALF;
		set_limit(dev, limit + 1 + dt_div(limit * (keep - kept), keep));
	} else if (has_more(dev, light->grp)) {
		allow_more(dev);
	} else if (nothing || (ours > SLOW && 16 * ours > 17 * theirs)) {
		part = dt_div((u64)(kept - keep) << 17, kept);
		/* Half of the way. */
		if (!nothing)
			part = dt_min(part, dt_div((ours - theirs) << 16, ours));
		if (dev->limit <= 1) {
			/*
			 * With one slot nobody else's is there meanwhile. What a
			 * pause does comes late where a cache takes what is written.
			 */
			if (dev->depth > 1 && ours > SLOW &&
			    8 * ours > 9 * theirs && !(light->pause && falls))
				dt_pause_more(dev, part);
			set_limit(dev, 1);
			return;
		}
		part *= limit;
		/*
		 * Less than one is none, but where there are few to lose, and adds
		 * up to one where these read: what a write does comes later.
		 */
		if (limit <= FEW) {
			part += light->rest;
			light->rest = dev->fit.free.heavy.load.nr[DT_WRITE] ?
				      HALF : (u32)(part & 0xffff);
		}
		part >>= 16;
		/* Where one of two is more than they are to lose pauses are shorter. */
		if (limit == 2 && kept > keep + PLENTY)
			part = 1;
		/* Where that costs the others little; see FAR. */
		little = dt_max(LEAP_LOSS, (65536 - keep) / 2);
		far = kept + little > 65536 && !light->beside_reads ?
		      dt_min(ours / (4 * SLOW), FAR) : 0;
		most = limit / 4 + 1;
		if (limit > 4 * FEW)
			most += limit / 2 * far / FAR;
		part = dt_min(part, most);
		most = leap(light, limit, far);
		if (most > part) {
			light->slow_leapt = light->slow_now;
			part = most;
		}
		set_limit(dev, limit - part);
	} else if (light->pause && (ours < SLOW_LOW || 16 * theirs > 17 * ours)) {
		part = ours < theirs ?
		       dt_div((theirs - ours) << 16, theirs) : 0;
		dt_pause_less(dev, dt_min(part, PAUSE_HALF));
	} else if (ours < SLOW_LOW || 8 * theirs > 9 * ours) {
		/* Nobody is held back, and it is the others that are late. */
		if (dev->fit.alone && light->grp && dev->limit == dev->depth)
			favour_later(dev);
		else
			allow_more(dev);
	}
}

/* Where the others may lose most, and do not, it need not be known well. */
static bool free_is_due(const struct dt_dev *dev)
{
	const struct dt_light *light = &dev->light;
	u32 keep = to_keep(dev);
	bool far = keep < KEEP_LITTLE && 2ull * dev->fit.kept > 3ull * keep;

	return !dt_before(dev->clock_ns, far ? light->free_seldom_ns :
					       light->free_next_ns);
}

static void review_limit(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;
	bool all = dev->limit == dev->depth;

	if (!dev->fit.kept || light->freeing || dev->solo.nr_open)
		return;
	if (!light->slow) {
		allow_more(dev);
	} else if (!dt_free_known(dev) ||
		   (!all && free_is_due(dev))) {
		begin_free(dev, dev->limit);
	} else if (all || light->window != dev->fit.window) {
		light->window = dev->fit.window;
		if (all) {
			note_free(dev, slowly(dev, FREE_EVERY_NS), 0);
			light->slow_leapt = 0;
			light->helped = false;
		}
		if (is_stuck(dev)) {
			favour_later(dev);
			dev->limit = dev->depth;
		} else {
			move_limit(dev);
		}
	}
}

/* Nobody else was in its way; whether that was enough. */
static bool note_alone(struct dt_dev *dev, const struct dt_group *grp,
		       u64 latency)
{
	struct dt_light *light = &dev->light;

	/* The first to complete are the quickest. */
	if (light->nr_first <= grp->own->nr_inflight) {
		light->nr_first++;
		return false;
	}
	light->alone_ns += latency;
	/* Where each takes long there is more to lose, and less noise. */
	return ++light->nr_alone >= (light->slowly ? PROBE_ENOUGH : PROBE_ITEMS);
}

/* Whether the group is to have the device for itself for a while. */
static bool probe_is_due(const struct dt_dev *dev, const struct dt_group *grp)
{
	const struct dt_light *light = &dev->light;

	return !grp->own->nr_waiting &&
	       !dt_before(dev->clock_ns, grp->lat_alone_ns ?
			  light->probe_next_ns : light->probe_first_ns) &&
	       (grp != light->probed || dev->nr_active <= 1) &&
	       holds_little(dev, grp) && dt_share_of(grp);
}

/* Whether enough was seen of who asks for little. */
static inline bool has_told(const struct dt_light *light)
{
	return light->judged >= JUDGEMENTS ||
	       (light->judged && light->slow > 2 * SLOW);
}

/* It is, once that is so; it goes on for longer where too little came to tell. */
static inline bool look_is_over(const struct dt_dev *dev)
{
	const struct dt_light *light = &dev->light;
	bool some = light->nr || dev->nr_inflight != dev->nr_heavy;
	u64 longer;

	if (dt_before(dev->clock_ns, light->until_ns))
		return false;
	longer = LOOK_LONGEST * light->look_ns;
	if (some)
		longer *= 3;
	else if (is_over_for_good(dev))
		longer = dt_min(longer, NONE_NS);
	return has_told(light) ||
	       !dt_before(dev->clock_ns, light->until_ns + longer);
}

void dt_depth_anew(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;

	if (light->probing)
		end_probe(dev, NULL);
	favour(dev, NULL);
	light->slow = 0;
	light->pause = 0;
	light->freeing = false;
	set_limit(dev, dev->depth);
	next_look(dev);
}

/*
 * A request is complete while there are probes, or somebody asks for little, or
 * it is the one of several that its group is judged by.
 */
static void look(struct dt_dev *dev, const struct dt_item *item, u64 latency,
		 bool sample)
{
	struct dt_group *grp = item->queue->grp;
	struct dt_light *light = &dev->light;
	bool quiet = false;

	/* In a probe nothing counts before the others' requests are done. */
	if (light->probing && grp == light->grp) {
		if (!light->quiet_ns &&
		    dev->nr_inflight <= grp->own->nr_inflight + 1)
			light->quiet_ns = dev->clock_ns;
		quiet = light->quiet_ns &&
			!dt_before(item->dispatch_ns, light->quiet_ns);
	}
	if (dev->written.watching || (sample && dt_is_written(dev)))
		dt_written_note(dev, item, latency);
	if (sample) {
		dt_wide_note(dev, item);
		dt_lead_note(dev, item);
	}
	watch_probe(dev, item, latency, quiet);
	if (dev->solo.grp) {
		dt_solo_note(dev);
		return;
	}
	if (dev->spells.phase) {
		dt_spells_note(dev, item);
		return;
	}
	if (sample && dt_spells_begin(dev, item, latency)) {
		dt_written_end(dev);
		dt_depth_pause(dev);
		return;
	}
	if (sample && dt_solo_is_due(dev, grp) &&
	    dt_solo_begin(dev, grp, latency))
		return;
	dt_fit_note_light(dev, item);
	/* Order is all that is needed. */
	if (dt_is_written(dev))
		return;
	if ((sample || item->light) && (dev->crowded || light->grp) &&
	    !light->probing) {
		judge(dev, grp, item);
		/* What is in the device is gone before it is over. */
		if (latency < slowly(dev, PROBE_NS / 2) && !light->freeing &&
		    probe_is_due(dev, grp)) {
			begin_probe(dev, grp);
			return;
		}
	}
	if (quiet && note_alone(dev, grp, latency)) {
		end_probe(dev, grp);
		return;
	}
	/* Also where nobody asks for little any more: until then nothing is probed. */
	if (light->freeing && dt_free_known(dev))
		end_free(dev);
	if (!item->light && !light->nr && !light->probing &&
	    dev->limit == dev->depth)
		return;
	light->nr += item->light;
	light->most = dt_max(light->most, dev->nr_heavy + !item->light);
	if (light->probing) {
		if (!dt_before(dev->clock_ns, light->until_ns))
			end_probe(dev, grp == light->grp ? grp : NULL);
	} else if (!look_is_over(dev)) {
		return;
	} else if (has_told(light)) {
		review_limit(dev);
		next_look(dev);
	} else {
		/* Too little came to tell, or none, and none is on its way. */
		if (!light->nr && dev->nr_inflight == dev->nr_heavy)
			allow_soon(dev);
		allow_more(dev);
		next_look(dev);
	}
}

/* Whether every request is looked at, for what this file is about. */
static bool looks(const struct dt_dev *dev)
{
	return dev->light.nr || dev->light.probing ||
	       dev->limit != dev->depth || dev->spells.phase ||
	       dev->wide.thin.on || dev->written.watching ||
	       (dt_is_written(dev) && dev->lead.grp);
}

static noinline void look_and_see(struct dt_dev *dev,
				  const struct dt_item *item, u64 latency,
				  bool sample)
{
	bool serial = dt_serial_looks(dev);

	if (serial || sample)
		dt_serial_note(dev, item, latency);
	/* Or else it is only the order that is watched. */
	if (serial && !sample && !item->light && !looks(dev) &&
	    !item->queue->grp->probe) {
		watch(dev, item, latency);
		dev->light.on = dt_serial_looks(dev);
		return;
	}
	/* Nobody is judged, favoured or alone while there are few for another reason. */
	if (unlikely(dev->wide.thin.on))
		dt_wide_thin(dev, item);
	else
		look(dev, item, latency, sample);
	dt_pause_note(dev, item, latency);
	dev->light.on = looks(dev) || dt_serial_looks(dev);
	if (dt_is_wide(dev) && dev->light.on)
		dt_wide_end(dev);
}

/* One of those that are not looked at otherwise; see only_counts(). */
static noinline void count_heavy(struct dt_dev *dev, const struct dt_item *item,
				 u64 latency)
{
	watch(dev, item, latency);
	dev->light.most = dt_max(dev->light.most, dev->nr_heavy + 1);
}

/*
 * Whether there is nothing to look at but that somebody asked for little since
 * the last look, and it is no time for the next: what look_and_see() would do with
 * a request of another is to count it.
 */
static inline bool only_counts(const struct dt_dev *dev)
{
	const struct dt_light *light = &dev->light;

	return light->nr && dev->limit == dev->depth && dev->limit > 1 &&
	       !dt_is_wide(dev) && !light->probing && !light->freeing &&
	       !dev->solo.grp && !dev->spells.phase && !dev->wide.thin.on &&
	       !dev->written.watching && !dt_serial_looks(dev) &&
	       !look_is_over(dev);
}

dt_inline void dt_depth_note(struct dt_dev *dev, const struct dt_item *item)
{
	u64 latency = dev->clock_ns - item->dispatch_ns;
	struct dt_group *grp = item->queue->grp;
	bool sample = !(grp->stats.ios[item->dir] & (SAMPLE - 1));

	latency = dt_max(latency, 1);
	/* Mostly nobody asks for little, and all are let through. */
	if (likely(!(item->light | dev->light.on | sample | grp->probe)))
		watch(dev, item, latency);
	else if (!(item->light | sample | grp->probe) && only_counts(dev))
		count_heavy(dev, item, latency);
	else
		look_and_see(dev, item, latency, sample);
}
