// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Accounting: whose time is it while several requests are served?
 *
 * A device is busy while N > 0 requests are in flight, and what is divided is
 * that busy time: the charges of all requests add up to it, to the nanosecond
 * whenever the device falls idle. No disk says what a request took, so that
 * there is a rule for each kind of device:
 *
 * Gap, on rotational devices. One head serves one request at a time, in
 * whatever order it likes. So the time since the completion before, or since
 * the device was idle, is what the request that completes now has taken:
 *
 *	charge(rq) = busy(completion) - busy(completion before)
 *
 * That is exact for one head, whatever the requests are and however many wait
 * inside. It is as exact behind a write cache that is full, where a write
 * completes when another has been written; for one that has room see cache.c.
 *
 * Overlap, while no request waits inside the device. Each moment is divided
 * equally among those in flight:
 *
 *	charge(rq) = integral from dispatch to completion of dt / N(t)
 *
 * One running integral V = integral of dt / N (dev->vbusy, in 2^-16 ns) serves
 * all: charge(rq) = V(completion) - V(dispatch). V wraps after 78 hours of busy
 * time at N = 1; only differences are used. That is right while N is at most
 * the device's parallelism, and needs to know nothing of requests. Past that
 * it drifts to "every request costs the same": 4 KB reads beside 256 KB reads
 * had 10 % of what they do alone, the others 88 %.
 *
 * Learned costs, where requests wait inside a device that is not rotational
 * (dev->crowded): what a request takes is told by its direction and size, with
 * factors that the load itself teaches; see cost.c.
 *
 * The naive alternative, charging the time from dispatch to completion in
 * full, counts the same moment N times and makes a group pay for the queue in
 * front of it inside the device.
 *
 * What a request will cost is not known when it is dispatched, yet the next
 * one has to be chosen: an estimate is charged at once, and put right at
 * completion. Without it a group with an empty device before it would fill all
 * of it before its first charge arrives.
 */
#include "account.h"
#include "cache.h"
#include "cost.h"
#include "entity.h"
#include "line.h"
#include "serial.h"
#include "spell.h"
#include "written.h"

#define VBUSY_SHIFT		16

/* Mean over about the last 8 items. */
#define MEAN_SHIFT		3

/* One item takes no more than this of a head, and the time of its sectors. */
#define ITEM_MAX_NS		(16 * DT_NSEC_PER_MSEC)
/* What it usually is, is a mean over so many. */
#define USUAL			16
/* What a queue owes is paid over no more than about so many items. */
#define OWING			64

/*
 * By cost, an item is charged so many times that at most beyond it, and the next
 * ones what is left: or the first that are done pay for a device that stood still.
 */
#define BEYOND_MOST		15
/* Nor does the last pay for more than this of what was before it was dispatched. */
#define LEFT_MOST_NS		(100 * DT_NSEC_PER_MSEC)

/* First guess on a device of which nothing is known. */
#define COST_UNKNOWN_NS		(100 * DT_NSEC_PER_USEC)

dt_inline void dt_clock_inline(struct dt_dev *dev, u64 now)
{
	u64 dt;

	if (unlikely(dt_before(now, dev->clock_ns))) {
		/* A stamp taken before the lock was: time does not run back. */
		dev->counts.clamped++;
		return;
	}
	dt = now - dev->clock_ns;
	dev->clock_ns = now;
	if (dev->nr_inflight) {
		dev->busy_ns += dt;
		dev->vbusy += dt_div(dt << VBUSY_SHIFT, dev->nr_inflight);
	} else if (dev->holding && dt_written_goes_on(dev)) {
		/* With what is in its cache. */
		dev->busy_ns += dt;
		dev->written.held_ns += dt;
	} else if (dev->holding) {
		dev->idle_clock_ns += dt;
		dev->hold_idle_ns += dt;
	}
}

void dt_clock(struct dt_dev *dev, u64 now)
{
	dt_clock_inline(dev, now);
}

dt_inline u64 dt_estimate(const struct dt_dev *dev, const struct dt_queue *queue,
		enum dt_dir dir, u32 sectors)
{
	if (dev->by_cost)
		return dt_cost(&dev->fit, dir, sectors);
	if (queue->cost_ns[dir])
		return queue->cost_ns[dir];
	if (dev->cost_ns[dir])
		return dev->cost_ns[dir];
	return dt_max(dev->cost_ns[!dir], COST_UNKNOWN_NS);
}

/* More than all that is in flight is worth: costs are low. Its part of that. */
static inline u64 beyond(const struct dt_dev *dev, const struct dt_item *item,
			 u64 left_ns)
{
	return dt_div((left_ns - dev->estimates_ns) / 4 * item->estimate_ns,
		      dev->estimates_ns);
}

dt_inline u64 dt_actual(struct dt_dev *dev, struct dt_item *item, bool done,
			bool plain)
{
	/* Busy time that nobody has been charged. */
	u64 left = dev->busy_ns - dev->charged_ns - dev->excess_ns;
	u64 time = left, own;

	if (!plain && dt_by_gap(dev)) {
		left += dev->cache.ahead_ns;
		if (done)
			time = dt_cache_done(dev, item, left);
		else
			time = dt_cache_back(dev, item, left);
	} else if (!plain && dt_is_serial(dev)) {
		time = done ? dt_serial_charge(dev, item, left) : 0;
	} else if (dev->nr_inflight > 1) {
		if (dev->by_cost) {
			time = dt_cost(&dev->fit, item->dir, item->sectors);
			if (unlikely(dt_is_written(dev)))
				left = dt_written_left(dev, left, time);
			if (left > dev->estimates_ns && item->estimate_ns)
				time += dt_min(beyond(dev, item, left),
					       BEYOND_MOST * time);
		} else {
			time = (dev->vbusy - item->vbusy) >> VBUSY_SHIFT;
		}
		time = dt_min(time, left);
		if (!plain && dev->spells.phase && item->dir == DT_READ)
			time = dt_spells_charge(dev, item, time);
	} else if (dev->by_cost) {
		dev->written.held_ns = 0;
		own = dev->clock_ns - item->dispatch_ns;
		if (unlikely(left > own + LEFT_MOST_NS)) {
			dev->excess_ns += left - own;
			time = own;
		}
	}
	if (unlikely(time > DT_CHARGE_MAX_NS)) {
		dev->excess_ns += time - DT_CHARGE_MAX_NS;
		time = DT_CHARGE_MAX_NS;
	}
	return time;
}

/* Rounded down; it never gets below the least of its samples. */
static inline void learn_mean(u64 *mean, u64 sample)
{
	if (unlikely(!*mean))
		*mean = sample;
	else
		*mean += (s64)(sample - *mean) >> MEAN_SHIFT;
}

dt_inline void dt_learn_cost(struct dt_dev *dev, struct dt_queue *queue,
			     enum dt_dir dir, u64 actual_ns)
{
	/* A mean of 0 would say that nothing is known. */
	actual_ns = dt_max(actual_ns, 1);
	if (!dev->by_cost)
		learn_mean(&queue->cost_ns[dir], actual_ns);
	learn_mean(&dev->cost_ns[dir], actual_ns);
}

/*
 * What an item took is its group's to pay at once. Among the group's queues its
 * own pays what is usual, half as much again at most, and owes the rest: else it
 * waits until each of the others has had as much, and what took so long may have
 * been none of its own (cache.c). Items of a turn that was paid for as a whole
 * count for the next.
 */
static void spread_out(struct dt_dev *dev, const struct dt_item *item,
		       u64 actual_ns)
{
	struct dt_queue *queue = item->queue;
	struct dt_group *grp = queue->grp;
	u64 due = queue->owing_ns + actual_ns, charge;
	u64 sample = dt_min(actual_ns, ITEM_MAX_NS +
				       item->sectors * DT_SECTOR_SLOW_NS);

	if (!grp->usual_ns)
		grp->usual_ns = dt_max(dt_min(sample, ITEM_MAX_NS / 4), 1);
	if (!queue->usual_ns)
		queue->usual_ns = grp->usual_ns;
	grp->usual_ns += (s64)(sample - grp->usual_ns) / USUAL;
	queue->usual_ns += (s64)(sample - queue->usual_ns) / USUAL;
	if (queue->nr_levelled) {
		queue->nr_levelled--;
		charge = 0;
		queue->over_ns += (s64)actual_ns;
	} else {
		charge = dt_max(queue->usual_ns + queue->usual_ns / 2,
				due / OWING);
		charge = dt_min(charge, due);
		queue->owing_ns = due - charge;
	}
	dt_queue_charge(dev, queue, (s64)(charge - actual_ns));
	if (dev->turn_queue == queue && item->dir == DT_READ)
		dev->turn_queue_ns += charge;
}

void dt_learn_turns(struct dt_dev *dev, struct dt_item *item, u64 actual_ns)
{
	if (dt_spreads(dev))
		spread_out(dev, item, actual_ns);
	if (item->follows)
		learn_mean(&item->queue->follow_ns, dt_max(actual_ns, 1));
	learn_mean(&dev->service_ns,
		   dt_max(dev->clock_ns - item->dispatch_ns, 1));
}
