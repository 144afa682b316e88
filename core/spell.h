/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Readers and writers of a flash drive by turns. See spell.c. */
#ifndef DISKTIME_SPELL_H
#define DISKTIME_SPELL_H

#include "disktime.h"

dt_internal void dt_spells_init(struct dt_spells *spells);
/* They end: the device, its rule or its health has changed, or it is looked at (serial.c). */
dt_internal void dt_spells_reset(struct dt_dev *dev);
/* Those that were good until a moment ago go on with what is known. Whether they do. */
dt_internal bool dt_spells_resume(struct dt_dev *dev);
/* A read was done, one of a sample: whether spells begin with it. */
dt_internal bool dt_spells_begin(struct dt_dev *dev,
				 const struct dt_item *item, u64 latency);
/* Instead of dt_path_queued(), while there are spells, as what follows. */
dt_internal void dt_spells_queued(struct dt_dev *dev, struct dt_item *item,
				  u64 now);
dt_internal void dt_spells_sent(struct dt_dev *dev, struct dt_item *item);
dt_internal void dt_spells_note(struct dt_dev *dev, const struct dt_item *item);
/* What a read is charged, which would be @time_ns but for the writes. */
dt_internal u64 dt_spells_charge(struct dt_dev *dev, const struct dt_item *item,
				 u64 time_ns);
/* It goes away. */
dt_internal void dt_spells_forget(struct dt_dev *dev, struct dt_queue *queue);
dt_internal void dt_spells_tick(struct dt_dev *dev);

#endif /* DISKTIME_SPELL_H */
