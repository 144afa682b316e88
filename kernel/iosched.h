/* SPDX-License-Identifier: GPL-2.0-only */
/* The elevator's own structs, shared by its files. */
#ifndef DISKTIME_IOSCHED_H
#define DISKTIME_IOSCHED_H

#include "disktime.h"

/* The most scheduler tags that the block layer allows for a hardware queue. */
#define DISKTIME_TAGS_MAX	2048

#define DISKTIME_RQS_PER_CHUNK	(PAGE_SIZE / sizeof(struct disktime_rq))
#define DISKTIME_NR_CHUNKS \
	DIV_ROUND_UP(DISKTIME_TAGS_MAX, DISKTIME_RQS_PER_CHUNK)

/* Per hardware queue: a disktime_rq for each tag, a page of them at a time. */
struct disktime_hctx {
	struct disktime_rq *chunks[DISKTIME_NR_CHUNKS];
};

/* Promised tags on their way to becoming requests; 7 bits of rq_flags. */
#define DISKTIME_NR_SLOTS	128

/* Per elevator. */
struct disktime_iosched {
	struct disktime_dev *dev;
	struct request_queue *q;
	struct delayed_work watch;	/* stuck requests, idle queues */
	struct list_head passed;	/* requests that go next, in no line */
	u32 depth_hw;			/* what the device takes at once */
	bool fault_told;
	bool passes;			/* see may_pass() */

	/* the gate */
	atomic_t nr_tags_used;		/* from promise to finish_request() */
	/* promises between limit_depth() and prepare_request(); dev->lock */
	struct disktime_queue *slots[DISKTIME_NR_SLOTS];
	u64 nr_bypassed;
};

static inline struct disktime_rq *disktime_rq_of(struct request *rq)
{
	return rq->elv.priv[0];
}

static inline struct disktime_rq *disktime_rq_of_item(struct dt_item *item)
{
	return container_of(item, struct disktime_rq, item);
}

/* iosched.c */
/* Dispatch what has become dispatchable; under no lock. */
void disktime_kick(struct disktime_dev *dev);
/* How the processes of a group stand in its queues under this order. */
void disktime_make_key(const struct disktime_iosched *ios,
		       struct disktime_key *key, blk_opf_t opf, pid_t tgid,
		       u16 ioprio);

/* gate.c */
void disktime_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void disktime_gate_prepared(struct disktime_iosched *ios, struct request *rq);
void disktime_gate_inserted(struct disktime_iosched *ios, struct request *rq);
void disktime_gate_finished(struct disktime_iosched *ios);
/* Let in who may be let in; under dev->lock. */
void disktime_gate_run(struct disktime_iosched *ios);

/* attrs.c */
extern struct elv_fs_entry disktime_attrs[];
extern const struct blk_mq_debugfs_attr disktime_debugfs_attrs[];

#endif /* DISKTIME_IOSCHED_H */
