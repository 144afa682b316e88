// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Pauses: fewer than one in flight of those who are held back.
 *
 * A limit of one still has one of theirs in the device all the time. Where that
 * is a large one and the device, or its interface, serves one after the other,
 * eight small requests wait for it in each of their rounds: on a SATA drive
 * eight writes of 4 KB beside writes of 128 KB had a quarter of what they do
 * alone at a limit of one, and no division of the slots gives them more.
 *
 * So at a limit of one each of theirs is followed by a pause, in parts of what
 * it took itself, which needs no costs. The pause is found as the limit is, which
 * it carries on below one (depth.c): with one of p the others have 1 / (1 + p) of
 * what one at a time has. None is longer than PAUSE_LOOKS, which is 64 ms, and
 * where requests take longer than 16 ms about 32 of those.
 *
 * It needs no timer while anything is in flight: what they are held back for is in
 * the device, and the next of that to complete after the pause lets the others go.
 *
 * Who thinks between two bursts has nothing in there meanwhile. A large one that
 * goes to the device then is what the next burst waits for, each time: with 8 writes
 * of 4 KB and 50 us after them, beside writes of 128 KB, it had 0.14 of what it does
 * alone. So until the pause is over the device is kept idle, for as long as the group is
 * usually away and no longer than the operator allows (tun.idle_ns), and once in
 * each time that it is. That is on the group's account, and is time that the others
 * do not have.
 *
 * Otherwise, if nothing is in flight, nobody is held back (dt_room_for).
 */
#include "entity.h"
#include "lead.h"
#include "pace.h"
#include "select.h"
#include "written.h"

/* As long as the request before it, and the longest. */
#define PAUSE_ONE		8
#define PAUSE_MOST		256
/* Nor longer than this: what has waited in a cache is no measure. */
#define PAUSE_LOOKS		64
#define PAUSE_WHOLE		65536

void dt_pause_more(struct dt_dev *dev, u64 part)
{
	u32 then = PAUSE_ONE + dev->light.pause;
	u64 now;

	part = dt_min(part, PAUSE_WHOLE / 4);
	now = dt_div((u64)then << 16, PAUSE_WHOLE - part);
	now = dt_max(now, then + 1ull) - PAUSE_ONE;
	dev->light.pause = (u32)dt_min(now, PAUSE_MOST);
}

void dt_pause_less(struct dt_dev *dev, u64 part)
{
	u64 now = PAUSE_ONE + dev->light.pause;

	now -= dt_min(now, 1 + (now * part >> 16));
	dev->light.pause = now > PAUSE_ONE ? (u32)(now - PAUSE_ONE) : 0;
}

/* It is away for no longer, as far as it matters. */
static u64 think_most(const struct dt_dev *dev)
{
	return dt_max(2 * dev->tun.idle_ns, DT_NSEC_PER_MSEC);
}

/* How long a light group is away between two bursts of requests. */
static void note_think(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_group *grp = item->queue->grp;
	u64 most = think_most(dev), ios;

	if (!item->light && !dev->written.watching &&
	    !(dt_is_written(dev) && grp == dev->lead.grp))
		return;
	ios = grp->stats.ios[DT_READ] + grp->stats.ios[DT_WRITE];
	/* Unless there were others since, which nobody looked at. */
	if (grp->emptied_ns && (item->light || ios == grp->emptied_ios + 1) &&
	    !dt_before(item->insert_ns, grp->emptied_ns)) {
		dt_think_sample(&grp->think,
				dt_min(item->insert_ns - grp->emptied_ns, most));
		dev->written.thinks |= dt_thinks(dev, grp);
	}
	if (ios != grp->emptied_ios)
		grp->emptied_ns = 0;
	if (!grp->own->nr_queued && !grp->own->nr_inflight) {
		grp->emptied_ns = dev->clock_ns;
		grp->emptied_ios = ios;
	}
}

/* Nothing is in flight, and the group is usually back before so long. */
static void keep_for(struct dt_dev *dev, struct dt_group *grp, u64 most)
{
	u64 mean = grp->think.mean_ns;

	if (!grp->emptied_ns || mean >= most)
		return;
	dev->light.awaited = grp;
	dev->holding = true;
	dev->hold_until_ns = dev->clock_ns +
			     dt_min(mean + mean / 2 + 4 * grp->think.dev_ns + 1,
				    most);
	dt_dev_derive(dev);
}

/* Who others are held back for may be about to issue again. */
static void keep_idle(struct dt_dev *dev)
{
	struct dt_light *light = &dev->light;
	struct dt_group *grp = light->grp ? light->grp : light->behind;

	if (grp && dt_thinks(dev, grp))
		keep_for(dev, grp, dt_min(light->resume_ns - dev->clock_ns,
					  dev->tun.idle_ns));
}

void dt_pause_wake(struct dt_dev *dev)
{
	struct dt_group *grp = dev->light.awaited;
	u64 idle = dev->hold_idle_ns;

	dev->light.awaited = NULL;
	dev->hold_idle_ns = 0;
	dev->holding = false;
	dev->fit.idle_ns += idle;
	grp->stats.idle_ns += idle;
	dt_path_charge(dev, grp->own, (s64)idle);
	dt_dev_derive(dev);
}

void dt_pause_vain(struct dt_dev *dev)
{
	struct dt_group *grp = dev->light.awaited;

	dt_pause_wake(dev);
	/* It was away for that long at least. */
	dt_think_sample(&grp->think, dt_min(dev->clock_ns - grp->emptied_ns,
					    think_most(dev)));
	grp->emptied_ns = 0;
}

void dt_pause_note(struct dt_dev *dev, const struct dt_item *item, u64 latency)
{
	struct dt_light *light = &dev->light;
	u64 pause;

	note_think(dev, item);
	if (dt_is_written(dev)) {
		if (!dev->wide.thin.on && dt_lead_is_awaited(dev) &&
		    dev->lead.grp->think.samples &&
		    (dt_written_goes_on(dev) ||
		     !dt_thinks(dev, dev->lead.grp)))
			keep_for(dev, dev->lead.grp, dev->tun.idle_ns);
		return;
	}
	/* While there are probes and the like the limit is theirs. */
	if (light->probing || dev->solo.grp || dev->spells.phase ||
	    dev->wide.thin.on || dev->limit > 1)
		return;
	if (light->pause && !item->light && !dev->nr_heavy) {
		pause = dt_min(latency * light->pause / PAUSE_ONE,
			       PAUSE_LOOKS * light->look_ns);
		light->resume_ns = dev->clock_ns + pause;
		dev->limit = 0;
		if (!dev->nr_inflight)
			keep_idle(dev);
	} else if (!light->pause ||
		   !dt_before(dev->clock_ns, light->resume_ns)) {
		dev->limit = 1;
	} else if (!dev->nr_inflight) {
		keep_idle(dev);
	}
}
