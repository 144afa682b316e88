// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Accounting by overlap: whose time is it while several requests are served?
 *
 * Model. A device is busy while N > 0 requests are in flight. Each moment of
 * busy time is divided equally among those N:
 *
 *	charge(rq) = integral from dispatch to completion of dt / N(t)
 *
 * Summed over all requests that is the busy time exactly, whatever the device
 * does inside: nothing is lost or invented, and no disk model is needed.
 *
 * One running integral serves all requests at once, which we track using:
 *
 *	V(t) = integral of dt / N	:= dev->vbusy, in 2^-16 ns
 *	charge(rq) = V(completion) - V(dispatch)
 *
 * so an event costs one division, O(1). V wraps after 2^48 ns = 78 hours of
 * busy time at N = 1; only differences are used. Each event truncates less
 * than 2^-16 ns of V, so that a charge is short by less than a nanosecond for
 * every 65536 events that it spans.
 *
 * Where it holds. The division is right while the requests in flight are
 * served in parallel, that is while N is at most the device's parallelism, or
 * while all of them cost alike. Where unlike requests queue up inside the
 * device it drifts to "every request costs the same"; the depth is what keeps
 * that from happening.
 *
 * The naive alternative, charging the time from dispatch to completion in
 * full, counts the same moment N times and makes a group pay for the queue in
 * front of it inside the device.
 *
 * What a request will cost is not known when it is dispatched, yet the next
 * one has to be chosen: the mean of its queue is charged at once, and put right
 * at completion. Without the estimate a group with an empty device before it
 * would fill all of it before its first charge arrives.
 */
#include "account.h"
#include "line.h"

#define VBUSY_SHIFT		16

/* Mean over about the last 8 items. */
#define MEAN_SHIFT		3

/* First guess on a device of which nothing is known. */
#define COST_UNKNOWN_NS		(100 * DT_NSEC_PER_USEC)

void dt_clock(struct dt_dev *dev, u64 now)
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
	} else if (dev->holding) {
		dev->idle_clock_ns += dt;
		dev->hold_idle_ns += dt;
	}
}

u64 dt_estimate(const struct dt_dev *dev, const struct dt_queue *queue,
		enum dt_dir dir)
{
	if (queue->cost_ns[dir])
		return queue->cost_ns[dir];
	if (dev->cost_ns[dir])
		return dev->cost_ns[dir];
	return dt_max(dev->cost_ns[!dir], COST_UNKNOWN_NS);
}

u64 dt_actual(struct dt_dev *dev, const struct dt_item *item)
{
	u64 time = (dev->vbusy - item->vbusy) >> VBUSY_SHIFT;

	if (unlikely(time > DT_CHARGE_MAX_NS)) {
		dev->excess_ns += time - DT_CHARGE_MAX_NS;
		time = DT_CHARGE_MAX_NS;
	}
	return time;
}

/* Rounded down; it never gets below the least of its samples. */
static void learn_mean(u64 *mean, u64 sample)
{
	if (unlikely(!*mean))
		*mean = sample;
	else
		*mean += (s64)(sample - *mean) >> MEAN_SHIFT;
}

void dt_learn_cost(struct dt_dev *dev, struct dt_queue *queue, enum dt_dir dir,
		   u64 actual_ns)
{
	/* A mean of 0 would say that nothing is known. */
	actual_ns = dt_max(actual_ns, 1);
	learn_mean(&queue->cost_ns[dir], actual_ns);
	learn_mean(&dev->cost_ns[dir], actual_ns);
}

void dt_learn(struct dt_dev *dev, struct dt_item *item, u64 actual_ns)
{
	if (!dev->given)
		dt_learn_cost(dev, item->queue, item->dir, actual_ns);
	learn_mean(&dev->service_ns,
		   dt_max(dev->clock_ns - item->dispatch_ns, 1));
}
