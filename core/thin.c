// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Thin: how many requests does a device work at side by side?
 *
 * Where all requests wait in one queue no more need be in there than keep it busy
 * (wide.c), which is its rate by what the least takes. Who has begun while the
 * queue was long has never seen the least. In a machine whose CPU is slow nobody
 * ever has: of 1 MB reads on a volume of 125 MB a second, 8.4 ms each, the
 * quickest took 22 ms. Nor have two who begin at once, with 4 KB and 128 KB by
 * 32: 11 ms, for 1.5.
 *
 * So it is looked at. Nothing is let in until few are left in the device, which is
 * busy with the others meanwhile, and then no more than those few, for some
 * requests. By Little's law a device has in hand what it does in a second, times
 * how long each stays. What that were if each stayed as it does among few is how
 * many it works at side by side:
 *
 *	side = full * stay among few / stay when full
 *
 * In one queue each waits for the others, be they few or many, and that is
 * DT_THIN_NR; where none waits for another it is all that there were. In between
 * lie drives with so many parts, of which each takes one of four in a while, and
 * more are in use the more there are to choose from. Hence what is enough: no more
 * than DT_THIN_NR in the one case, some for each of them in the other.
 *
 * It holds only where all that were in the device had waited for about as long,
 * the quickest of them as well as the others. Among parts side by side some are
 * lucky; and less than half of what there were must be enough, as it says little
 * about a half more or less. If not, it is looked at again after so much longer
 * than it took that it costs next to nothing, and each time that goes wrong after
 * four times as long.
 *
 * Requests need not be alike, as there is no time at which all of one size could be
 * waited for: who is ahead of its share with large ones has none in there for
 * seconds. Rejected: to count only those that are as the one with which it began
 * (the worst of 80 mixes 0.44 for 0.49, as it was given up with most of them). Writes
 * that a cache takes are done sooner the fewer there are, so that it does not begin
 * with those of which wide.c thinks so (128 KB reads by 8 beside writes by 256 on
 * NVMe 16 times slower for 15, and a reader alone 1.2 times off its front).
 */
#include "thin.h"

/* So many done among few are enough to tell. */
#define THIN_ITEMS		8
#define THIN_PLAIN		2
#define THIN_MANY		(6 << 16)
/* It is given up after so many times as long as a request stayed. */
#define THIN_STAYS		4
/* There is no more than one at the latest after this. */
#define THIN_QUIET_NS		(4 * DT_NSEC_PER_SEC)
/* For each that is done side by side beyond what one queue makes of it, so many. */
#define THIN_EACH		5
/* Again after so many times as long, at least that, and so many times that. */
#define THIN_AGAIN		64
#define THIN_AGAIN_NS		DT_NSEC_PER_SEC
#define THIN_AGAIN_MOST_NS	(256ull * DT_NSEC_PER_SEC)
#define THIN_AGAIN_FACTOR	4

void dt_thin_begin(struct dt_dev *dev, u32 few, u64 stay_ns)
{
	struct dt_thin *thin = &dev->wide.thin;

	*thin = (struct dt_thin) {
		.on = true,
		.few = few,
		.full = dev->nr_inflight + 1,
		.from_ns = dev->clock_ns,
		.until_ns = dev->clock_ns + THIN_STAYS * stay_ns,
		.pause_ns = thin->pause_ns,
		.next_ns = thin->next_ns,
	};
}

/* So many are worked at side by side by what was seen, 2^-16, or 0: that is not known. */
static u64 side_by_side(const struct dt_thin *thin)
{
	u64 full_ns, few_ns;

	if (!thin->nr || !thin->nr_full)
		return 0;
	full_ns = dt_max(dt_div(thin->full_ns, thin->nr_full), 1);
	few_ns = dt_div(thin->few_ns, thin->nr);
	if (thin->few == DT_THIN_NR && 4 * thin->least_ns < 3 * full_ns)
		return 0;
	return dt_max(dt_div((few_ns << 16) * thin->full, full_ns), 1);
}

/* One at a time is so little that it costs much, and few of them tell. */
static bool is_plain(const struct dt_thin *thin)
{
	return thin->few == 1 && thin->nr >= THIN_PLAIN &&
	       side_by_side(thin) > THIN_MANY;
}

/* What is enough for that, or 0: more than it pays to know. */
static u32 enough_for(const struct dt_thin *thin)
{
	u64 most = THIN_EACH * thin->few;
	u64 nr = dt_max(THIN_EACH * thin->side >> 16, most) - most + thin->few;

	return !thin->side || 2 * nr > thin->full ? 0 : (u32)nr;
}

static void end(struct dt_dev *dev)
{
	struct dt_thin *thin = &dev->wide.thin;
	u64 took = dev->clock_ns - thin->from_ns;

	thin->on = false;
	thin->side = thin->nr < THIN_ITEMS && !is_plain(thin) ? 0 :
							       side_by_side(thin);
	thin->enough = 0;
	/* It is for somebody else to say what follows. */
	if (thin->few < DT_THIN_NR)
		return;
	thin->enough = enough_for(thin);
	if (thin->enough)
		thin->pause_ns = 0;
	thin->pause_ns = dt_max(THIN_AGAIN_FACTOR * thin->pause_ns,
				dt_max(THIN_AGAIN * took, THIN_AGAIN_NS));
	thin->pause_ns = dt_min(thin->pause_ns, THIN_AGAIN_MOST_NS);
	thin->next_ns = dev->clock_ns + thin->pause_ns;
}

/*
 * Next to nothing is let in until no more than one is there, which costs nothing: what is in
 * there is being done. With more at a time there may be one who is favoured, and never is.
 */
static bool drains(const struct dt_dev *dev)
{
	const struct dt_thin *thin = &dev->wide.thin;

	return thin->few == 1 && !thin->quiet_ns &&
	       dev->clock_ns - thin->from_ns < THIN_QUIET_NS;
}

bool dt_thin_note(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_thin *thin = &dev->wide.thin;
	u64 stay_ns = dev->clock_ns - item->dispatch_ns;

	if (!thin->quiet_ns && dev->nr_inflight <= thin->few) {
		if (thin->few == 1)
			thin->until_ns += dev->clock_ns - thin->from_ns;
		thin->quiet_ns = dev->clock_ns;
	}
	if (dt_before(item->dispatch_ns, thin->from_ns)) {
		if (!thin->nr_full++ || stay_ns < thin->least_ns)
			thin->least_ns = stay_ns;
		thin->full_ns += stay_ns;
	} else if (thin->quiet_ns &&
		   !dt_before(item->dispatch_ns, thin->quiet_ns)) {
		thin->few_ns += stay_ns;
		thin->nr++;
	}
	if (thin->nr < THIN_ITEMS && !is_plain(thin) &&
	    (dt_before(dev->clock_ns, thin->until_ns) || drains(dev)))
		return false;
	end(dev);
	return true;
}
