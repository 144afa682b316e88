// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lead: who is ahead waits for who has all in the device.
 *
 * Order decides among those that wait. Where a device takes all that is asked for
 * nobody does: of 64 reads of 256 KB and 128 of 4 KB on a drive that takes 256, each
 * is replaced as soon as it is done, whoever is ahead, and what each group gets is
 * what its requests get from one another inside: 0.96 and 0.05 of what they do alone.
 * It is no better where some wait, but not those of who is behind.
 *
 * So while a group that is behind has nothing left that could be sent, nobody else is
 * sent anything who is further ahead of it than most_ns of disk time. The device is
 * busy with what the group has in there, of which it is to be enough. What others
 * have in flight is charged already, so that they stop when what is in there is worth
 * that much, and the group soon has the device as far as it needs it.
 *
 * That is for costs that are known, and reads: what a drive writes is not seen where it
 * lies in a cache, and with both it often does more than with either. There who is
 * behind is helped as any other is (depth.c). It is not
 * for who asks for so little that the others lose more by it than they need to, nor
 * where all requests are alike, but for who asks for half of what another does: for
 * these it is depth.c's to find how few of the others' do.
 *
 * A group may be behind as its requests are thought to cost too little. Costs go on being
 * learned while others wait for it. Or it has too few to use what is due to it: then the
 * others have what is due to them, and not what it leaves. 100 at a time on 128 servers,
 * with ten times the weight of 128 large ones, have 0.67 of these and the others 0.11;
 * in order of arrival 0.23 and 0.77.
 *
 * Asked. What groups of few requests cost was never learned there: a device
 * counted as full with all of its slots, and had 192 of 256. But if its requests wait
 * for each other it is as full with what one of them asks for as that one ever makes
 * it, and what it does alone is what it is to be measured by. So with that much in
 * flight it counts as full (cost.c, solo.c), while a second asks for more than a little.
 *
 * Behind a cache that is full (written.c) it is for all, as few are let in there, and who
 * has all in there is waited for also while he issues the next.
 *
 * What it is worth (docs/DESIGN.md has more): of 47 pairs of readers, 4 KB to 1 MB by 8
 * to 256 at random, on NVMe, who is worse off has 0.52 of what it does alone, the
 * geometric mean, for 0.35, and in the worst 0.41, for 0.01.
 *
 * Rejected: as many in flight as the largest asks for, so that the others wait (4 KB
 * writes by 16 had 0.07: few are too few for 38 channels); to have who holds more be
 * light (depth.c; 0.14 for 0.45 on a drive that takes 32); not to learn from windows in
 * which others wait (what was wrong stays so, 0.27 for 0.50).
 */
#include "cost.h"
#include "depth.h"
#include "entity.h"
#include "lead.h"
#include "written.h"

/* On a drive that takes fewer, hardly anybody leaves room for others. */
#define DEPTH_LEAST		64
/* No more groups than that are gone through. */
#define FRONT_GROUPS		16
/* Nobody waits for who has fewer in the device; half of it is enough meanwhile. */
#define INSIDE_LEAST		8
/* So far ahead may one be: this, and what so many requests cost. */
#define FRONT_NS		DT_NSEC_PER_MSEC
#define FRONT_REQUESTS		2
/* Who asks for most, of this at least, is looked at for so long. */
#define ASKED_NS		(100 * DT_NSEC_PER_MSEC)
#define ASKED_LEAST		32
/* After a write, or both: for so long, and so many times as long as it stayed. */
#define BOTH_NS			DT_NSEC_PER_SEC
#define BOTH_STAYS		32
/* After requests that are not alike. */
#define UNALIKE_NS		(250 * DT_NSEC_PER_MSEC)

void dt_lead_init(struct dt_dev *dev)
{
	dev->lead = (struct dt_lead) {
		.asked = ~0u,
		.part_of = ~0u,
		.asked_ns = dev->clock_ns,
		.writes_ns = dev->clock_ns,
		.unlike_ns = dev->clock_ns,
	};
}

void dt_lead_forget(struct dt_dev *dev, const struct dt_group *grp)
{
	if (dev->lead.grp == grp)
		dev->lead.grp = NULL;
}

static bool were_writes(const struct dt_dev *dev)
{
	return dt_before(dev->clock_ns, dev->lead.writes_ns);
}

/* By the last window of costs, or by this one so far. */
static bool is_unlike(const struct dt_fit *fit)
{
	return !fit->alike || fit->least < fit->most ||
	       dt_load_both(&fit->load);
}

/* For a while: of large requests so few are done that a window may have none. */
bool dt_were_alike(const struct dt_dev *dev)
{
	return !dt_before(dev->clock_ns, dev->lead.unlike_ns);
}

/* The most that one of several has outstanding; ~0: all that there may be. */
static u32 asks_most(const struct dt_dev *dev)
{
	u32 nr, most = 0, second = 0;
	const struct dt_list *pos;
	const struct dt_entity *own;

	if (dev->depth < DEPTH_LEAST || dev->nr_active < 2 ||
	    dev->nr_active > FRONT_GROUPS || dev->nr_waiting ||
	    dt_were_alike(dev) ||
	    (dev->lead.asked == ~0u && !dev->crowded))
		return ~0u;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		own = dt_active_group(pos)->own;
		/* One of them may have been completed just now. */
		nr = own->nr_queued + own->nr_inflight + 1;
		if (nr > most) {
			second = most;
			most = nr;
		} else {
			second = dt_max(second, nr);
		}
	}
	return most < ASKED_LEAST || second < INSIDE_LEAST ? ~0u : most;
}

static void note_asked(struct dt_dev *dev)
{
	struct dt_lead *lead = &dev->lead;

	lead->asked_now = dt_max(lead->asked_now, asks_most(dev));
	lead->asked = dt_max(lead->asked, lead->asked_now);
	if (!dt_before(dev->clock_ns, lead->asked_ns)) {
		lead->asked = lead->asked_now;
		lead->asked_now = 0;
		lead->asked_ns = dev->clock_ns + ASKED_NS;
	}
	/* Nobody waits for who is behind then, who may be light instead. */
	lead->part_of = were_writes(dev) ? ~0u : lead->asked;
}

/* How far it is behind at the level where it is furthest, in virtual time. */
static s64 lag_of(const struct dt_group *grp)
{
	const struct dt_entity *ent;
	const struct dt_level *level;
	s64 most = 0;

	for (ent = grp->own; ent->parent; ent = ent->parent) {
		level = ent->parent->level;
		if (level->lone != ent)
			most = dt_max(most,
				      (s64)(level->ready.vtime[ent->class] -
					    ent->vdisktime));
	}
	return most;
}

static bool is_for_us(const struct dt_dev *dev)
{
	return (dt_written_known(dev) ||
		(dev->depth >= DEPTH_LEAST && !were_writes(dev))) &&
	       dev->by_cost && dt_costs_known(dev) && dev->plain &&
	       !dev->solo.grp && !dev->light.probing &&
	       !dev->wide.thin.on && dev->limit == dev->depth &&
	       dev->nr_active <= FRONT_GROUPS;
}

/* What it has in the device is no little, and there is room for others beside it. */
static bool may_be_waited_for(const struct dt_dev *dev,
			      const struct dt_group *grp)
{
	u32 inside = grp->own->nr_inflight;

	/* With what is in the cache the device is busy meanwhile. */
	if (dt_is_written(dev))
		return inside || grp->own->nr_queued;
	return inside >= INSIDE_LEAST && !dt_is_full(inside, dev->depth) &&
	       !dt_is_well_off(dev, grp) &&
	       (!dt_were_alike(dev) || 2 * (inside + 1) >= dt_asked(dev));
}

static bool is_far_behind(const struct dt_dev *dev, const struct dt_group *grp)
{
	return lag_of(grp) >
	       (s64)dt_virtual(dev->lead.most_ns, grp->own->weight);
}

static struct dt_group *furthest_behind(const struct dt_dev *dev)
{
	struct dt_group *grp, *found = NULL;
	const struct dt_list *pos;
	s64 lag, most = 0;

	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		grp = dt_active_group(pos);
		/* With the few that are let in behind a cache one is left out now and then. */
		if ((grp->own->nr_queued && !dt_is_written(dev)) ||
		    !may_be_waited_for(dev, grp))
			continue;
		lag = lag_of(grp);
		if (lag > most && is_far_behind(dev, grp)) {
			most = lag;
			found = grp;
		}
	}
	return found;
}

/* It has not caught up, and has not left or become one that nobody waits for. */
static bool is_behind_still(const struct dt_dev *dev)
{
	const struct dt_group *grp = dev->lead.grp;

	return lag_of(grp) > 0 &&
	       (grp->own->nr_queued || may_be_waited_for(dev, grp));
}

/* Who only reads for longer than that while the other only writes is as unlike. */
static void note_unlike(struct dt_dev *dev, u64 ns)
{
	u64 until = dev->clock_ns + ns;

	if (dt_before(dev->lead.unlike_ns, until))
		dev->lead.unlike_ns = until;
}

void dt_lead_note(struct dt_dev *dev, const struct dt_item *item)
{
	u64 stay = dev->clock_ns - item->dispatch_ns;
	struct dt_lead *lead = &dev->lead;
	struct dt_group *grp;

	if (item->dir == DT_WRITE)
		lead->writes_ns = dev->clock_ns + BOTH_NS + BOTH_STAYS * stay;
	if (is_unlike(&dev->fit))
		note_unlike(dev, UNALIKE_NS);
	if (dt_load_both(&dev->fit.load))
		note_unlike(dev, BOTH_NS + BOTH_STAYS * stay);
	if (!dev->solo.grp && !dev->light.probing && !dev->spells.phase &&
	    !dev->wide.thin.on)
		note_asked(dev);
	if (!is_for_us(dev)) {
		lead->grp = NULL;
		return;
	}
	lead->most_ns = FRONT_NS + FRONT_REQUESTS *
			dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]);
	grp = furthest_behind(dev);
	/* Who thinks between two bursts may be away when it is looked at. */
	if (!grp && dt_is_written(dev) &&
	    is_far_behind(dev, item->queue->grp))
		grp = item->queue->grp;
	if (grp)
		lead->grp = grp;
	/* With few let in it is behind again before it is looked at. */
	else if (lead->grp && !is_behind_still(dev) && !dt_is_written(dev))
		lead->grp = NULL;
}

/* What stands for the group at this level, or NULL. */
static const struct dt_entity *at_level(const struct dt_group *grp,
					const struct dt_level *level)
{
	const struct dt_entity *ent;

	for (ent = grp->own; ent->parent; ent = ent->parent)
		if (ent->parent->level == level)
			return ent;
	return NULL;
}

/* Whether who would be next is too far ahead of who is waited for. */
static bool next_is_ahead(struct dt_dev *dev)
{
	const struct dt_group *grp = dev->lead.grp;
	const struct dt_entity *ent = &dev->root->ent, *behind;
	const struct dt_spot *spot;
	struct dt_level *level;

	/* Down to where the next one's way is another than the group's. */
	while (ent->kind != DT_KIND_QUEUE) {
		level = ent->level;
		behind = at_level(grp, level);
		if (!behind)
			return false;
		ent = level->lone;
		if (!ent || !ent->ready.on) {
			spot = dt_line_pick(&level->ready, dev->clock_ns);
			if (!spot)
				return false;
			ent = DT_CONTAINER(spot, struct dt_entity, ready);
		}
		if (ent != behind)
			return ent != level->lone &&
			       ent->class == behind->class &&
			       (s64)(ent->vdisktime - behind->vdisktime) >
			       (s64)dt_virtual(dev->lead.most_ns,
					       behind->weight);
	}
	return false;
}

/* It has just had all in the device, and can issue again when it has thought. */
static bool may_be_back(const struct dt_dev *dev, const struct dt_group *grp)
{
	return grp->emptied_ns && !grp->own->nr_waiting &&
	       dev->clock_ns - grp->emptied_ns < dev->tun.idle_ns;
}

/*
 * It has enough in the device. Behind a cache that is what is to be written, and the group
 * need only be back soon.
 */
static bool has_enough(const struct dt_dev *dev, const struct dt_group *grp)
{
	u32 inside = grp->own->nr_inflight;

	if (!dt_is_written(dev))
		return 2 * inside >= INSIDE_LEAST;
	return inside || (dev->nr_inflight && dt_written_goes_on(dev) &&
			  may_be_back(dev, grp));
}

noinline bool dt_lead_waits(struct dt_dev *dev)
{
	const struct dt_group *grp = dev->lead.grp;

	if (grp->own->nr_queued)
		return false;
	if (dev->holding && dev->light.awaited == grp)
		return next_is_ahead(dev);
	return dev->plain && !dev->solo.grp && !dt_favoured(dev) &&
	       dt_list_empty(&dev->express) && has_enough(dev, grp) &&
	       next_is_ahead(dev);
}

bool dt_lead_is_awaited(struct dt_dev *dev)
{
	const struct dt_group *grp = dev->lead.grp;

	return grp && !dev->nr_inflight && !grp->own->nr_queued &&
	       may_be_back(dev, grp) && dev->plain && dev->nr_queued &&
	       next_is_ahead(dev);
}
