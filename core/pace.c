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
 * It needs no timer. What they are held back for is in the device, and the
 * next of that to complete after the pause lets the others go; if nothing
 * is in flight nobody is held back (dt_room_for).
 */
#include "pace.h"

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

void dt_pause_note(struct dt_dev *dev, const struct dt_item *item, u64 latency)
{
	struct dt_light *light = &dev->light;
	u64 pause;

	/* While there are probes and the like the limit is theirs. */
	if (light->probing || dev->solo.grp || dev->spells.phase ||
	    dev->limit > 1)
		return;
	if (light->pause && !item->light && !dev->nr_heavy) {
		pause = dt_min(latency * light->pause / PAUSE_ONE,
			       PAUSE_LOOKS * light->look_ns);
		light->resume_ns = dev->clock_ns + pause;
		dev->limit = 0;
	} else if (!light->pause ||
		   !dt_before(dev->clock_ns, light->resume_ns)) {
		dev->limit = 1;
	}
}
