// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Selection: which item goes to the device next, or whether to wait.
 *
 * Turns. Where switching between groups costs seeks (a rotational disk, or
 * when the operator sets a slice), a group keeps the device until it has used
 * a slice of disk time, and within it a process keeps its group's turn while
 * it reads on. Elsewhere every dispatch goes to the head of the line, which is
 * exact to the request. Turns do not affect shares: after its turn a group
 * stands as far back in the line as it was charged.
 *
 * Anticipation. The group whose turn it is may have nothing queued because its
 * process is about to issue the next request when it has seen the last one.
 * Serving somebody else then costs this group its turn and the disk two seeks.
 * So the device is held, if that is expected to pay:
 *
 *	mean think time  <  min(idle_usec, gain)
 *
 * where gain is what the wait saves: a seek, or where only the share is at
 * stake (strict) whatever the operator allows. The wait is bounded by the
 * mean and four mean deviations; one that ends without a request counts as a
 * very long think time, so that a process which has stopped is soon no longer
 * waited for. Idle time is charged to who was waited for.
 *
 * Without turns the device is held for who others make a pause for (pace.c).
 *
 * Pauses. Who thinks for longer than it pays to wait for has lost its turn, and
 * would have what it reads between two thoughts once in a turn of each of the
 * others. So who has nothing queued or in flight when its turn ends may have it
 * again as soon as it is back and first in line, once another has had a part of
 * a turn; and as long as that may happen less of others' is in the device at a
 * time. It is served when it should be, not more: who is not behind waits.
 *
 * A process is waited for where reading on has been cheap, a group where it is
 * behind; also while its requests are in the device and nothing of it is queued,
 * as whatever filled the free slots would be served before it.
 *
 * A commit goes on in another group, the file system's journal: what a group
 * waits for there counts as its own (chain.c). Who has lost its turn between two
 * links has it again like who paused: once another has had a part of a turn, and
 * if it is behind.
 *
 * dev->work says whether a dispatch would return an item. It is derived anew
 * after every event, under the lock, from the same state that the dispatch
 * will see: while the device is held it is false, and stays false until the
 * timer has ended the hold.
 */
#include "account.h"
#include "cache.h"
#include "chain.h"
#include "commit.h"
#include "cost.h"
#include "depth.h"
#include "entity.h"
#include "near.h"
#include "pace.h"
#include "queue.h"
#include "park.h"
#include "select.h"
#include "serial.h"
#include "slice.h"
#include "spell.h"
#include "wide.h"
#include "written.h"

/*
 * A turn where seeks cost: twenty times a seek, so that two readers keep 95 % of
 * what one has. With more than a few groups it is half of that, or they would
 * wait for each other longer than people like.
 */
#define SLICE_ROTATIONAL_NS	(160 * DT_NSEC_PER_MSEC)
#define SLICE_GROUPS		3
/*
 * Who has less than two thirds of an equal share has shorter turns, down to half
 * of one. He has more of them, and still the others have more than a turn between
 * two of his, so that seeks cost no more than among equals; and who is worth ten
 * of him does not wait for a whole turn.
 */
#define SLICE_SHARE		((u64)65536 * 2 / 3)
#define SLICE_LEAST		2
/* A turn where only exactness asks for it: a few requests. */
#define SLICE_STRICT_NS		(4 * DT_NSEC_PER_MSEC)
/* What a wait saves on a rotational disk at least: half a long seek. */
#define SEEK_NS			(4 * DT_NSEC_PER_MSEC)
/* What it costs to read on is forgotten after so many requests, and tried anew. */
#define FOLLOW_FORGET		1024
/* Below this many samples a process is given the benefit of the doubt. */
#define THINK_SAMPLES		4
/* Wait at least this long, or scheduling noise ends the wait for us. */
#define HOLD_MIN_NS		(500 * DT_NSEC_PER_USEC)
/* What is in flight comes back before that; or it is lost, and others go on. */
#define HOLD_INFLIGHT_NS	(2 * DT_NSEC_PER_SEC)
/*
 * Who has paused in its turn and comes back first in line has waited for no more
 * than this part of another's turn; two seeks are less than half of that. It may
 * be back for so long.
 */
#define BACK_PART		4
#define BACK_NS			(100 * DT_NSEC_PER_MSEC)
/* With more groups than this nobody is looked for who has all in the device. */
#define AWAITED_GROUPS		16
/* A group further ahead than this has its metadata wait like all else. */
#define EXPRESS_DEBT_NS		(500 * DT_NSEC_PER_MSEC)

/* So much is in flight at most if nobody says otherwise; see depth.c. */
#define DEPTH_AUTO		256

void dt_dev_derive(struct dt_dev *dev)
{
	bool other = dev->engine != DT_ENGINE_AUTO;

	dev->plain = !dev->slice_ns && !dev->fault && !other &&
		     !dt_commits_watched(dev) && !dev->spells.phase &&
		     !dev->holding;
	dev->by_cost = dev->crowded && !other;
}

/* What follows from the device and what it was told. */
static void derive_limits(struct dt_dev *dev)
{
	const struct dt_tunables *tun = &dev->tun;
	u32 depth = tun->depth ? tun->depth : DEPTH_AUTO;

	if (dev->light.awaited)
		dt_pause_wake(dev);
	dt_wide_init(dev, dt_max(dt_min(depth, dev->depth_hw), 1));
	if (tun->slice_ns)
		dev->slice_ns = tun->slice_ns;
	else if (dev->rotational)
		dev->slice_ns = SLICE_ROTATIONAL_NS;
	else if (tun->strict)
		dev->slice_ns = SLICE_STRICT_NS;
	else
		dev->slice_ns = dt_is_serial(dev) ? DT_SLICE_SERIAL_NS : 0;
	/* Without turns nobody is told when the links are done that are there. */
	if (!dev->slice_ns)
		dt_chain_forget(dev, NULL);
	dt_commits_reset(dev);
	dt_spells_reset(dev);
	dt_depth_init(dev);
	dt_dev_derive(dev);
}

/* ---- think time ---- */

void dt_think_sample(struct dt_think *think, u64 sample)
{
	u64 off;

	if (!think->samples) {
		think->mean_ns = sample;
		think->dev_ns = sample / 2;
	} else {
		off = sample > think->mean_ns ? sample - think->mean_ns :
						think->mean_ns - sample;
		think->mean_ns += (s64)(sample - think->mean_ns) / 8;
		think->dev_ns += (s64)(off - think->dev_ns) / 8;
	}
	if (think->samples < THINK_SAMPLES)
		think->samples++;
}

void dt_think_end(const struct dt_dev *dev, const struct dt_entity *ent,
		  struct dt_think *think)
{
	u64 longest = dt_max(2 * dev->tun.idle_ns, DT_NSEC_PER_MSEC);

	if (!ent->nr_queued && !ent->nr_inflight && think->last_end_ns)
		dt_think_sample(think,
				dt_min(dev->clock_ns - think->last_end_ns,
				       longest));
}

/* Until when it pays to wait for this entity; 0: it does not. */
static u64 wait_until(const struct dt_dev *dev, const struct dt_think *think,
		      u32 nr_inflight)
{
	u64 gain = dev->tun.idle_ns, window;

	if (!dev->tun.idle_ns || !dev->slice_ns)
		return 0;
	if (nr_inflight)
		return dev->clock_ns + HOLD_INFLIGHT_NS;
	if (!dev->tun.strict)
		gain = dt_min(gain, dt_max(dev->service_ns, SEEK_NS));
	if (think->samples < THINK_SAMPLES)
		window = gain;
	else if (think->mean_ns >= gain)
		return 0;
	else
		window = dt_min(think->mean_ns + 4 * think->dev_ns + HOLD_MIN_NS,
				dev->tun.idle_ns);
	return dt_before(dev->clock_ns, think->last_end_ns + window) ?
		think->last_end_ns + window : 0;
}

/* ---- turns ---- */

/* A turn among equals. */
static u64 full_turn(const struct dt_dev *dev)
{
	bool many = dev->rotational && dev->nr_active > SLICE_GROUPS;

	return dev->slice_ns >> (many && !dev->tun.slice_ns);
}

/*
 * The turn of who has it now. Behind a write cache it is a full one: what writes
 * take is learned where the cache is full, and in a short turn it is not.
 */
static u64 turn_length(const struct dt_dev *dev)
{
	u64 turn = full_turn(dev), share;

	if (!dev->rotational || dev->tun.slice_ns || !dev->turn_grp ||
	    dev->nr_active < 2 || dt_absorbs(dev))
		return turn;
	share = dt_share_of(dev->turn_grp) * dev->nr_active;
	if (share >= SLICE_SHARE)
		return turn;
	return dt_max(dt_div(turn * share, SLICE_SHARE), turn / SLICE_LEAST);
}

/* Charge the idle time of a hold to the group that it was kept for. */
static void settle_idle(struct dt_dev *dev)
{
	struct dt_group *grp = dev->turn_grp;
	u64 idle = dev->hold_idle_ns;

	dev->hold_idle_ns = 0;
	if (!idle || !grp)
		return;
	idle = dt_min(idle, DT_CHARGE_MAX_NS);
	grp->stats.idle_ns += idle;
	dev->turn_used_ns += idle;
	if (dev->turn_queue)
		dev->turn_idle_ns += idle;
	dt_path_charge(dev, grp->own, idle);
}

static void stop_holding(struct dt_dev *dev)
{
	/* Without turns it is not for who has this one. */
	if (dev->light.awaited) {
		dt_pause_wake(dev);
		return;
	}
	settle_idle(dev);
	dev->holding = false;
}

static void end_turn(struct dt_dev *dev)
{
	stop_holding(dev);
	dev->turn_grp = NULL;
	dev->turn_queue = NULL;
}

static bool better_class_waits(const struct dt_entity *ent)
{
	for (; ent->parent; ent = ent->parent)
		if (dt_line_best(&ent->parent->level->ready) < ent->class)
			return true;
	return false;
}

/*
 * Whether the lines would pick the entity, were it queued and charged @more_ns
 * beforehand: a process that waits for each of its requests never is queued
 * when its turn ends, and would otherwise have every second turn whatever its
 * weight.
 */
static bool comes_first(const struct dt_dev *dev, const struct dt_entity *ent,
			u64 more_ns)
{
	struct dt_level *level = dt_level_of(ent);
	struct dt_line *line = &level->ready;
	struct dt_spot *spot = dt_line_pick(line, dev->clock_ns);
	struct dt_entity *other;

	if (!spot || spot == &ent->ready)
		return true;
	other = DT_CONTAINER(spot, struct dt_entity, ready);
	if (other->class != ent->class)
		return ent->class < other->class &&
		       !dt_line_due(line, other->class, dev->clock_ns);
	dt_level_settle(level);
	return dt_before(ent->vdisktime + dt_virtual(more_ns, ent->weight),
			 other->vdisktime);
}

static bool stands_first(const struct dt_dev *dev, const struct dt_entity *ent,
			 u64 more_ns)
{
	for (; ent->parent; ent = ent->parent)
		if (!comes_first(dev, ent, more_ns))
			return false;
	return true;
}

/* Whether it goes before @other, though that may have nothing queued. */
static bool goes_ahead_of(const struct dt_entity *ent,
			const struct dt_entity *other)
{
	const struct dt_entity *at;

	for (; ent->parent; ent = ent->parent) {
		for (at = other; at->parent; at = at->parent) {
			if (at->parent != ent->parent)
				continue;
			dt_level_settle(dt_level_of(ent));
			return ent->class != at->class ?
			       ent->class < at->class :
			       dt_before(ent->vdisktime, at->vdisktime);
		}
	}
	return true;
}

/*
 * A queue has the turn of its group from now on. If that only begins it is
 * shorter by what the queue had too much of its last one.
 */
static void begin_within(struct dt_dev *dev, struct dt_queue *queue)
{
	dev->turn_queue_ns = 0;
	dev->turn_idle_ns = 0;
	if (!dev->turn_used_ns && queue->over_ns > 0)
		dev->turn_used_ns = dt_min((u64)queue->over_ns,
					   dev->slice_ns / 4);
}

/*
 * A queue that has read for a whole turn of its group is charged a turn among
 * the others, whatever that was; the rest is taken off its next. Who had a bit
 * more than the others would otherwise stand behind all of their next turns as
 * well.
 */
static void end_within(struct dt_dev *dev, struct dt_queue *queue)
{
	s64 turn = (s64)turn_length(dev), had = (s64)dev->turn_queue_ns;
	s64 due = had + (s64)dev->turn_idle_ns + queue->over_ns;

	if (!dt_spreads(dev) || had < turn / 2 || due < turn - turn / 8)
		return;
	queue->over_ns = dt_min(due - turn, turn / 4);
	queue->nr_levelled = queue->ent.nr_inflight;
	dt_queue_charge(dev, queue, due - queue->over_ns - had);
	dev->turn_queue_ns = 0;
	dev->turn_idle_ns = 0;
}

/* Another turn for the same group: where it stands is where its turn begins. */
static void renew_turn(struct dt_dev *dev)
{
	struct dt_entity *ent = dev->turn_grp->own;
	struct dt_queue *queue = dev->turn_queue;

	dev->turn_used_ns = 0;
	dev->turn_grp->stats.slices++;
	if (queue && !comes_first(dev, &queue->ent, 0)) {
		dev->turn_queue = NULL;
	} else if (queue) {
		begin_within(dev, queue);
		ent = &queue->ent;
	}
	for (; ent->parent; ent = ent->parent)
		dt_level_started(dt_level_of(ent), ent);
}

/*
 * Whether what the queue asks for next is cheap because it lies where the head
 * is: as far as known, what came right after its own took no seek.
 */
static bool reads_on(const struct dt_queue *queue)
{
	return queue->sync && queue->seek_mean < DT_SEEKY_SECTORS &&
	       queue->follow_ns < SEEK_NS + queue->last_sectors * DT_SECTOR_SLOW_NS;
}

/*
 * Who gets the turn that ends, though nothing of it is queued: its requests are
 * in the device, and it would be first if it were to issue again. Who is alone
 * in line would otherwise have turn after turn meanwhile, and fill the device.
 */
static struct dt_group *awaited(struct dt_dev *dev)
{
	u64 more = dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]);
	const struct dt_list *pos;
	struct dt_group *grp;

	if (dev->nr_active > AWAITED_GROUPS)
		return NULL;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		grp = dt_active_group(pos);
		if (grp != dev->turn_grp && !grp->own->nr_queued &&
		    grp->own->nr_inflight && stands_first(dev, grp->own, more))
			return grp;
	}
	return NULL;
}

static void begin_turn(struct dt_dev *dev, struct dt_group *grp)
{
	if (dev->back == grp)
		dev->back = NULL;
	grp->paused = false;
	dev->turn_grp = grp;
	dev->turn_queue = NULL;
	dev->turn_used_ns = 0;
	grp->stats.slices++;
}

static bool hold(struct dt_dev *dev, const struct dt_think *think,
		 const struct dt_entity *ent)
{
	u64 until;

	/* With no request free it cannot issue before others are served. */
	if (!ent->nr_granted && !dt_gate_keeps_for(dev, dev->turn_grp))
		return false;
	until = wait_until(dev, think, ent->nr_inflight +
					dt_chain_links(dev, dev->turn_grp));
	if (!until)
		return false;
	dev->holding = true;
	dev->hold_until_ns = until;
	return true;
}

/* It has nothing to do: its turn is over, though not because it had a turn. */
static void pause_turn(struct dt_dev *dev)
{
	struct dt_group *grp = dev->turn_grp;

	if (grp && !grp->own->nr_inflight) {
		grp->paused = true;
		dev->back_until_ns = dev->clock_ns + BACK_NS;
	}
	end_turn(dev);
}

/* Whose chain goes on though it has not the turn. */
static struct dt_group *chained(const struct dt_dev *dev)
{
	struct dt_group *grp = dev->chain.nr_links ? dev->chain.grp : NULL;

	return grp && grp != dev->turn_grp && !grp->own->nr_queued ? grp : NULL;
}

static bool claims(const struct dt_dev *dev, const struct dt_group *grp)
{
	return goes_ahead_of(grp->own, dev->turn_grp->own) &&
	       stands_first(dev, grp->own, 0);
}

/* Who would be first had it not paused, or not lost its turn within a chain. */
static struct dt_group *claimant(const struct dt_dev *dev)
{
	struct dt_group *back = dev->back, *waits = chained(dev);

	if (dev->turn_used_ns < full_turn(dev) / BACK_PART)
		return NULL;
	if (back && back->own->nr_queued && claims(dev, back))
		return back;
	return waits && claims(dev, waits) ? waits : NULL;
}

/*
 * Whether the turn goes on, and if so whether the device is held for it.
 * Called while something is queued and the device has room.
 */
static void review_turn(struct dt_dev *dev)
{
	struct dt_group *grp = dev->turn_grp;
	struct dt_queue *queue = dev->turn_queue;
	struct dt_group *next;
	u64 more = 0;

	stop_holding(dev);
	if (!grp)
		return;
	if (better_class_waits(grp->own)) {
		end_turn(dev);
		return;
	}
	next = claimant(dev);
	if (next && next->own->nr_queued) {
		end_turn(dev);
		return;
	}
	if (next) {
		begin_turn(dev, next);
		grp = next;
		queue = NULL;
	}
	if (queue && dt_line_best(&grp->queues.ready) < queue->ent.class)
		dev->turn_queue = queue = NULL;
	if (dev->turn_used_ns >= turn_length(dev)) {
		if (queue)
			end_within(dev, queue);
		next = chained(dev);
		if (!next || !stands_first(dev, next->own, 0))
			next = awaited(dev);
		if (next) {
			begin_turn(dev, next);
			grp = next;
		} else if (stands_first(dev, grp->own, 0)) {
			renew_turn(dev);
		} else {
			end_turn(dev);
			return;
		}
		queue = dev->turn_queue;
	}
	if (queue) {
		if (queue->ent.nr_queued)
			return;
		if (reads_on(queue) &&
		    hold(dev, &queue->think, &queue->ent))
			return;
		dev->turn_queue = NULL;
	}
	if (grp->own->nr_queued)
		return;
	/* While it is served, only if it is behind by a request at least. */
	if (grp->own->nr_inflight)
		more = dt_max(dev->cost_ns[DT_READ], dev->cost_ns[DT_WRITE]);
	if ((dev->tun.strict || stands_first(dev, grp->own, more)) &&
	    hold(dev, &grp->think, grp->own))
		return;
	pause_turn(dev);
}

void dt_dev_review(struct dt_dev *dev)
{
	bool room = dev->nr_inflight < dev->depth;
	bool work = false;

	/* Kept, for what follows from it is to change in reviews alone. */
	dev->back_soon = dt_before(dev->clock_ns, dev->back_until_ns);
	if (!dev->fault && !dev->slice_ns) {
		work = dt_fits(dev);
	} else if (room && dev->fault) {
		work = !dt_list_empty(&dev->all);
	} else if (room && dev->nr_queued) {
		if (!dt_list_empty(&dev->express)) {
			stop_holding(dev);
			work = true;
		} else if (dt_has_plenty(dev)) {
			stop_holding(dev);
		} else {
			review_turn(dev);
			/* Whose turn it is now may have more in there. */
			if (dt_has_plenty(dev))
				stop_holding(dev);
			else
				work = !dev->holding;
		}
	} else if (dev->holding) {
		stop_holding(dev);
	}
	dt_set_work(dev, work);
}

void dt_forget_group(struct dt_dev *dev, struct dt_group *grp)
{
	bool awaited = dev->light.awaited == grp || dev->lead.grp == grp ||
		       dev->spells.slices.grp == grp ||
		       dev->spells.quota.own == grp;

	dt_depth_forget(dev, grp);
	dt_serial_forget_group(dev, grp);
	dt_chain_forget(dev, grp);
	if (dev->back == grp)
		dev->back = NULL;
	if (dev->turn_grp == grp)
		end_turn(dev);
	else if (!awaited)
		return;
	dt_dev_update(dev);
}

void dt_forget_queue(struct dt_dev *dev, struct dt_queue *queue)
{
	dt_serial_forget(dev, queue);
	if (dev->last_queue == queue)
		dev->last_queue = NULL;
	if (dev->turn_queue != queue)
		return;
	dev->turn_queue = NULL;
	dt_dev_update(dev);
}

void dt_tick(struct dt_dev *dev, u64 now)
{
	dt_clock(dev, now);
	if (dev->light.awaited) {
		if (!dt_before(now, dev->hold_until_ns))
			dt_pause_vain(dev);
	} else if (dev->holding && !dt_before(now, dev->hold_until_ns)) {
		/* Nobody came: remember it, and wait no longer. */
		if (dev->turn_queue) {
			dt_think_sample(&dev->turn_queue->think,
					2 * dev->tun.idle_ns);
			dev->turn_queue = NULL;
		} else if (dev->turn_grp) {
			dt_think_sample(&dev->turn_grp->think,
					2 * dev->tun.idle_ns);
		}
		pause_turn(dev);
	}
	dt_commits_tick(dev);
	dt_spells_tick(dev);
	dt_dev_update(dev);
}

/* ---- the life of an item ---- */

static bool goes_express(const struct dt_group *grp)
{
	const struct dt_entity *ent = &grp->ent;
	struct dt_level *level = dt_level_of(ent);

	if (!level)
		return true;
	dt_level_settle(level);
	return dt_before(ent->vdisktime, level->ready.vtime[ent->class] +
			 dt_virtual(EXPRESS_DEBT_NS, ent->weight));
}

void dt_insert(struct dt_dev *dev, struct dt_queue *queue,
	       struct dt_item *item, enum dt_dir dir, u64 sector, u32 sectors,
	       unsigned int flags, u64 now)
{
	struct dt_group *grp = queue->grp;

	/* What is in flight stays so: only turns look at the clock here. */
	if (unlikely(dev->slice_ns)) {
		dt_clock(dev, now);
		dt_think_end(dev, &queue->ent, &queue->think);
		dt_think_end(dev, grp->own, &grp->think);
		if (grp->paused && queue->sync)
			dev->back = grp;
	}
	now = dt_later(now, dev->clock_ns);
	item->queue = queue;
	item->dir = dir;
	item->sectors = sectors;
	item->node.key = sector;
	item->insert_ns = now;
	item->idle_clock_ns = dev->idle_clock_ns;
	item->state = DT_ITEM_QUEUED;
	item->express = (flags & DT_INSERT_EXPRESS) && !dev->fault &&
			goes_express(grp);

	if (unlikely(dev->slice_ns))
		dt_chain_queued(dev, item);

	dt_queue_add(queue, item, flags & DT_INSERT_HEAD,
		     dev->tun.order != DT_ORDER_FIFO);
	dt_list_add_tail(item->express ? &dev->express : &dev->all, &item->all);
	if (unlikely(dev->commits.phase ||
		     (dt_is_async(queue, dir) && dt_commits_watch(dev, now))))
		dt_commits_queued(dev, item, now);
	else if (unlikely(dev->spells.phase))
		dt_spells_queued(dev, item, now);
	else
		dt_path_queued(dev, queue, now);
	dev->counts.inserted++;
	dt_dev_update(dev);
}

void dt_remove(struct dt_dev *dev, struct dt_item *item, u64 now)
{
	if (item->state != DT_ITEM_QUEUED)
		return;
	dt_clock(dev, now);
	dt_queue_del(item->queue, item);
	dt_list_del(&item->all);
	item->state = DT_ITEM_FREE;
	if (unlikely(item->watched))
		dt_commits_gone(dev, item);
	if (unlikely(item->queue->nr_parked)) {
		dt_unpark_gone(dev, item->queue);
	} else {
		dt_path_unqueued(dev, item->queue);
	}
	dev->counts.removed++;
	dt_dev_update(dev);
}

/* When one of a class better than this was dispatched last. */
static noinline u64 latest_better(const struct dt_dev *dev, enum dt_class class)
{
	u64 latest = dev->class_dispatch_ns[DT_RT];

	while (class-- > DT_BE)
		latest = dt_later(latest, dev->class_dispatch_ns[class]);
	return latest;
}

static inline void account_wait(const struct dt_dev *dev,
				struct dt_stats *stats,
				const struct dt_item *item,
				enum dt_class class)
{
	u64 from = item->insert_ns, others = 0, better = 0, until;
	u64 total = dt_later(dev->clock_ns, from) - from;
	u64 idle = dt_min(dev->idle_clock_ns - item->idle_clock_ns, total);
	u64 rest = total - idle, *wait = stats->wait_ns;

	/*
	 * Until somebody else was dispatched for the last time it waited for
	 * its turn; from then on it was next, and the device had no room.
	 */
	if (dt_before(from, dev->last_dispatch_ns)) {
		others = dt_min(dev->last_dispatch_ns - from, rest);
		until = dev->class_dispatch_ns[DT_RT];
		if (unlikely(class > DT_BE))
			until = latest_better(dev, class);
		if (dt_before(from, until) && class > DT_RT)
			better = dt_min(until - from, others);
	}
	wait[DT_WAIT_IDLE] += idle;
	wait[DT_WAIT_CLASS] += better;
	wait[DT_WAIT_SHARE] += others - better;
	wait[DT_WAIT_DEPTH] += rest - others;
	if (unlikely(total > stats->wait_max_ns))
		stats->wait_max_ns = total;
}

static void note_turn(struct dt_dev *dev, struct dt_queue *queue,
		      struct dt_group *grp)
{
	if (dev->turn_grp != grp)
		begin_turn(dev, grp);
	dev->turn_queue = queue;
}

/*
 * An item of @queue in @grp goes to the device, as @light as it may be: what does
 * not depend on its path.
 */
static __always_inline void note_sending(struct dt_dev *dev,
					 struct dt_item *item,
					 struct dt_queue *queue,
					 struct dt_group *grp, bool light,
					 u64 estimate_ns)
{
	u64 now = dev->clock_ns;

	item->light = light;
	item->estimate_ns = estimate_ns;
	item->follows = false;
	item->chain = 0;
	item->vbusy = dev->vbusy;
	item->state = DT_ITEM_DISPATCHED;
	item->dispatch_ns = now;
	queue->next_sector = item->node.key + item->sectors;
	grp->last_dispatch_ns = now;
	dev->nr_heavy += !light;
	dev->estimates_ns += estimate_ns;
	dev->counts.dispatched++;
}

/* It has gone. */
static __always_inline void note_sent(struct dt_dev *dev, struct dt_item *item,
				      struct dt_queue *queue,
				      enum dt_class class, bool plain)
{
	u64 now = dev->clock_ns;

	dev->last_dispatch_ns = now;
	dev->class_dispatch_ns[class] = now;
	if (!plain && dev->slice_ns) {
		queue->last_sectors = item->sectors;
		item->follows = dev->last_queue == queue &&
				dev->nr_inflight == 1;
		if (!item->follows && queue->follow_ns)
			queue->follow_ns -= queue->follow_ns / FOLLOW_FORGET;
		dev->last_queue = queue;
	}
	if (!plain && dev->rotational)
		dev->nr_sectors += item->sectors;
	if (!plain && dt_by_gap(dev))
		dt_cache_sent(dev, item);
}

bool dt_pass(struct dt_dev *dev, struct dt_queue *queue, struct dt_item *item,
	     enum dt_dir dir, u64 sector, u32 sectors, u64 now)
{
	struct dt_group *grp = queue->grp;
	enum dt_class class;
	u64 estimate;
	bool light;

	if (dev->nr_queued ||
	    (!dev->plain && (dev->slice_ns || dev->fault || dev->holding ||
			     (dev->spells.phase &&
			      (dir == DT_WRITE || queue->spent ||
			       dev->spells.slices.pipes)))) ||
	    (unlikely(dt_is_async(queue, dir)) &&
	     (dev->commits.phase || dt_commits_watch(dev, now))))
		return false;
	light = dt_is_light(dev, grp);
	if (!dt_room_for(dev, light) ||
	    (unlikely(dev->lead.grp) && dev->lead.grp != grp))
		return false;
	dt_clock_inline(dev, now);
	item->queue = queue;
	item->dir = dir;
	item->sectors = sectors;
	item->node.key = sector;
	item->insert_ns = dev->clock_ns;
	item->express = false;
	note_turn(dev, queue, grp);
	estimate = dt_estimate(dev, queue, dir, sectors);
	note_sending(dev, item, queue, grp, light, estimate);
	class = dt_path_passed(dev, queue, grp, estimate);
	if (unlikely(!dev->plain) && dev->commits.phase)
		dt_commits_passed(dev, item);
	note_sent(dev, item, queue, class, true);
	grp->stats.dequeues++;
	dev->turn_used_ns += estimate;
	dev->counts.inserted++;
	/* Nothing is queued, so that there is as little work as before. */
	return true;
}

/* Take a queued item off every list and hand it to the device. */
static __always_inline void send(struct dt_dev *dev, struct dt_item *item,
				 bool plain)
{
	struct dt_queue *queue = item->queue;
	struct dt_group *grp = queue->grp;
	enum dt_class class;
	u64 estimate, charge, gap;
	bool light;

	/* What goes express does so past those that are parked. */
	if (!plain && unlikely(queue->nr_parked))
		dt_unpark(dev, queue);
	light = dt_is_light(dev, grp);
	estimate = dt_estimate(dev, queue, item->dir, item->sectors);
	charge = estimate;
	if (dev->by_cost)
		charge += dt_dither(dev, grp, charge);
	/* Where it begins is no seek. */
	if (!plain && dev->slice_ns && queue->last_sectors) {
		gap = dt_before(item->node.key, queue->next_sector) ?
			queue->next_sector - item->node.key :
			item->node.key - queue->next_sector;
		queue->seek_mean += (s64)(gap - queue->seek_mean) / 8;
	}
	dt_queue_del(queue, item);
	dt_list_unlink(&item->all);
	note_sending(dev, item, queue, grp, light, estimate);
	grp->stats.express += item->express;
	if (!plain && unlikely(item->express) && dev->slice_ns)
		dt_chain_sent(dev, item);
	class = dt_path_dispatched(dev, queue, charge, dev->clock_ns);
	account_wait(dev, &grp->stats, item, class);
	grp->stats.dequeues += !grp->own->nr_queued;
	note_sent(dev, item, queue, class, plain);
	if (!plain && dev->commits.phase)
		dt_commits_sent(dev, item);
	else if (!plain && dev->spells.phase)
		dt_spells_sent(dev, item);
}

/* Follow the lines from the root down to a queue. */
static __always_inline struct dt_queue *descend(struct dt_dev *dev,
						struct dt_entity *ent,
						bool plain)
{
	struct dt_level *level;
	struct dt_spot *spot;

	while (ent->kind != DT_KIND_QUEUE) {
		level = ent->level;
		ent = level->lone;
		if (ent && ent->ready.on) {
			dt_level_started(level, ent);
			continue;
		}
		if (unlikely(!level->ready.present))
			return NULL;
		spot = dt_line_pick(&level->ready, dev->clock_ns);
		/* Not the lone one, which does not stand there. */
		ent = DT_CONTAINER(spot, struct dt_entity, ready);
		dt_line_started(&level->ready, ent->class, ent->vdisktime);
		if (!plain && ent->kind == DT_KIND_QUEUE && dt_goes_near(dev))
			return dt_nearest(dev, &level->ready,
					  dt_entity_queue(ent));
	}
	return dt_entity_queue(ent);
}

static __always_inline struct dt_queue *select_queue(struct dt_dev *dev,
						     bool plain)
{
	struct dt_entity *from = &dev->root->ent;

	if (!plain && dev->slice_ns && dev->turn_grp) {
		/* dt_dev_update() has found that the turn goes on. */
		if (dev->turn_queue)
			return dev->turn_queue;
		from = dev->turn_grp->own;
	} else if (dt_favoured(dev) &&
		   !better_class_waits(dev->light.first->own)) {
		from = dev->light.first->own;
	}
	return descend(dev, from, plain);
}

static struct dt_item *first_waiting(const struct dt_dev *dev)
{
	const struct dt_list *list = &dev->express;

	if (dt_list_empty(list))
		list = &dev->all;
	return dt_list_empty(list) ? NULL :
		DT_CONTAINER(list->next, struct dt_item, all);
}

/*
 * Where dev->plain is set, @plain is a constant, and all that it rules out is
 * not even looked at. Here, and where a request completes.
 */
static __always_inline struct dt_item *dispatch(struct dt_dev *dev, u64 now,
						bool plain)
{
	struct dt_item *item = NULL;
	struct dt_queue *queue;
	bool other;

	dt_clock_inline(dev, now);
	if (unlikely(!dev->work)) {
		dev->counts.raced++;
		return NULL;
	}
	if (!plain && unlikely(dev->light.awaited))
		dt_pause_wake(dev);
	if ((plain || !dev->fault) && dt_list_empty(&dev->express)) {
		queue = select_queue(dev, plain);
		if (likely(queue && queue->ent.nr_queued)) {
			other = !plain && dev->turn_queue != queue;
			note_turn(dev, queue, queue->grp);
			if (!plain && other)
				begin_within(dev, queue);
			item = dt_queue_next(queue, dev->tun.order,
					     dev->clock_ns);
		} else {
			dt_fail(dev, DT_FAULT_LOST, now);
			if (plain)
				return dt_dispatch(dev, now);
		}
	}
	if (!item)
		item = first_waiting(dev);
	if (unlikely(!item)) {
		dev->counts.empty++;
		WRITE_ONCE(dev->work, false);
		return NULL;
	}
	send(dev, item, plain);
	if (dev->turn_grp == item->queue->grp)
		dev->turn_used_ns += item->estimate_ns;
	dt_dev_update_as(dev, plain);
	return item;
}

static noinline struct dt_item *dispatch_any(struct dt_dev *dev, u64 now)
{
	return dispatch(dev, now, false);
}

struct dt_item *dt_dispatch(struct dt_dev *dev, u64 now)
{
	return likely(dev->plain) ? dispatch(dev, now, true) :
				    dispatch_any(dev, now);
}

/* The device is done with an item, for good or for now. */
static __always_inline u64 back(struct dt_dev *dev, struct dt_item *item,
				struct dt_queue *queue, struct dt_group *grp,
				bool done, bool plain)
{
	bool given = !plain && dev->engine == DT_ENGINE_GIVEN;
	u64 estimate = item->estimate_ns, now = dev->clock_ns;
	u64 actual = given ? estimate : dt_actual(dev, item, done, plain);

	if (!plain && unlikely(!queue->ent.nr_inflight)) {
		dt_fail(dev, DT_FAULT_COUNT, now);
		return 0;
	}
	if (dev->turn_grp == grp) {
		u64 used = dev->turn_used_ns + actual;

		dev->turn_used_ns = used > estimate ? used - estimate : 0;
	}
	dev->nr_heavy -= !item->light;
	dev->estimates_ns -= estimate;
	if (!plain && dev->rotational)
		dev->nr_sectors -= item->sectors;
	if (!given) {
		grp->stats.time_ns[item->dir] += actual;
		dev->charged_ns += actual;
	}
	queue->think.last_end_ns = now;
	grp->think.last_end_ns = now;
	dt_path_completed(dev, queue, grp, (s64)(actual - estimate));
	if (!plain && unlikely(item->chain))
		dt_chain_back(dev, item, actual);
	if (!plain && item->watched)
		dt_commits_gone(dev, item);
	return actual;
}

static __always_inline u64 complete(struct dt_dev *dev, struct dt_item *item,
				    u64 now, bool plain)
{
	struct dt_queue *queue = item->queue;
	struct dt_group *grp = queue->grp;
	u64 actual;

	dt_clock_inline(dev, now);
	item->state = DT_ITEM_DONE;
	grp->stats.ios[item->dir]++;
	grp->stats.sectors[item->dir] += item->sectors;
	dev->counts.completed++;
	actual = back(dev, item, queue, grp, true, plain);
	if (plain || (dev->engine != DT_ENGINE_GIVEN &&
		      !(dt_is_serial(dev) && dev->serial.passed)))
		dt_learn_cost(dev, queue, item->dir, actual);
	if (!plain && dev->slice_ns) {
		dev->head_sector = item->node.key + item->sectors;
		dt_chain_done(dev, item);
		dt_learn_turns(dev, item, actual);
		if (dt_is_serial(dev))
			dt_serial_tick(dev);
	} else if (plain || dev->engine != DT_ENGINE_OVERLAP) {
		dt_depth_note(dev, item);
		dt_fit_note(dev, item);
	}
	dt_dev_update_as(dev, plain);
	return actual;
}

static noinline u64 complete_any(struct dt_dev *dev, struct dt_item *item,
				 u64 now)
{
	return complete(dev, item, now, false);
}

u64 dt_complete(struct dt_dev *dev, struct dt_item *item, u64 now)
{
	if (unlikely(item->state != DT_ITEM_DISPATCHED))
		return 0;
	if (likely(dev->plain && item->queue->ent.nr_inflight))
		return complete(dev, item, now, true);
	return complete_any(dev, item, now);
}

void dt_charge(struct dt_dev *dev, struct dt_queue *queue, enum dt_dir dir,
	       u64 took_ns, u64 estimate_ns, u64 now)
{
	struct dt_group *grp = queue->grp;
	s64 more = (s64)(took_ns - estimate_ns);

	dt_clock(dev, now);
	dt_path_charge(dev, &queue->ent, more);
	if (dev->turn_grp == grp)
		dev->turn_used_ns = dt_max((s64)dev->turn_used_ns + more, 0);
	grp->stats.time_ns[dir] += took_ns;
	dev->charged_ns += took_ns;
	if (estimate_ns)
		dt_learn_cost(dev, queue, dir, took_ns);
	dt_dev_update(dev);
}

void dt_requeue(struct dt_dev *dev, struct dt_item *item, u64 now)
{
	if (item->state != DT_ITEM_DISPATCHED)
		return;
	dt_clock(dev, now);
	back(dev, item, item->queue, item->queue->grp, false, false);
	if (unlikely(dev->spells.phase))
		dt_slices_back(dev, item->queue->grp);
	item->state = DT_ITEM_FREE;
	dev->counts.requeued++;
	dt_dev_update(dev);
}

/* ---- the device ---- */

void dt_dev_init(struct dt_dev *dev, struct dt_group *root, u32 depth_hw,
		 u32 tags, bool rotational, u64 now)
{
	*dev = (struct dt_dev) {
		.root = root,
		.clock_ns = now,
		.back_until_ns = now,
		.depth_hw = depth_hw,
		.tags = tags,
		.rotational = rotational,
		.tun.idle_ns = rotational ? 8 * DT_NSEC_PER_MSEC :
					    2 * DT_NSEC_PER_MSEC,
		.tun.order = rotational ? DT_ORDER_CFQ : DT_ORDER_FIFO,
	};
	dt_list_init(&dev->groups);
	dt_list_init(&dev->active);
	dt_list_init(&dev->all);
	dt_list_init(&dev->express);
	dt_cache_init(&dev->cache);
	dt_commits_init(&dev->commits);
	dt_spells_init(&dev->spells);
	dt_fit_init(&dev->fit);
	derive_limits(dev);
}

void dt_dev_turns(struct dt_dev *dev)
{
	/* Who had the turn without turns is who was served last. */
	if (dev->turn_grp)
		end_turn(dev);
	derive_limits(dev);
}

void dt_dev_resize(struct dt_dev *dev, u32 depth_hw, u32 tags, u64 now)
{
	dt_clock(dev, now);
	dev->depth_hw = depth_hw;
	dev->tags = tags;
	dt_serial_reset(dev);
	dt_dev_turns(dev);
	dt_dev_update(dev);
}

void dt_dev_engine(struct dt_dev *dev, enum dt_engine engine)
{
	dt_written_end(dev);
	dev->engine = engine;
	if (dt_is_serial(dev)) {
		dt_serial_reset(dev);
		dt_dev_turns(dev);
		return;
	}
	dt_spells_reset(dev);
	dt_depth_init(dev);
}

void dt_dev_tune(struct dt_dev *dev, const struct dt_tunables *tun, u64 now)
{
	dt_clock(dev, now);
	dev->tun = *tun;
	dt_serial_reset(dev);
	dt_dev_turns(dev);
	dt_dev_update(dev);
}
