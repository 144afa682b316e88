/* SPDX-License-Identifier: GPL-2.0-only */
/* The elevator's own structs, shared by its files. */
#ifndef DISKTIME_IOSCHED_H
#define DISKTIME_IOSCHED_H

#include "disktime.h"

/* The most scheduler tags that the block layer allows for a hardware queue. */
#define DISKTIME_TAGS_MAX	2048

/* A power of two, as each request looks for its own; less than a page of them. */
#define DISKTIME_RQS_PER_CHUNK	16u
#define DISKTIME_NR_CHUNKS \
	DIV_ROUND_UP(DISKTIME_TAGS_MAX, DISKTIME_RQS_PER_CHUNK)

/* Per hardware queue: a disktime_rq for each tag, some at a time. */
struct disktime_hctx {
	struct disktime_rq *chunks[DISKTIME_NR_CHUNKS];
};

/* Promised tags on their way to becoming requests; 7 bits of rq_flags. */
#define DISKTIME_NR_SLOTS	128
/* The slot number's place in rq_flags: RQF_ flags end at bit 23. */
#define DISKTIME_SLOT_SHIFT	25

/* Per elevator. */
struct disktime_iosched {
	struct disktime_dev *dev;
	struct request_queue *q;
	struct delayed_work watch;	/* stuck requests, idle queues */
	/* requests that go next, in no line: by rq->queuelist.next, see pass_on() */
	struct list_head *passed, *passed_last;
	u32 depth_hw;			/* what the device takes at once */
	bool fault_told;
	bool passes;			/* see may_pass() */
	bool flushes;			/* somebody has asked for one */

	/* the gate */
	atomic_t nr_tags_used;		/* from promise to finish_request() */
	/* promises between limit_depth() and prepare_request(); dev->lock */
	struct disktime_queue *slots[DISKTIME_NR_SLOTS];
	u64 nr_bypassed;
};

/* How the processes of a group stand in its queues under this order. */
static inline struct disktime_key
disktime_make_key(const struct disktime_iosched *ios, blk_opf_t opf, pid_t tgid,
		  u16 ioprio)
{
	struct disktime_key key = { .all = 0 };

	key.sync = op_is_sync(opf);
	if (!key.sync || likely(ios->dev->core.tun.order != DT_ORDER_CFQ))
		return key;
	key.tgid = tgid;
	key.ioprio = ioprio_valid(ioprio) ? ioprio :
		IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NORM);
	return key;
}

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

/* gate.c */
void disktime_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void disktime_gate_redeem(struct disktime_iosched *ios, struct request *rq);
void disktime_gate_settle(struct disktime_iosched *ios, struct request *rq);
void disktime_gate_hand_on(struct disktime_iosched *ios);
/* Let in who may be let in; under dev->lock. */
void disktime_gate_run(struct disktime_iosched *ios);

static inline unsigned int disktime_slot_of(req_flags_t flags)
{
	return (__force u32)flags >> DISKTIME_SLOT_SHIFT;
}

/* Called from prepare_request(): a request exists. */
static inline void disktime_gate_prepared(struct disktime_iosched *ios,
					  struct request *rq)
{
	if (unlikely(disktime_slot_of(rq->rq_flags))) {
		disktime_gate_redeem(ios, rq);
		return;
	}
	atomic_inc(&ios->nr_tags_used);
	rq->elv.priv[1] = NULL;
}

/* The request was inserted, or never will be. Under dev->lock. */
static inline void disktime_gate_inserted(struct disktime_iosched *ios,
					  struct request *rq)
{
	if (unlikely(rq->elv.priv[1]))
		disktime_gate_settle(ios, rq);
}

/* Called from finish_request(): its tag is about to be free. */
static inline void disktime_gate_finished(struct disktime_iosched *ios)
{
	/* A full barrier: pairs with the one in get_promise(). */
	atomic_dec_return(&ios->nr_tags_used);
	if (unlikely(READ_ONCE(ios->dev->core.nr_waiting)))
		disktime_gate_hand_on(ios);
}

/* attrs.c */
extern struct elv_fs_entry disktime_attrs[];
extern const struct blk_mq_debugfs_attr disktime_debugfs_attrs[];

#endif /* DISKTIME_IOSCHED_H */
