// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "cost.h"

/* First guess on a device of which nothing is known. */
#define BASE_UNKNOWN_NS		(100 * DT_NSEC_PER_USEC)
/* So many sectors cost as much again as the request itself, by that guess. */
#define SECTORS_A_BASE		32

#define WINDOW_NS		(5 * DT_NSEC_PER_MSEC)
#define WINDOW_ITEMS		64

#define ONE			(1 << 16)

void dt_fit_init(struct dt_fit *fit)
{
	int dir;

	*fit = (struct dt_fit) { .scale = 1 << DT_SCALE_SHIFT, .used = ONE };
	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		fit->base[dir] = BASE_UNKNOWN_NS << DT_COST_SHIFT;
		fit->sector[dir] = fit->base[dir] / SECTORS_A_BASE;
	}
}

/* 2^-16 */
static s64 fraction(u64 part, u64 whole)
{
	while (part >> 40) {
		part >>= 1;
		whole >>= 1;
	}
	return (s64)dt_div(part << 16, dt_max(whole, 1));
}

static void adjust(u64 *cost, s64 change)
{
	s64 step = (s64)(*cost >> 16) * change + (((s64)(*cost & 0xffff) * change) >> 16);

	*cost = dt_max((u64)((s64)*cost + step), 1);
}

static void move(struct dt_fit *fit, s64 x[DT_NR_DIRS][2], s64 error, int shift)
{
	s64 square = 0, change;
	int dir, i;

	for (dir = 0; dir < DT_NR_DIRS; dir++)
		for (i = 0; i < 2; i++)
			square += (x[dir][i] * x[dir][i]) >> 16;
	if (square < ONE / 64)
		return;
	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		for (i = 0; i < 2; i++) {
			change = (error * x[dir][i] / square) >> shift;
			change = change > ONE / 4 ? ONE / 4 :
				 change < -ONE / 4 ? -ONE / 4 : change;
			adjust(i ? &fit->sector[dir] : &fit->base[dir], change);
		}
	}
}

static void parts(const struct dt_fit *fit, s64 x[DT_NR_DIRS][2], u64 busy_ns)
{
	int dir;

	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		x[dir][0] = fraction((fit->base[dir] * fit->nr[dir]) >> DT_COST_SHIFT, busy_ns);
		x[dir][1] = fraction((fit->sector[dir] * fit->sectors[dir]) >> DT_COST_SHIFT, busy_ns);
	}
}

static void learn(struct dt_fit *fit, u64 busy_ns, u64 raw)
{
	s64 x[DT_NR_DIRS][2], d[DT_NR_DIRS][2], y[DT_NR_DIRS][2], sum = 0;
	int dir, i;

	if (!fit->windows) {
		u64 r = fit->lat_min_ns[DT_READ], w = fit->lat_min_ns[DT_WRITE];

		/* By what they take alone, as far as that is seen. */
		if (r && w > r && w < 64 * r) {
			fit->base[DT_WRITE] = dt_div(fit->base[DT_READ] * w, r);
			fit->sector[DT_WRITE] = dt_div(fit->sector[DT_READ] * w, r);
		}
		raw = (fit->base[0] * fit->nr[0] + fit->sector[0] * fit->sectors[0] +
		       fit->base[1] * fit->nr[1] + fit->sector[1] * fit->sectors[1]) >> DT_COST_SHIFT;
		/* The scale of all is not known before. */
		for (dir = 0; dir < DT_NR_DIRS; dir++) {
			fit->base[dir] = dt_max(dt_div(fit->base[dir] * fraction(busy_ns, raw), ONE), 1);
			fit->sector[dir] = dt_max(dt_div(fit->sector[dir] * fraction(busy_ns, raw), ONE), 1);
		}
		return;
	}
	parts(fit, x, busy_ns);
	if (fit->paired) {
		/* The same time, otherwise divided: what one lost the other was worth. */
		for (dir = 0; dir < DT_NR_DIRS; dir++)
			for (i = 0; i < 2; i++) {
				y[dir][i] = fit->cost_then[dir][i] ? (s64)dt_div((u64)fit->part[dir][i] *
					(i ? fit->sector[dir] : fit->base[dir]), fit->cost_then[dir][i]) : 0;
				d[dir][i] = x[dir][i] - y[dir][i];
				sum += d[dir][i];
			}
		move(fit, d, -sum, 2);
		parts(fit, x, busy_ns);
	}
	sum = 0;
	for (dir = 0; dir < DT_NR_DIRS; dir++)
		for (i = 0; i < 2; i++) {
			fit->part[dir][i] = x[dir][i];
			fit->cost_then[dir][i] = i ? fit->sector[dir] : fit->base[dir];
			sum += x[dir][i];
		}
	fit->used = (u32)((3 * (s64)fit->used + (sum > 4 * ONE ? 4 * ONE : sum)) / 4);
	sum = sum > 2 * ONE ? 2 * ONE : sum;
	/* What was held back says nothing of what the device could have done. */
	if (!fit->limited || sum > ONE)
		move(fit, x, ONE - sum, 2);
	fit->paired = true;
}

static void next_window(struct dt_dev *dev)
{
	struct dt_fit *fit = &dev->fit;
	int dir;

	for (dir = 0; dir < DT_NR_DIRS; dir++) {
		fit->nr[dir] = 0;
		fit->sectors[dir] = 0;
	}
	fit->busy_from_ns = dev->busy_ns;
	fit->starved = false;
	fit->limited = false;
}

void dt_fit_note(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_fit *fit = &dev->fit;
	u64 busy_ns = dev->busy_ns - fit->busy_from_ns, raw, items;
	s64 scale;

	if (fit->settle) {
		if (!--fit->settle)
			next_window(dev);
		return;
	}
	fit->nr[item->dir]++;
	fit->sectors[item->dir] += item->sectors;
	fit->starved |= !dev->nr_queued;
	fit->limited |= dev->limit < dev->depth;
	items = fit->nr[DT_READ] + fit->nr[DT_WRITE];
	if (busy_ns < WINDOW_NS || items < WINDOW_ITEMS ||
	    items < 2 * dev->nr_inflight)
		return;
	raw = 0;
	raw = (fit->base[0] * fit->nr[0] + fit->sector[0] * fit->sectors[0] +
	       fit->base[1] * fit->nr[1] + fit->sector[1] * fit->sectors[1]) >> DT_COST_SHIFT;
	fit->dither = !fit->starved;
	if (!fit->starved) {
		learn(fit, busy_ns, raw);
		fit->windows++;
	} else {
		fit->paired = false;
	}
	{
		raw = (fit->base[0] * fit->nr[0] + fit->sector[0] * fit->sectors[0] +
		       fit->base[1] * fit->nr[1] + fit->sector[1] * fit->sectors[1]) >> DT_COST_SHIFT;
	}
	scale = fraction(busy_ns, raw);
	scale = (fit->scale + scale) / 2;
	fit->scale = (u32)(scale < ONE / 256 ? ONE / 256 : scale > ONE * 256ll ? ONE * 256ll : scale);
	fit->window++;
	fit->settle = dev->nr_inflight + 1;
}
