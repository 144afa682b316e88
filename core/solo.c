// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Solos: what a group's requests take where it is alone.
 *
 * What unlike groups do together tells slowly what the requests of each take
 * (cost.c): much of the difference between two windows is noise, and where a
 * window has few large requests most of it. What each does alone tells at once:
 *
 *	its n * cost = T
 *
 * So while groups meet that each could fill the device, now and then one of them
 * has it for itself, until two windows in a row say the same, or three are over.
 * The others lose nothing by that but the time it takes: it is charged, and they
 * have as much next. It is done soon after unlike groups have met, and then in a
 * fortieth of the time. Not where that would take long to make up for (a group
 * that is due little), and it ends where anybody comes or goes.
 *
 * The costs are those that some such spans of each group agree with, all at once. They
 * are what makes equal groups equally slower than alone, whether or not the
 * device does more, or less, for two at a time than for one: only the scale of
 * all charges is taken from what they do together.
 *
 * Where the block layer has so few requests that none of the groups has as many as would
 * fill the device, as with two or more on a drive that takes more than 256, who waits for
 * more counts as if it had them.
 *
 * Who has few requests outstanding does not fill the device, and alone would not
 * show what it takes of it. But what the others do alone, and what all do together,
 * says what they lack when it is there. So where some fill it, and who does not asks
 * for no less than a few, and not for much smaller ones, those that do have solos;
 * and all that is then done together is worth its time as well. Nobody is held back
 * (depth.c) before a few windows of that have been seen. The one that asks for few
 * waits meanwhile: no longer than PARTLY_NS, or than some requests where each takes
 * long, and less often. Where it is not over by then it is tried again after ten
 * seconds, twenty, and so on; on slow drives while it is favoured as well, when it is
 * looked what the others do beside it.
 *
 * Where a device goes on with what one group has left behind while another is
 * alone, as flash with a large cache of writes does for a tenth of a second, it
 * is not alone, and its requests seem to cost what the other's do. So there are
 * none where reads meet writes that are done sooner than any read, but where it
 * was seen that they do well beside them (spell.c). Where all together seem to do
 * more than MOST of a second in each, or less than LEAST, solos are forgotten, and
 * none is made for ten seconds, then twenty, and so on. All is where each of them
 * has something in the device: after a solo that took long others have it alone.
 * Nor does it count while a cache fills that was written while nobody wrote; and as
 * writes behind one are done in bursts, a solo of these has more windows.
 *
 * What it is worth (docs/DESIGN.md has more): 4 KB and 256 KB reads on a flash
 * drive of 1300 reads a second are within a point of their shares in 20 seconds,
 * where it were 16.
 *
 * Rejected: solos of groups that do not fill the device (they say what the
 * group can do, and not what the device could); one window, where what others
 * left behind is taken for cost; each span corrected once (4 KB and 128 KB reads
 * are so alike in their parts that ten rounds of solos are not enough).
 */
#include "cost.h"
#include "depth.h"
#include "entity.h"
#include "lead.h"
#include "solo.h"
#include "written.h"

/* So many windows at most in one. */
#define WINDOWS			3
/* Of writes behind a cache, which come in bursts, while they take no longer. */
#define WINDOWS_CACHED		6
#define CACHED_NS		(60 * DT_NSEC_PER_MSEC)
/* None after so long, where that is slow; or not even one. */
#define ENOUGH_NS		DT_NSEC_PER_SEC
#define LONGEST_NS		(10 * DT_NSEC_PER_SEC)
/* Where others wait who do not fill the device; where each takes long, longer. */
#define PARTLY_NS		(40 * DT_NSEC_PER_MSEC)
#define PARTLY_LOOKS		32
#define PARTLY_STAYS		6
/* Each group's come after so many times what the last one took: the second, */
#define PART_SECOND		4
/* some more, */
#define SOLOS_EARLY		4
#define PART_EARLY		16
/* and from then on, */
#define PART			40
/* or where others wait who do not fill it. */
#define PART_PARTLY		200
/* These have so many requests outstanding, of this part of the others' size. */
#define LITTLE_LEAST		4
#define SIZE_PART		4
/* Then so many windows with nobody held back, and it is solved after some. */
#define OPEN			4
#define OPEN_ENOUGH		2
/* None with more groups than that, or with one that is due less; 2^-16. */
#define GROUPS			16
#define LEAST_SHARE		(65536 / 16)
/* The others' right to as much, if all they have is in the device meanwhile. */
#define OWED_MOST_NS		(100 * DT_NSEC_PER_MSEC)
/* For so many times as long: who is due least has it by then. */
#define OWED_PART		16
/* If it may not be it is looked at again after, and if one came to nothing. */
#define RETRY_NS		(10 * DT_NSEC_PER_MSEC)
#define AGAIN_NS		(100 * DT_NSEC_PER_MSEC)

/* What all together may seem to do of what the device does in a second; 2^-16. */
#define MOST			(65536 * 5 / 4)
#define LEAST			(65536 / 2)
/* Where turns (spell.c) do not pay: so readers and writers do more together. */
#define MOST_BOTH		(65536 * 5 / 2)
/* Of so many windows. */
#define TOGETHER		8
#define TOGETHER_SHIFT		3
/* If it is something else. */
#define OFF_NS			(10 * DT_NSEC_PER_SEC)
#define OFF_MOST_NS		(320 * DT_NSEC_PER_SEC)

void dt_solo_init(struct dt_dev *dev)
{
	struct dt_solo *solo = &dev->solo;
	u32 round = solo->round;

	*solo = (struct dt_solo) {
		.round = round + 1,
		.next_ns = dev->clock_ns,
		.off_ns = OFF_NS,
		.partly_ns = dev->clock_ns,
		.partly_off_ns = OFF_NS,
	};
}

static u32 outstanding(const struct dt_group *grp)
{
	return grp->own->nr_queued + grp->own->nr_inflight;
}

/*
 * There are requests enough to fill the device, but not half of it with those of each,
 * and it has some of them and waits for others (gate.c). How many it could use is seen
 * when it is alone: then it has those that the others have in the device.
 */
static bool waits_for_more(const struct dt_dev *dev, const struct dt_group *grp)
{
	u32 held = dev->nr_queued + dev->nr_granted + dev->nr_inflight;

	return grp->own->nr_waiting && dev->tags >= dev->depth &&
	       2ull * dev->tags <= (u64)dev->nr_active * dev->depth &&
	       outstanding(grp) >= LITTLE_LEAST &&
	       dt_is_full(held, dev->depth);
}

/* It has all that the device takes, however few are let in. */
static bool fills(const struct dt_dev *dev, const struct dt_group *grp)
{
	u32 depth = dt_max(dt_asked(dev), dt_min(dev->depth_hw, DT_LITTLE));

	return dt_is_full(outstanding(grp), depth) || waits_for_more(dev, grp);
}

bool dt_solo_all_may(const struct dt_dev *dev)
{
	const struct dt_list *pos;

	if (dev->nr_active < 2 || dev->nr_active > GROUPS)
		return false;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		if (!fills(dev, dt_active_group(pos)) ||
		    dt_share_of(dt_active_group(pos)) < LEAST_SHARE)
			return false;
	return true;
}

static u64 mean_sectors(const struct dt_group *grp)
{
	const struct dt_stats *stats = &grp->stats;
	u64 ios = stats->ios[DT_READ] + stats->ios[DT_WRITE];

	return dt_div(stats->sectors[DT_READ] + stats->sectors[DT_WRITE],
		      dt_max(ios, 1));
}

/* It fills the device, and who does not asks for more than a little. */
static bool may_partly(const struct dt_dev *dev, const struct dt_group *grp)
{
	const struct dt_group *other;
	const struct dt_list *pos;

	if (dev->nr_active < 2 || dev->nr_active > GROUPS || !fills(dev, grp) ||
	    dt_before(dev->clock_ns, dev->solo.partly_ns))
		return false;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		other = dt_active_group(pos);
		if (outstanding(other) + 1 < LITTLE_LEAST ||
		    SIZE_PART * mean_sectors(other) < mean_sectors(grp) ||
		    dt_share_of(other) < LEAST_SHARE)
			return false;
	}
	return true;
}

static bool is_known(const struct dt_dev *dev, const struct dt_group *grp)
{
	return grp->solo_round == dev->solo.round ||
	       (dev->solo.partly && !fills(dev, grp) &&
		outstanding(grp) + 1 >= LITTLE_LEAST);
}

static bool all_known(const struct dt_dev *dev)
{
	const struct dt_list *pos;

	if (dev->nr_active > GROUPS ||
	    dev->solo.nr_spans < (dev->solo.partly ? 1 : 2))
		return false;
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		if (!is_known(dev, dt_active_group(pos)))
			return false;
	return true;
}

/* Who waits for what it had too much of has no part in what is done meanwhile. */
static bool all_served(const struct dt_dev *dev)
{
	const struct dt_list *pos;

	for (pos = dev->active.next; pos != &dev->active; pos = pos->next)
		if (!dt_active_group(pos)->own->nr_inflight)
			return false;
	return true;
}

/* Writes are done before they are written, and the rest is done beside reads. */
bool dt_solo_leaves_behind(const struct dt_dev *dev)
{
	return dt_load_both(&dev->fit.load) && dt_has_cache(dev);
}

void dt_solo_unwritten(struct dt_dev *dev, u64 ns)
{
	dev->solo.calm_ns = dt_later(dev->solo.calm_ns, dev->clock_ns + ns);
}

bool dt_solo_is_due(const struct dt_dev *dev, const struct dt_group *grp)
{
	const struct dt_light *light = &dev->light;

	return dev->by_cost && dev->fit.dither && dev->plain &&
	       (!light->grp || (light->freeing && light->slowly)) &&
	       !light->probing &&
	       dev->limit == dev->depth && !dev->solo.behind &&
	       !dt_before(dev->clock_ns, dev->solo.next_ns) &&
	       !dt_before(dev->clock_ns, grp->solo_ns);
}

static void keep_costs(u64 to[DT_NR_DIRS], const u64 from[DT_NR_DIRS])
{
	to[DT_READ] = from[DT_READ];
	to[DT_WRITE] = from[DT_WRITE];
}

/*
 * How long others wait who do not fill the device. Before they were judged it is not
 * known how long all takes there, but that each of these stays for @stay_ns.
 */
static u64 partly_most(const struct dt_dev *dev, u64 stay_ns)
{
	u64 more = dev->light.look_ns - DT_NSEC_PER_MSEC;

	return dt_min(dt_max(PARTLY_NS + PARTLY_LOOKS * more,
			     PARTLY_STAYS * stay_ns), ENOUGH_NS);
}

bool dt_solo_begin(struct dt_dev *dev, struct dt_group *grp, u64 stay_ns)
{
	bool partly = !dt_solo_all_may(dev);
	struct dt_solo *solo = &dev->solo;

	if (!partly && (dev->light.on || dev->light.grp))
		return false;
	if (partly && !may_partly(dev, grp)) {
		solo->next_ns = dev->clock_ns + RETRY_NS;
		return false;
	}
	if (!solo->nr_spans) {
		keep_costs(solo->base, dev->fit.base);
		keep_costs(solo->sector, dev->fit.sector);
	}
	solo->grp = grp;
	solo->partly = partly;
	solo->quiet = false;
	solo->done = false;
	solo->nr_active = dev->nr_active;
	solo->outstanding = dt_min(outstanding(grp), dev->depth);
	solo->windows = 0;
	solo->from_ns = dev->clock_ns;
	solo->most_ns = partly_most(dev, stay_ns);
	dev->light.first = grp;
	dev->limit = 0;
	/* No window until the others' are done. */
	dev->fit.settle = dev->depth;
	return true;
}

static void end_solo(struct dt_dev *dev)
{
	struct dt_solo *solo = &dev->solo;
	struct dt_group *grp = solo->grp;
	u64 took = dev->clock_ns - solo->from_ns;

	grp->nr_solos += grp->nr_solos < SOLOS_EARLY;
	grp->solo_ns = dev->clock_ns +
		       took * (!solo->done ? PART :
			       grp->nr_solos == 1 ? PART_SECOND :
			       grp->nr_solos < SOLOS_EARLY ? PART_EARLY :
			       solo->partly ? PART_PARTLY : PART);
	/* The others first have as much. */
	solo->next_ns = dt_later(solo->next_ns, dev->clock_ns +
				 (solo->done ? took : took + AGAIN_NS));
	/* Where there are writes the drive goes on with those in another's time. */
	solo->owed_ns = solo->span.load.nr[DT_WRITE] || dev->spells.both ?
			0 : dt_min(took, OWED_MOST_NS);
	solo->owed_until_ns = dev->clock_ns + OWED_PART * took;
	solo->over_ns = dev->clock_ns;
	if (dt_has_cache(dev) && !solo->span.load.nr[DT_WRITE])
		dt_solo_unwritten(dev, took);
	solo->grp = NULL;
	solo->nr_open = solo->partly && solo->done ? OPEN : 0;
	dev->light.first = dev->light.grp;
	dev->limit = dev->depth;
	dev->fit.settle = dev->nr_inflight + 1;
}

/* What groups do alone is not what they cost here. */
static void forget(struct dt_dev *dev)
{
	struct dt_solo *solo = &dev->solo;

	keep_costs(dev->fit.base, solo->base);
	keep_costs(dev->fit.sector, solo->sector);
	solo->nr_spans = 0;
	solo->known = false;
	solo->partly = false;
	solo->round++;
	solo->next_ns = dev->clock_ns + solo->off_ns;
	solo->off_ns = dt_min(2 * solo->off_ns, OFF_MOST_NS);
}

static void begin_together(struct dt_dev *dev)
{
	struct dt_solo *solo = &dev->solo;

	solo->together = (struct dt_span) { 0 };
	solo->nr_together = 0;
	solo->nr_then = dev->nr_active;
}

/* What was seen of solos does not say what others take, but this does. */
static void solve_together(struct dt_dev *dev)
{
	struct dt_solo *solo = &dev->solo;
	u32 nr = dt_min(solo->nr_spans, DT_SOLO_SPANS);

	solo->spans[nr] = solo->together;
	dt_fit_solve(&dev->fit, solo->spans, nr + 1);
}

void dt_solo_others(struct dt_dev *dev, const struct dt_load *load, u64 busy_ns)
{
	struct dt_solo *solo = &dev->solo;
	u64 worth, most;

	solo->behind = (dt_solo_leaves_behind(dev) && !dev->spells.failed) ||
		       dt_is_written(dev);
	solo->known = !dt_is_written(dev) && all_known(dev);
	if (solo->nr_open)
		solo->nr_open--;
	if (!solo->known || dev->fit.starved || dev->fit.limited ||
	    !all_served(dev) || dt_before(dev->clock_ns, solo->calm_ns))
		return;
	/* Who does something else now is not told by what was done then. */
	if (solo->nr_then != dev->nr_active)
		begin_together(dev);
	dt_span_add(&solo->together, load, busy_ns, TOGETHER_SHIFT);
	solo->nr_together++;
	if (solo->partly && solo->nr_together >= OPEN_ENOUGH)
		solve_together(dev);
	if (solo->nr_together < TOGETHER)
		return;
	/* Solved for both, one of them is far off where they do not agree. */
	worth = dt_span_worth(&dev->fit, solo->partly ? &solo->spans[0] :
							&solo->together);
	most = dev->spells.failed && dev->spells.both ? MOST_BOTH : MOST;
	if (worth > most || worth < LEAST)
		forget(dev);
}

static bool agree(u64 a, u64 b)
{
	return 8 * a < 9 * b && 8 * b < 9 * a;
}

/* So many windows are enough, where the last two are alike or are not. */
static u32 enough_windows(const struct dt_dev *dev, const struct dt_load *load,
			  bool alike)
{
	bool bursts = load->nr[DT_WRITE] && dev->spells.both && dt_has_cache(dev) &&
		      dev->clock_ns - dev->solo.from_ns < CACHED_NS;

	return bursts ? WINDOWS_CACHED : alike ? 2 : WINDOWS;
}

/*
 * Which span is given up for one more of @grp: the oldest of those that are gone, or
 * of the group that has most. What takes little time is looked at more often, and
 * would else be all that is known.
 */
static u32 span_for(const struct dt_solo *solo, const struct dt_group *grp)
{
	u32 i, k, nr, most = 0, found = 0;

	if (solo->nr_spans < DT_SOLO_SPANS)
		return solo->nr_spans;
	for (i = 0; i < DT_SOLO_SPANS; i++) {
		nr = solo->whose[i] == grp;
		for (k = 0; k < DT_SOLO_SPANS; k++)
			nr += solo->whose[k] == solo->whose[i];
		if (!solo->whose[i] || dt_list_empty(&solo->whose[i]->active))
			nr = DT_SOLO_SPANS + 1;
		if (nr > most ||
		    (nr == most && solo->nth[i] < solo->nth[found])) {
			most = nr;
			found = i;
		}
	}
	return found;
}

static void keep_span(struct dt_solo *solo, struct dt_group *grp)
{
	u32 i = span_for(solo, grp);

	solo->spans[i] = solo->span;
	solo->whose[i] = grp;
	solo->nth[i] = solo->nr_spans++;
}

void dt_solo_forget(struct dt_dev *dev, const struct dt_group *grp)
{
	struct dt_solo *solo = &dev->solo;
	u32 i;

	if (solo->grp == grp)
		end_solo(dev);
	for (i = 0; i < DT_SOLO_SPANS; i++)
		if (solo->whose[i] == grp)
			solo->whose[i] = NULL;
}

void dt_solo_window(struct dt_dev *dev, const struct dt_load *load, u64 busy_ns)
{
	struct dt_solo *solo = &dev->solo;
	struct dt_span now = { .load = *load, .busy_ns = busy_ns };
	u64 worth = dt_span_worth(&dev->fit, &now), then = solo->worth;

	solo->worth = worth;
	/* The first may have been others', too. */
	if (!solo->windows || (solo->windows == 1 && !agree(worth, then)))
		solo->span = (struct dt_span) { 0 };
	dt_load_add(&solo->span.load, load);
	solo->span.busy_ns += busy_ns;
	/* Half of what it can have by now, or it does not fill the device. */
	if (!solo->windows)
		solo->outstanding = dt_min(dt_asked(dev), dev->tags -
					   (dev->nr_queued -
					    solo->grp->own->nr_queued));
	/* What has begun is not given up for the little that is missing. */
	if (!solo->windows++)
		solo->most_ns = dt_max(solo->most_ns,
				       dt_min(dev->clock_ns - solo->from_ns +
					      WINDOWS * busy_ns, ENOUGH_NS));
	if (solo->windows < enough_windows(dev, load, agree(worth, then)) &&
	    dev->clock_ns - solo->from_ns < ENOUGH_NS)
		return;
	solo->done = true;
	if (solo->partly)
		solo->partly_off_ns = OFF_NS;
	solo->grp->solo_round = solo->round;
	keep_span(solo, solo->grp);
	dt_fit_solve(&dev->fit, solo->spans,
		     dt_min(solo->nr_spans, DT_SOLO_SPANS));
	solo->known = all_known(dev);
	begin_together(dev);
}

void dt_solo_note(struct dt_dev *dev)
{
	struct dt_solo *solo = &dev->solo;
	const struct dt_group *grp = solo->grp;
	u64 took = dev->clock_ns - solo->from_ns;

	if (solo->done || solo->nr_active != dev->nr_active ||
	    2 * (outstanding(grp) + 1) < solo->outstanding ||
	    took > LONGEST_NS) {
		end_solo(dev);
	} else if (solo->partly && took > solo->most_ns) {
		solo->partly_ns = dev->clock_ns + solo->partly_off_ns;
		solo->partly_off_ns = dt_min(2 * solo->partly_off_ns,
					     OFF_MOST_NS);
		end_solo(dev);
	} else if (!solo->quiet) {
		solo->quiet = dev->nr_inflight == grp->own->nr_inflight;
		dev->fit.settle = solo->quiet ? 1 : dev->depth;
	}
}
