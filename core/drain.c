// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Drains: a cache that is written out in one go, while a read waits for it.
 *
 * Beside one who reads at random, one or a few requests at a time, a writer in a
 * row fills no cache: the disk takes a turn's worth of his writes at once, and
 * writes all of it while the next read waits, or the one after that. So no write
 * ever has to wait, and what cache.c learns by, moments at which the cache is
 * full, there are none of but in the first second. What was learned then, if
 * anything was, is of writes among others, without the way back to the reads:
 * the writer had 54 to 60 % of the disk where 50 are due, and with one start in
 * three nothing was learned, and he had 98.5 %.
 *
 * But it can be seen. Reads take 5 ms each, and now and then one takes 180: no
 * read does, so that this is what was in the cache.
 *
 *	gap of a read = what reads take + what was written
 *
 * - A gap is long that is longer than two reads ever are, or than four of the
 *   group's mean and than one ever is. The mean is of those that are not long.
 * - A long one is charged the mean, and what is left of it is taken off what
 *   writes were charged in advance. Others are charged what they took.
 * - What is charged in advance is then what is in the cache, at what it costs.
 *   That may go up and down, but with the same load the least of it in each two
 *   seconds stays where it is, and never is it less than nothing. If it drifts,
 *   writes cost more or less than they are charged, by what it drifts:
 *
 *	cost = charged * (1 - drift / what was charged)
 *
 *   of which a half is corrected at a time.
 * - What is less than nothing is paid by the next writes, twice their cost at
 *   most. Whose writes cost is not known at all begins at what was written in
 *   all, by the number of writes: too little, as some lie in the cache.
 *
 * All that holds only if next to nothing is written in gaps that are not long.
 * Where writes come one at a time between reads, many gaps are of two reads or
 * three, which may be either, or a write waits: where that is more than one in
 * 16 of what was written, and one in 128 of the reads, cache.c goes on as always;
 * where drains were seen already twice that much.
 * It is to be so for two windows, with a few long gaps: when a cache of 1000 is filled
 * for the first time there are such gaps as well.
 *
 * Rejected: to take the reads' own cost off each gap wherever one is longer than
 * the mean (what is written one at a time is then in the mean); what was seen in
 * long gaps as the least that a write costs, wherever it is seen and nothing else is
 * known (writes anywhere behind 1000 are taken for cheaper than they are, by
 * a half, never wait any more, and have 26 % of the disk where 8 are due).
 */
#include "account.h"
#include "drain.h"

/* A read takes no longer, but for its sectors. */
#define DRAIN_READ_NS		(16 * DT_NSEC_PER_MSEC)
/* A gap of so many means, at least that long, is long; of half of them, it may be. */
#define DRAIN_MEANS		4
/* The mean is over so many; at first it is the least. */
#define DRAIN_READS		64
#define DRAIN_FIRST		4
/* So many long gaps are enough, and so much that was written. */
#define DRAIN_FEW		3
#define DRAIN_ONE		16
#define DRAIN_LEAST_NS		(DT_NSEC_PER_SEC / 8)
/* And so large a part of what was charged in advance. */
#define DRAIN_PART		8

#define DRAIN_WINDOW_NS		(2 * DT_NSEC_PER_SEC)
#define DRAIN_WRITES		8
/* What writes cost is corrected by factors, 2^-10, from a half to two. */
#define DRAIN_SCALE		1024

/* Whether that is so in the window that ends. */
static bool sees_drains(const struct dt_drains *drains)
{
	return drains->nr_long >= DRAIN_FEW * DRAIN_ONE &&
	       drains->wrote_ns > DRAIN_LEAST_NS &&
	       DRAIN_PART * drains->wrote_ns >= drains->put_ns &&
	       8 * drains->wrote_ns + drains->plain_ns >=
		       (drains->on ? 64 : 128) * drains->doubt_ns;
}

bool dt_drain_read(struct dt_dev *dev, const struct dt_item *item, u64 gap_ns,
		   bool alone)
{
	struct dt_drains *drains = &dev->cache.drains;
	struct dt_head *head = &item->queue->grp->head;
	u64 most = DRAIN_READ_NS + item->sectors * DT_SECTOR_SLOW_NS;
	u64 sample = dt_max(dt_min(gap_ns, most), 1);

	if (head->nr_short < DRAIN_FIRST) {
		if (!head->nr_short++ || sample < head->short_ns)
			head->short_ns = sample;
	}
	if (!alone && (gap_ns >= 2 * most ||
		       (gap_ns >= DRAIN_READ_NS &&
			gap_ns >= DRAIN_MEANS * head->short_ns))) {
		drains->nr_long += DRAIN_ONE;
		drains->wrote_ns += gap_ns - head->short_ns;
		drains->window_wrote_ns += gap_ns - head->short_ns;
		drains->all_wrote_ns += gap_ns - head->short_ns;
		return true;
	}
	if (alone || gap_ns >= DRAIN_MEANS / 2 * head->short_ns)
		drains->doubt_ns += gap_ns;
	else
		drains->plain_ns += gap_ns;
	/* What was taken for the mean was nothing of the kind. */
	if (DRAIN_MEANS * gap_ns < head->short_ns)
		head->nr_short = DRAIN_FIRST;
	if (head->nr_short < DRAIN_READS)
		head->nr_short++;
	head->short_ns += (s64)(sample - head->short_ns) / head->nr_short;
	return false;
}

u64 dt_drain_write(struct dt_dev *dev, struct dt_group *grp, u64 gap_ns)
{
	struct dt_cache *cache = &dev->cache;
	struct dt_drains *drains = &cache->drains;
	struct dt_head *head = &grp->head;
	bool draining = drains->on;
	u64 charge;

	drains->window_nr++;
	if (head->write_ns) {
		drains->all_nr = 0;
		drains->all_wrote_ns = 0;
	} else {
		drains->all_nr++;
		drains->window_unknown = true;
	}
	if (head->by_drains && !draining) {
		/* That may have been none, or of other writes. */
		head->by_drains = false;
		head->write_ns = 0;
		head->took_ns = 0;
		head->nr = 0;
	} else if (!head->write_ns && draining && drains->write_ns) {
		head->by_drains = true;
		head->write_ns = drains->write_ns;
		head->nr = DRAIN_WRITES;
		head->took_ns = head->nr * head->write_ns;
	} else if (head->write_ns && draining &&
		   head->scaled + 1 == drains->nr_scales) {
		head->write_ns = head->write_ns * drains->scale / DRAIN_SCALE;
		head->write_ns = dt_max(head->write_ns, 1);
		head->took_ns = head->took_ns * drains->scale / DRAIN_SCALE;
		head->by_drains = true;
	}
	head->scaled = drains->nr_scales;
	if (!head->write_ns)
		return gap_ns;
	charge = head->write_ns;
	drains->put_ns += charge;
	drains->window_put_ns += charge;
	if (draining && cache->ahead_ns < 0)
		charge += dt_min((u64)-cache->ahead_ns, charge);
	return charge;
}

/* By what the least of a window differs from that of the one before it. */
static void correct(struct dt_drains *drains)
{
	s64 drift = drains->low_ns - drains->low_before_ns, scale;

	/* Nor is it to stay where it can not be. */
	if (drains->low_ns < 0)
		drift += drains->low_ns / 4;
	scale = DRAIN_SCALE - drift * (DRAIN_SCALE / 2) /
				(s64)dt_max(drains->window_put_ns, 1);
	if (scale < DRAIN_SCALE / 2)
		scale = DRAIN_SCALE / 2;
	drains->scale = (u32)dt_min((u64)scale, 2 * DRAIN_SCALE);
	drains->nr_scales++;
}

void dt_drain_look(struct dt_dev *dev)
{
	struct dt_cache *cache = &dev->cache;
	struct dt_drains *drains = &cache->drains;
	bool sees;

	if (cache->ahead_ns < drains->low_ns)
		drains->low_ns = cache->ahead_ns;
	if (dev->busy_ns - drains->from_busy_ns < DRAIN_WINDOW_NS)
		return;
	sees = sees_drains(drains);
	drains->on = sees && drains->sees;
	drains->sees = sees;
	if (drains->on && drains->window_wrote_ns &&
	    drains->window_nr >= DRAIN_WRITES && !drains->window_unknown) {
		if (drains->compares)
			correct(drains);
		drains->compares = true;
	} else {
		drains->compares = false;
	}
	drains->write_ns = 0;
	if (drains->all_nr >= DRAIN_WRITES &&
	    drains->all_wrote_ns >= DRAIN_WINDOW_NS / 2)
		drains->write_ns = dt_div(drains->all_wrote_ns, drains->all_nr);
	drains->low_before_ns = drains->low_ns;
	drains->low_ns = cache->ahead_ns;
	drains->from_busy_ns = dev->busy_ns;
	drains->window_put_ns = 0;
	drains->window_wrote_ns = 0;
	drains->window_nr = 0;
	drains->window_unknown = false;
	drains->nr_long /= 2;
	drains->wrote_ns /= 2;
	drains->plain_ns /= 2;
	drains->doubt_ns /= 2;
	drains->put_ns /= 2;
}
