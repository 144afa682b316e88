// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Chains: what a group waits for that goes on in another.
 *
 * A commit goes from its process to the file system's journal, which is in the
 * root group, and back, maybe several times. To the lines its process has nothing
 * to do meanwhile: its turn would go to others between any two of its links, and
 * each link wait behind all that those had put into the device.
 *
 * Who waits is not told, but seen. What goes express, as the journal does, while
 * the group that has the turn has nothing queued or in flight is a link of that
 * group's chain; or else of the group's that wrote last and has had nothing to do
 * since. Think times are from link to link, the group pays for its links in
 * virtual time, and as long as one is in flight the device waits for it as for
 * the group's own requests: if it has the turn, or by right could have it
 * (select.c).
 *
 * Who issues while a link of its own is in flight did not wait for it. It is left
 * alone for a while, and for longer each time.
 */
#include "chain.h"
#include "entity.h"
#include "select.h"

/* So long, the first time; and so often it is doubled. */
#define LEAVE_NS		(50 * DT_NSEC_PER_MSEC)
#define LEAVE_MOST		6

static bool may_wait(const struct dt_dev *dev, const struct dt_group *grp,
		     const struct dt_group *sender)
{
	return grp && grp != sender && !grp->own->nr_queued &&
	       !grp->own->nr_inflight &&
	       !dt_before(dev->clock_ns, grp->apart_until_ns);
}

/* Who waits for what @sender sends express, or NULL. */
static struct dt_group *who_waits(const struct dt_dev *dev,
				  const struct dt_group *sender)
{
	if (may_wait(dev, dev->turn_grp, sender))
		return dev->turn_grp;
	if (may_wait(dev, dev->chain.wrote, sender))
		return dev->chain.wrote;
	return NULL;
}

/* It issues by itself: did it wait until the chain was done? */
static void end_chain(struct dt_dev *dev, struct dt_group *grp)
{
	struct dt_chain *chain = &dev->chain;

	if (chain->nr_links) {
		grp->apart_until_ns = dev->clock_ns +
				      (LEAVE_NS << grp->nr_apart);
		grp->nr_apart += grp->nr_apart < LEAVE_MOST;
	} else {
		grp->nr_apart = 0;
		chain->grp = NULL;
	}
}

void dt_chain_queued(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_group *grp = item->queue->grp, *waits;
	struct dt_chain *chain = &dev->chain;

	if (item->express) {
		waits = who_waits(dev, grp);
		if (waits && !dt_chain_links(dev, waits))
			dt_think_end(dev, waits->own, &waits->think);
		return;
	}
	if (chain->wrote == grp)
		chain->wrote = NULL;
	if (chain->grp == grp)
		end_chain(dev, grp);
}

void dt_chain_sent(struct dt_dev *dev, struct dt_item *item)
{
	struct dt_group *waits = who_waits(dev, item->queue->grp);
	struct dt_chain *chain = &dev->chain;

	if (!waits)
		return;
	if (chain->grp != waits) {
		chain->grp = waits;
		chain->serial += chain->serial == ~0u ? 2 : 1;
		chain->nr_links = 0;
	}
	item->chain = chain->serial;
	chain->nr_links++;
}

void dt_chain_back(struct dt_dev *dev, const struct dt_item *item, u64 took_ns)
{
	struct dt_chain *chain = &dev->chain;
	struct dt_group *grp = chain->grp;

	if (!grp || item->chain != chain->serial)
		return;
	chain->nr_links--;
	if (dev->turn_grp == grp)
		dev->turn_used_ns += took_ns;
	dt_path_charge(dev, grp->own, took_ns);
	grp->think.last_end_ns = dev->clock_ns;
}

void dt_chain_done(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_group *grp = item->queue->grp;

	if (item->dir == DT_WRITE && item->queue->sync && !item->express &&
	    !grp->own->nr_queued && !grp->own->nr_inflight)
		dev->chain.wrote = grp;
}

void dt_chain_forget(struct dt_dev *dev, const struct dt_group *grp)
{
	struct dt_chain *chain = &dev->chain;

	if (!grp || chain->wrote == grp)
		chain->wrote = NULL;
	if (!grp || chain->grp == grp) {
		chain->grp = NULL;
		chain->nr_links = 0;
	}
}
