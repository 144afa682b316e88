// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Commits: who syncs, beside who writes through the page cache.
 *
 * A commit ends with a flush of the device's cache, and that waits for whatever
 * is in there, whoever wrote it. A buffered writer fills it at once, again and
 * again, with requests that nobody waits for; it may stand behind the others
 * with each of them and still have every flush wait for megabytes of its own.
 * On flash, where no group has the device for itself, no order among requests
 * helps: 4 KB appends with fsync, of ten times the writer's weight, had 1 % of
 * what they have alone.
 *
 * So while commits are slow, writers of both kinds have turns: those who wait
 * for commits, and the flushers.
 *
 *	IDLE ---- a flusher writes while somebody commits ----> WATCH
 *	WATCH	  they go on, with no more in the device than two megabytes: they
 *		  come in bursts, and a burst is all that a device takes
 *	IDLE, WATCH ---- a flush took twice what it can, or nobody knows what it
 *		  can, for which it is tried now and then ----> SETTLE
 *	SETTLE    flushers' requests are parked. The first flush that began
 *		  after that ends what is theirs:
 *			theirs = from the beginning of their turn to its end
 *	OURS	  parked still, for theirs * (weight of the others) / (theirs)
 *	THEIRS	  they go on, for as long as some flushes take, with no more in
 *		  the device than in WATCH; then SETTLE
 *
 * No cost of a request is known or needed: a turn of theirs takes as long as
 * the commits are kept waiting by it, the flush that cleans up after it
 * included.
 *
 * Nobody is held for nothing: not while only the file system itself commits, for
 * who writes behind. And nobody who commits waits for himself: a file
 * system may have a commit wait for a flusher's requests (ext4 for the data of
 * blocks that were allocated in the same transaction). So who does not commit
 * for some times as long as the gaps were before lets the flushers go on, until
 * the next commit. And no turn of ours is longer than OURS_MAX_NS: the bound of
 * what a flusher waits.
 */
#include "commit.h"
#include "entity.h"
#include "park.h"
#include "select.h"
#include "spell.h"

/* A flush is slow that takes so many times the least. */
#define FLUSH_SLOW		2
/* So often it is tried what the least is. */
#define TRY_NS			DT_NSEC_PER_SEC
/* It was not the flushers, and so it is not for so long. */
#define AGAIN_NS		(100 * DT_NSEC_PER_MSEC)
/* Their turn takes so many of those, but no less and no more than this. */
#define THEIRS_FLUSHES		16
#define THEIRS_MIN_NS		(2 * DT_NSEC_PER_MSEC)
#define THEIRS_MAX_NS		(160 * DT_NSEC_PER_MSEC)
#define OURS_MAX_NS		(4 * DT_NSEC_PER_SEC)
/* So much of theirs is in the device at most: 2 MB, and less to go on. */
#define FULL_SECTORS		4096
#define ROOM_SECTORS		2048
/* Whoever commits is gone after so many gaps, but no sooner or later. */
#define GONE_GAPS		4
#define GONE_MIN_NS		DT_NSEC_PER_MSEC
#define GONE_MAX_NS		(100 * DT_NSEC_PER_MSEC)
/* Nobody commits any more. */
#define OVER_NS			(4 * DT_NSEC_PER_SEC)
/* The least is forgotten by this part with each flush. */
#define FORGET_LEAST		256
/* A mean over so many. */
#define MEAN_GAPS		8
/* Weights are looked up no more often than this. */
#define WEIGHTS_NS		(100 * DT_NSEC_PER_MSEC)

void dt_commits_init(struct dt_commits *commits)
{
	*commits = (struct dt_commits) { .phase = DT_COMMITS_IDLE };
	dt_list_init(&commits->queues);
}

/* ---- parking ---- */

static bool is_full(struct dt_commits *commits)
{
	if (commits->sectors >= FULL_SECTORS)
		commits->full = true;
	else if (commits->sectors <= ROOM_SECTORS)
		commits->full = false;
	return commits->full;
}

static bool parks(struct dt_commits *commits)
{
	return commits->phase == DT_COMMITS_SETTLE ||
	       commits->phase == DT_COMMITS_OURS ||
	       ((commits->phase == DT_COMMITS_WATCH ||
		 commits->phase == DT_COMMITS_THEIRS) && is_full(commits));
}

/* After each change of what decides. */
static void review_parked(struct dt_dev *dev)
{
	dt_party_park(dev, &dev->commits.queues, parks(&dev->commits));
}

/* The flushers' queues that have anything in line. */
static void collect(struct dt_dev *dev)
{
	const struct dt_list *pos, *each;
	struct dt_group *grp;
	struct dt_queue *queue;

	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		grp = dt_active_group(pos);
		for (each = grp->queue_list.next; each != &grp->queue_list;
		     each = each->next) {
			queue = DT_CONTAINER(each, struct dt_queue, link);
			if (!queue->sync && queue->ent.nr_queued)
				dt_party_add(&dev->commits.queues, queue);
		}
	}
}

void dt_commits_passed(struct dt_dev *dev, struct dt_item *item)
{
	if (item->dir != DT_WRITE || !item->queue->sync)
		return;
	item->watched = DT_WATCHED_SYNC;
	dev->commits.nr_sync++;
}

void dt_commits_queued(struct dt_dev *dev, struct dt_item *item, u64 now)
{
	struct dt_commits *commits = &dev->commits;
	struct dt_queue *queue = item->queue;

	if (!dt_is_async(queue, item->dir) || item->express) {
		dt_commits_passed(dev, item);
		dt_path_queued(dev, queue, now);
		return;
	}
	dt_party_add(&commits->queues, queue);
	if (parks(commits))
		dt_park_new(dev, queue);
	else
		dt_path_queued(dev, queue, now);
}

void dt_commits_sent(struct dt_dev *dev, struct dt_item *item)
{
	if (!dt_is_async(item->queue, item->dir))
		return;
	dt_party_add(&dev->commits.queues, item->queue);
	item->watched = DT_WATCHED_ASYNC;
	dev->commits.sectors += item->sectors;
	dev->commits.nr_inflight++;
	if (parks(&dev->commits))
		review_parked(dev);
}

void dt_commits_gone(struct dt_dev *dev, struct dt_item *item)
{
	struct dt_commits *commits = &dev->commits;

	if (item->watched == DT_WATCHED_SYNC) {
		commits->nr_sync--;
	} else {
		commits->sectors -= item->sectors;
		commits->nr_inflight--;
		if (commits->phase && dev->parking && !parks(commits))
			review_parked(dev);
	}
	item->watched = DT_WATCHED_NOT;
	dt_dev_derive(dev);
}

/* ---- phases ---- */

static void enter(struct dt_dev *dev, enum dt_commits_phase phase)
{
	struct dt_commits *commits = &dev->commits;

	commits->phase = phase;
	commits->since_ns = dev->clock_ns;
	commits->called = false;
	review_parked(dev);
	dt_dev_derive(dev);
}

static void enter_idle(struct dt_dev *dev)
{
	struct dt_commits *commits = &dev->commits;

	enter(dev, DT_COMMITS_IDLE);
	commits->look_ns = 0;
	dt_party_clear(&commits->queues);
}

static bool is_recent(const struct dt_dev *dev, const struct dt_queue *queue)
{
	return dt_before(dev->clock_ns,
			 queue->think.last_end_ns + DT_NSEC_PER_SEC);
}

/* Whether the group has flushers, and anybody who did not wait for them. */
static void look_for_flushers(const struct dt_dev *dev,
			      const struct dt_group *grp, bool *flushers,
			      bool *others)
{
	const struct dt_queue *queue;
	const struct dt_list *pos;

	*flushers = false;
	*others = false;
	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next) {
		queue = DT_CONTAINER(pos, struct dt_queue, link);
		*flushers |= !queue->sync;
		*others |= queue->sync && is_recent(dev, queue);
	}
}

/*
 * Whether anybody waits for commits but the file system itself, which commits in
 * the root group also for who only writes behind: a group that has written and
 * has no flushers, or somebody in a group that has. Looked up now and then; takes
 * time in proportion to all groups.
 */
static bool somebody_waits(struct dt_dev *dev)
{
	struct dt_commits *commits = &dev->commits;
	bool flushers, others, any = false, ours = false;
	struct dt_list *pos;
	struct dt_group *grp;

	if (dt_before(dev->clock_ns, commits->asked_ns))
		return commits->waits;
	for (pos = dev->groups.next; pos != &dev->groups; pos = pos->next) {
		grp = DT_CONTAINER(pos, struct dt_group, link);
		if (grp == dev->root)
			continue;
		look_for_flushers(dev, grp, &flushers, &others);
		any |= flushers;
		ours |= flushers ? others :
			grp->stats.ios[DT_WRITE] != grp->nr_wrote;
		grp->nr_wrote = grp->stats.ios[DT_WRITE];
	}
	commits->waits = ours || !any;
	commits->asked_ns = dev->clock_ns + WEIGHTS_NS;
	return commits->waits;
}

static bool meters(const struct dt_dev *dev)
{
	return !dev->slice_ns && !dev->fault && dev->tun.idle_ns;
}

/* Whether somebody commits, or did of late. */
static bool is_near(const struct dt_commits *commits, u64 now)
{
	return commits->nr_open ||
	       (commits->ended_ns &&
		dt_before(now, commits->ended_ns + OVER_NS));
}

bool dt_commits_watch(struct dt_dev *dev, u64 now)
{
	if (dev->commits.phase || dev->spells.phase || !meters(dev) ||
	    !is_near(&dev->commits, now))
		return false;
	dt_clock(dev, now);
	if (!somebody_waits(dev))
		return false;
	enter(dev, DT_COMMITS_WATCH);
	dev->commits.look_ns = dev->clock_ns + TRY_NS;
	return true;
}

static void tick_watch(struct dt_dev *dev)
{
	if (is_near(&dev->commits, dev->clock_ns) &&
	    (dev->nr_parked || dev->commits.nr_inflight))
		dev->commits.look_ns = dev->clock_ns + TRY_NS;
	else
		enter_idle(dev);
}

/* How long nobody commits before the flushers go on. */
static u64 gone_ns(const struct dt_commits *commits)
{
	return dt_min(dt_max(GONE_GAPS * commits->gap_ns, GONE_MIN_NS),
		      GONE_MAX_NS);
}

static void enter_theirs(struct dt_dev *dev, bool called)
{
	struct dt_commits *commits = &dev->commits;
	u64 turn = dt_min(dt_max(THEIRS_FLUSHES * commits->least_ns,
				 THEIRS_MIN_NS), THEIRS_MAX_NS);

	/* Nothing of theirs is or was there. */
	if (!dev->nr_parked && !commits->nr_inflight) {
		commits->again_ns = dev->clock_ns + AGAIN_NS;
		enter_idle(dev);
		return;
	}
	enter(dev, DT_COMMITS_THEIRS);
	commits->from_ns = dev->clock_ns;
	commits->called = called;
	commits->look_ns = dev->clock_ns + (called ? OVER_NS : turn);
}

static void enter_settle(struct dt_dev *dev)
{
	struct dt_commits *commits = &dev->commits;

	enter(dev, DT_COMMITS_SETTLE);
	commits->look_ns = dev->clock_ns + gone_ns(commits);
}

static void enter_ours(struct dt_dev *dev)
{
	struct dt_commits *commits = &dev->commits;
	u64 theirs = dev->clock_ns - commits->from_ns;

	if (!somebody_waits(dev)) {
		commits->again_ns = dev->clock_ns + AGAIN_NS;
		enter_idle(dev);
		return;
	}
	if (!dt_before(dev->clock_ns, commits->ratio_ns)) {
		commits->ratio = dt_party_ratio(dev, &commits->queues,
						commits->from_ns,
						1 << DT_RATIO_SHIFT);
		commits->ratio_ns = dev->clock_ns + WEIGHTS_NS;
	}
	theirs -= dt_min(theirs, commits->least_ns);
	theirs = dt_min(theirs, OURS_MAX_NS) * commits->ratio >> DT_RATIO_SHIFT;
	enter(dev, DT_COMMITS_OURS);
	commits->until_ns = dev->clock_ns + dt_min(theirs, OURS_MAX_NS);
	commits->look_ns = dt_min(commits->until_ns,
				  dev->clock_ns + gone_ns(commits));
}

void dt_commits_tick(struct dt_dev *dev)
{
	struct dt_commits *commits = &dev->commits;
	u64 now = dev->clock_ns, gone = commits->ended_ns + gone_ns(commits);

	if (!commits->look_ns || dt_before(now, commits->look_ns))
		return;
	if (commits->phase == DT_COMMITS_WATCH) {
		tick_watch(dev);
		return;
	}
	if (commits->phase == DT_COMMITS_THEIRS) {
		if (commits->nr_open ||
		    (!commits->called &&
		     dt_before(now, commits->ended_ns + OVER_NS)))
			enter_settle(dev);
		else
			enter_idle(dev);
		return;
	}
	if (commits->nr_open || commits->nr_sync)
		gone = now + gone_ns(commits);
	if (commits->phase == DT_COMMITS_OURS &&
	    !dt_before(now, commits->until_ns))
		enter_theirs(dev, false);
	else if (!dt_before(now, gone) ||
		 !dt_before(now, commits->since_ns + OURS_MAX_NS))
		enter_theirs(dev, true);
	else if (commits->phase == DT_COMMITS_OURS)
		commits->look_ns = dt_min(commits->until_ns, gone);
	else
		commits->look_ns = gone;
}

void dt_commit_begin(struct dt_dev *dev, u64 now)
{
	struct dt_commits *commits = &dev->commits;
	u64 gap;

	dt_clock(dev, now);
	if (commits->nr_open++)
		return;
	gap = dt_max(dev->clock_ns - commits->ended_ns, 1);
	/* One that was made to wait, or paused, is not what is usual. */
	if (!commits->gap_ns)
		commits->gap_ns = dt_min(gap, GONE_MIN_NS);
	gap = dt_min(gap, GONE_GAPS * commits->gap_ns);
	commits->gap_ns += (s64)(gap - commits->gap_ns) / MEAN_GAPS;
	/* The commit that they were let go on for. */
	if (commits->phase == DT_COMMITS_THEIRS && commits->called)
		enter_settle(dev);
	dt_dev_update(dev);
}

void dt_commit_end(struct dt_dev *dev, u64 begun_ns, u64 now)
{
	struct dt_commits *commits = &dev->commits;
	u64 took;

	dt_clock(dev, now);
	now = dev->clock_ns;
	commits->nr_open--;
	commits->ended_ns = now;
	took = dt_max(now - dt_later(begun_ns, now - OURS_MAX_NS), 1);
	commits->least_ns += commits->least_ns / FORGET_LEAST;
	if (took < commits->least_ns || !commits->least_ns)
		commits->least_ns = took;
	switch (commits->phase) {
	case DT_COMMITS_IDLE:
	case DT_COMMITS_WATCH:
		if (((took > FLUSH_SLOW * commits->least_ns &&
		      !dt_before(now, commits->again_ns)) ||
		     !dt_before(now, commits->try_ns)) && meters(dev) &&
		    somebody_waits(dev)) {
			commits->from_ns = begun_ns;
			dt_spells_reset(dev);
			collect(dev);
			commits->try_ns = now + TRY_NS;
			enter_settle(dev);
		}
		break;
	case DT_COMMITS_SETTLE:
		if (!dt_before(begun_ns, commits->since_ns))
			enter_ours(dev);
		break;
	default:
		dt_commits_tick(dev);
	}
	dt_dev_update(dev);
}

void dt_commits_reset(struct dt_dev *dev)
{
	if (dev->commits.phase != DT_COMMITS_IDLE)
		enter_idle(dev);
}
