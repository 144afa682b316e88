// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Costs: what requests take of a device that serves many at once.
 *
 * Model. A request of s sectors takes
 *
 *	cost = base[direction] + sector[direction] * s
 *
 * of the device's capacity, which is one second a second. While there is more
 * to do than the device takes, all that it completes in a window of T seconds
 * was worth T:
 *
 *	sum over the window of n * cost = T
 *
 * Four unknowns, a window an equation, and nobody has to install or calibrate
 * anything: the machine's own load teaches it.
 *
 * Two corrections are made after each window, both relative and bounded:
 * - along the window itself (the scale of all costs), if what it held is worth
 *   more or less than it lasted;
 * - along the difference between this window and the one before. Both lasted
 *   as long, in one there was more of this and in the other more of that: that
 *   is the rate at which the device exchanges the one for the other. It is the
 *   rate that matters to those who share it, and costs nothing but what it
 *   measures: requests that were begun in one window and completed in the next
 *   fall out, the transition is left out of both.
 *
 * Dither. A load that never changes teaches the scale and no more. So while
 * unlike requests meet, each group is charged 3/2 of its costs in one window
 * and 2/3 in another, in turns, half of the groups the other way around. What
 * was charged beyond the costs is a debt (dither_ns) whose sign decides the
 * next turn, so that it is paid back; shares hold over two windows, some 20 ms
 * on a fast device.
 *
 * Neither is done while all had the device for themselves for a moment, which
 * tells more (solo.c).
 *
 * What it is worth (docs/DESIGN.md has more): 4 KB reads against 128 KB writes,
 * both 256 deep, on flash without a cache: 0.45 and 0.43 of what each does
 * alone, where overlap gives 0.08 and 0.86.
 *
 * Rejected: ordinary least squares over all windows (unstable where the mix
 * does not change, and it forgets too slowly where it does); one cost for each
 * group (256 groups that do the same would each have to learn it).
 */
#include "cost.h"
#include "lead.h"
#include "solo.h"
#include "spell.h"
#include "wide.h"
#include "written.h"

/* First guess on a device of which nothing is known. */
#define BASE_UNKNOWN_NS		(100 * DT_NSEC_PER_USEC)
/* So many sectors cost as much again as the request itself, by that guess. */
#define SECTORS_A_BASE		32

/* A window has at least so much busy time, and so many requests. */
#define WINDOW_NS		(5 * DT_NSEC_PER_MSEC)
#define WINDOW_ITEMS		64
/* Of one group alone a quarter of these will do after so long. */
#define SLOW_WINDOW_NS		(16 * WINDOW_NS)
/* While somebody is held back so many looks at the depth will do. */
#define LIMITED_LOOKS		20

/* So many windows are learned from in large steps. */
#define WINDOWS_COARSE		8
#define WINDOWS_FINE		64

/* With costs so many times too high or low all begins anew. */
#define FAR_OFF			3
/* And so far what is done while nobody is held back, which varies more. */
#define FREE_FAR_OFF		6

/* Fractions are in 2^-16. */
#define ONE			(1 << 16)
/* A direction in which costs lie closer than this to 0 is not moved along. */
#define SQUARE_MIN		(ONE / 64)
/* 67 ms: no product with what a window holds, or with a scale, is near 2^63. */
#define COST_MAX		(1ll << 34)
/* No cost changes by more than this in one window. */
#define STEP_MAX		(ONE / 4)
/* So often is gone over what is to be solved; so many steps in all. */
#define SOLVE_ROUNDS		16
#define SOLVE_STEPS		80

void dt_fit_init(struct dt_fit *fit)
{
	int dir;

	*fit = (struct dt_fit) {
		.scale = 1 << DT_SCALE_SHIFT,
		.kept = ONE,
		.least = ~0u,
	};
	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		fit->base[dir] = BASE_UNKNOWN_NS << DT_COST_SHIFT;
		fit->sector[dir] = fit->base[dir] / SECTORS_A_BASE;
	}
}

static s64 clamp(s64 value, s64 least, s64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* At most 2^24, so that products of two fit. */
static s64 fraction(u64 part, u64 whole)
{
	while (part >> 40) {
		part >>= 1;
		whole >>= 1;
	}
	return (s64)dt_min(dt_div(part << 16, dt_max(whole, 1)), 1u << 24);
}

/* What it is worth, by the costs as they are. */
static u64 worth(const struct dt_fit *fit, const struct dt_load *load)
{
	u64 sum = 0;
	int dir;

	for (dir = 0; dir < DT_NR_DIRS; dir++)
		sum += (fit->base[dir] * load->nr[dir] +
			fit->sector[dir] * load->sectors[dir]) >> DT_COST_SHIFT;
	return sum;
}

u64 dt_span_worth(const struct dt_fit *fit, const struct dt_span *span)
{
	return (u64)fraction(worth(fit, &span->load), span->busy_ns);
}

/* What is left of it when 2^-@shift of it is forgotten. */
static u64 faded(u64 value, int shift)
{
	return (value * ((1u << shift) - 1)) >> shift;
}

void dt_span_add(struct dt_span *span, const struct dt_load *load, u64 busy_ns,
		 int shift)
{
	int dir;

	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		span->load.nr[dir] = faded(span->load.nr[dir], shift) +
				     load->nr[dir];
		span->load.sectors[dir] = faded(span->load.sectors[dir],
						shift) + load->sectors[dir];
	}
	span->busy_ns = faded(span->busy_ns, shift) + busy_ns;
}

/* Each cost's part of the time. */
static s64 parts(const struct dt_fit *fit, const struct dt_load *load,
		 u64 busy_ns, s64 part[DT_NR_DIRS][DT_NR_COSTS])
{
	s64 sum = 0;
	int dir;

	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		part[dir][0] = fraction((fit->base[dir] * load->nr[dir]) >>
					DT_COST_SHIFT, busy_ns);
		part[dir][1] = fraction((fit->sector[dir] *
					 load->sectors[dir]) >> DT_COST_SHIFT,
					busy_ns);
		sum += part[dir][0] + part[dir][1];
	}
	return sum;
}

static u64 *cost_at(struct dt_fit *fit, int dir, int i)
{
	return i ? &fit->sector[dir] : &fit->base[dir];
}

/* Move the costs along @way so that the @error would be gone, by 2^-@shift. */
static void move_costs(struct dt_fit *fit, s64 way[DT_NR_DIRS][DT_NR_COSTS],
		       s64 error, int shift)
{
	s64 square = 0, step;
	int dir, i;
	u64 *cost;

	for (dir = 0; dir < DT_NR_DIRS; dir++)
		for (i = 0; i < DT_NR_COSTS; i++)
			square += (way[dir][i] * way[dir][i]) >> 16;
	if (square < SQUARE_MIN)
		return;
	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		for (i = 0; i < DT_NR_COSTS; i++) {
			step = clamp((error * way[dir][i] / square) >> shift,
				     -STEP_MAX, STEP_MAX);
			cost = cost_at(fit, dir, i);
			step = (s64)(*cost >> 16) * step +
			       (((s64)(*cost & 0xffff) * step) >> 16);
			*cost = clamp((s64)*cost + step, 1, COST_MAX);
		}
	}
}

/* Too far off for small steps: of all costs, or of these, the scale is right. */
static void rescale(struct dt_fit *fit, u64 scale, const struct dt_load *of)
{
	int dir, i;
	u64 *cost;

	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		if (of && !of->nr[dir])
			continue;
		for (i = 0; i < DT_NR_COSTS; i++) {
			cost = cost_at(fit, dir, i);
			*cost = clamp((*cost * scale) >> 16, 1, COST_MAX);
		}
	}
}

static bool is_far_off(s64 sum)
{
	return sum < ONE / FAR_OFF || sum > FAR_OFF * ONE;
}

/* Large steps first, then small ones: the mean of so many windows. */
static int gain(const struct dt_fit *fit)
{
	return fit->windows < WINDOWS_COARSE ? 0 :
	       fit->windows < WINDOWS_FINE ? 1 : 2;
}

/*
 * What is left to those who are held back, of what they have where they are
 * not: by whatever costs, as both are the same requests. And of what they do
 * alone, where costs are such that this is all of the time.
 */
static void note_heavy(struct dt_fit *fit, u64 busy_ns, bool known)
{
	struct dt_free *free = &fit->free;
	struct dt_load heavy;
	u64 now;
	int dir;

	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		heavy.nr[dir] = fit->load.nr[dir] - fit->light.nr[dir];
		heavy.sectors[dir] = fit->load.sectors[dir] -
				     fit->light.sectors[dir];
	}
	now = fraction(worth(fit, &heavy), busy_ns);
	if (known && !fit->starved)
		fit->alone = (u32)dt_max(fit->alone ? (3 * fit->alone + now) / 4 :
						      now, 1);
	else if (!known)
		fit->alone = 0;
	if (!fit->limited) {
		/* A cache has filled: what it took before says nothing. */
		if (free->windows &&
		    FREE_FAR_OFF * now < dt_span_worth(fit, &free->heavy))
			*free = (struct dt_free) { 0 };
		dt_span_add(&free->heavy, &heavy, busy_ns, 2);
		free->nr_light = free->nr_light * 3 / 4 +
				 dt_load_nr(&fit->light);
		free->windows++;
		fit->kept = ONE;
		return;
	}
	now = dt_min(dt_div(now << 16,
			    dt_max(dt_span_worth(fit, &free->heavy), 1)),
		     4 * ONE);
	fit->kept = (u32)dt_max(fit->kept ? (fit->kept + now) / 2 : now, 1);
}

/* One after the other, over and over: what is alike in two is found slowly. */
void dt_fit_solve(struct dt_fit *fit, const struct dt_span *spans, u32 nr)
{
	s64 part[DT_NR_DIRS][DT_NR_COSTS], sum;
	const struct dt_span *span;
	u32 i;

	for (i = 0; i < nr; i++) {
		span = &spans[i];
		if (is_far_off((s64)dt_span_worth(fit, span)))
			rescale(fit, (u64)fraction(span->busy_ns,
						   worth(fit, &span->load)),
				&span->load);
	}
	for (i = 0; i < dt_min(SOLVE_ROUNDS * nr, SOLVE_STEPS); i++) {
		sum = parts(fit, &spans[i % nr].load, spans[i % nr].busy_ns,
			    part);
		move_costs(fit, part, ONE - dt_min(sum, 2 * ONE), 0);
	}
	fit->windows++;
	fit->paired = false;
}

static void learn(struct dt_fit *fit, u64 busy_ns)
{
	s64 part[DT_NR_DIRS][DT_NR_COSTS], way[DT_NR_DIRS][DT_NR_COSTS];
	s64 sum = 0, then;
	int dir, i;
	u64 before;

	/*
	 * Held back, the device says nothing of what it could have done; but
	 * more than all of it was not done, noise aside.
	 */
	if (fit->limited) {
		sum = fraction(worth(fit, &fit->load), busy_ns);
		if (!fit->windows || sum < ONE + ONE / 16) {
			fit->paired = false;
			return;
		}
	}
	sum = fraction(worth(fit, &fit->load), busy_ns);
	/* A cache has filled, or there is none. */
	if (!fit->windows++ || is_far_off(sum)) {
		rescale(fit, (u64)fraction(busy_ns, worth(fit, &fit->load)),
			NULL);
		fit->paired = false;
		return;
	}
	sum = 0;
	parts(fit, &fit->load, busy_ns, part);
	if (fit->paired) {
		for (dir = 0; dir < DT_NR_DIRS; dir++) {
			for (i = 0; i < DT_NR_COSTS; i++) {
				before = dt_max(fit->cost_then[dir][i], 1);
				then = fraction(dt_div((u64)fit->part[dir][i] *
					*cost_at(fit, dir, i), before), ONE);
				way[dir][i] = part[dir][i] - then;
				sum += way[dir][i];
			}
		}
		move_costs(fit, way, -clamp(sum, -ONE, ONE), gain(fit));
	}
	sum = parts(fit, &fit->load, busy_ns, part);
	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		for (i = 0; i < DT_NR_COSTS; i++) {
			fit->part[dir][i] = part[dir][i];
			fit->cost_then[dir][i] = *cost_at(fit, dir, i);
		}
	}
	fit->paired = true;
	move_costs(fit, part, ONE - dt_min(sum, 2 * ONE), gain(fit));
}

void dt_fit_forget_free(struct dt_dev *dev)
{
	dev->fit.free = (struct dt_free) { 0 };
	dev->fit.settle = dev->nr_inflight + 1;
}

static void next_window(struct dt_dev *dev)
{
	struct dt_fit *fit = &dev->fit;

	if (dt_is_written(dev))
		dt_written_count(dev, DT_WRITE, fit->load.nr[DT_WRITE],
				 fit->load.sectors[DT_WRITE]);
	fit->load = (struct dt_load) { 0 };
	fit->light = (struct dt_load) { 0 };
	fit->busy_from_ns = dev->busy_ns;
	fit->idle_ns = 0;
	fit->starved = false;
	fit->limited = false;
	fit->least = ~0u;
	fit->most = 0;
}

static void end_window(struct dt_dev *dev, u64 busy_ns)
{
	struct dt_fit *fit = &dev->fit;
	bool known;
	s64 scale;

	if (dev->solo.grp) {
		dt_written_end(dev);
		dt_solo_window(dev, &fit->load, busy_ns);
		next_window(dev);
		return;
	}
	/* Reads alone, and writes that are not written. */
	if (dev->spells.phase) {
		dt_written_end(dev);
		fit->dither = false;
		fit->paired = false;
		next_window(dev);
		return;
	}
	dev->spells.both = dt_load_both(&fit->load);
	note_heavy(fit, busy_ns + fit->idle_ns, dev->solo.known && dev->light.grp);
	known = dt_written_window(dev, &fit->load, busy_ns);
	dt_solo_others(dev, &fit->load, busy_ns);
	if (fit->starved || known)
		fit->paired = false;
	else if (!dev->solo.known)
		learn(fit, busy_ns);
	fit->alike = !dt_load_both(&fit->load) && fit->least == fit->most;
	dt_wide_window(dev, dt_load_nr(&fit->load), busy_ns);
	/* Only unlike requests can be told apart, and need to be. */
	fit->dither = !fit->starved && !fit->alike;
	scale = fraction(busy_ns, worth(fit, &fit->load));
	scale = dt_written_settled(dev) ? ONE : dt_is_written(dev) ?
		(15 * (s64)fit->scale + scale) / 16 : (fit->scale + scale) / 2;
	fit->scale = (u32)clamp(scale, ONE / 256, 256 * ONE);
	fit->window++;
	/* Until what was begun before has passed through. */
	fit->settle = fit->limited ? 1 : dev->nr_inflight + 1;
}

/* The same while somebody goes first, before it is noted. */
noinline void dt_fit_note_light(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_fit *fit = &dev->fit;

	/* While hardly anything is let through there is nothing to learn. */
	if (dev->light.probing)
		fit->settle = dev->depth;
	if (fit->settle)
		return;
	/* While fewer are there than are let in nobody is held back. */
	fit->limited |= dev->limit < dev->depth &&
			dev->nr_heavy + !item->light >= dev->limit;
	if (item->light) {
		fit->light.nr[item->dir]++;
		fit->light.sectors[item->dir] +=
			dt_min(item->sectors, DT_COST_SECTORS);
	}
}

dt_inline void dt_fit_note(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_fit *fit = &dev->fit;
	u32 sectors = dt_min(item->sectors, DT_COST_SECTORS);
	u64 busy_ns, items, enough;
	bool slow;

	if (unlikely(fit->settle)) {
		if (unlikely(dt_is_written(dev)))
			dt_written_count(dev, item->dir, 1, sectors);
		if (!--fit->settle)
			next_window(dev);
		return;
	}
	fit->load.nr[item->dir]++;
	fit->load.sectors[item->dir] += sectors;
	if (unlikely(sectors != fit->least)) {
		fit->least = dt_min(fit->least, sectors);
		fit->most = dt_max(fit->most, sectors);
		if (dt_is_wide(dev) && fit->least != fit->most)
			dt_wide_end(dev);
	}
	/* It was full until now, but for a few, or somebody waits. */
	if (!dev->nr_queued && !dt_is_full(dev->nr_inflight, dt_asked(dev)))
		fit->starved = true;
	busy_ns = dev->busy_ns - fit->busy_from_ns;
	if (likely(busy_ns < WINDOW_NS))
		return;
	/* Where each takes long they come in rounds, of which there are to be some. */
	slow = busy_ns >= SLOW_WINDOW_NS;
	enough = WINDOW_ITEMS;
	if (slow && dev->light.on && dev->light.slowly)
		enough = (dev->light.freeing ? 4 : 2) * WINDOW_ITEMS;
	else if (slow && dev->light.freeing)
		enough = DT_FREE_ENOUGH + (u32)dt_load_nr(&fit->light);
	items = dt_load_nr(&fit->load);
	/* Of one group alone as much is in flight at its end as was before. */
	if (dev->solo.grp ?
	    items >= dt_max(slow ? WINDOW_ITEMS / 4 : WINDOW_ITEMS,
			    dev->nr_inflight) :
	    !fit->limited ?
	    items >= dt_max(enough, 2 * dev->nr_inflight) :
	    items - dt_load_nr(&fit->light) >= (slow ? enough : enough / 2) ||
	    busy_ns > LIMITED_LOOKS * dev->light.look_ns)
		end_window(dev, busy_ns);
}

static noinline s64 dither(struct dt_dev *dev, struct dt_group *grp, u64 cost_ns)
{
	s64 up = (s64)(cost_ns / 2), down = -(s64)(cost_ns / 3), more, most;

	if (!dev->fit.dither || dev->solo.known) {
		more = clamp(-grp->dither_ns, down, up);
	} else if (dt_is_written(dev)) {
		if (grp->dither_window != dev->written.serial) {
			grp->dither_window = dev->written.serial;
			grp->dithered_up = dt_written_up(dev, grp);
		}
		/* With as much charged in either that comes to nothing. */
		more = grp->dithered_up ? up : -(s64)(cost_ns / 4);
	} else {
		if (grp->dither_window != dev->fit.window) {
			grp->dither_window = dev->fit.window;
			grp->dither_from_ns = dev->busy_ns;
			grp->dithered_up = grp->dither_ns ?
					   grp->dither_ns < 0 : grp->odd;
		}
		more = grp->dithered_up ? up : down;
		/* No more than all that can have been charged meanwhile. */
		most = (s64)(WINDOW_NS + dev->busy_ns - grp->dither_from_ns);
		if (more > 0 ? grp->dither_ns > most : grp->dither_ns < -most)
			more = 0;
	}
	grp->dither_ns += more;
	return more;
}

dt_inline s64 dt_dither(struct dt_dev *dev, struct dt_group *grp, u64 cost_ns)
{
	/* Mostly requests are alike, and nothing is owed. */
	return dev->fit.dither || grp->dither_ns ? dither(dev, grp, cost_ns) :
						   0;
}
