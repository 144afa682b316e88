/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * disktime's scheduler core: shares of disk time for a tree of groups.
 *
 * The caller owns all memory, embeds these structs in its own, holds one lock
 * a device around every call that takes a struct dt_dev (but for the few that
 * say "lockless"), and passes the time in. The core never sleeps, allocates
 * or reads a clock, and knows neither requests nor bios: what it orders are
 * items.
 *
 * Units: times are nanoseconds on any clock that the caller keeps, sectors are
 * 512 bytes, virtual times are defined in line.h.
 */
#ifndef DISKTIME_CORE_H
#define DISKTIME_CORE_H

#include "deps.h"
#include "tree.h"

#define DT_WEIGHT_MIN		1
#define DT_WEIGHT_MAX		10000
#define DT_WEIGHT_DEFAULT	100

#define DT_NSEC_PER_USEC	1000ull
#define DT_NSEC_PER_MSEC	1000000ull
#define DT_NSEC_PER_SEC		1000000000ull

/*
 * Classes, best first. Writeback is a class of its own that only queues
 * inside a group have: readers go before it, with a bound.
 */
enum dt_class {
	DT_RT,
	DT_BE,
	DT_WRITEBACK,
	DT_IDLE,
	DT_NR_CLASSES,
};

enum dt_dir {
	DT_READ,
	DT_WRITE,
	DT_NR_DIRS,
};

/* Order among the requests inside one queue. */
enum dt_order {
	DT_ORDER_CFQ,		/* by sector; one queue a process */
	DT_ORDER_DEADLINE,	/* by sector; one queue a group; short expiry */
	DT_ORDER_FIFO,		/* by arrival; one queue a group */
};

/* Why a request waited; the parts of io.disktime.stat's wait_usec. */
enum dt_cause {
	DT_WAIT_SHARE,		/* others of its class were served */
	DT_WAIT_CLASS,		/* a better class was served */
	DT_WAIT_IDLE,		/* the device was held for somebody else */
	DT_WAIT_DEPTH,		/* it was next, but the device was full */
	DT_WAIT_TAG,		/* before it existed: no request free */
	DT_NR_CAUSES,
};

/* By what rule requests are charged; see account.c. */
enum dt_engine {
	DT_ENGINE_AUTO,		/* gap, overlap or learned costs */
	DT_ENGINE_OVERLAP,	/* overlap alone */
	DT_ENGINE_GIVEN,	/* by dt_charge() alone */
};

/* Why the device runs in plain arrival order; shown in iosched/health. */
enum dt_fault {
	DT_OK,
	DT_FAULT_LOST,		/* a ready line led to no request */
	DT_FAULT_COUNT,		/* a counter would have gone below zero */
	DT_FAULT_STUCK,		/* a request waited past the limit */
	DT_FAULT_ASKED,		/* the operator asked for it */
	DT_NR_FAULTS,
};

struct dt_dev;
struct dt_queue;
struct dt_group;

/*
 * One place in one line (line.h): an entity stands in its parent's ready line
 * while something below it is queued, and in its parent's gate line while
 * something below it waits for a request.
 */
struct dt_spot {
	bool on;
	u32 came;		/* when it came to stand there, as of its tree */
	u64 key;		/* virtual time: where it stands */
	struct dt_node node;	/* key: where it was found last, see line.c */
};

/* Deficit of a class against the better ones; see line.c. */
struct dt_floor {
	s64 owed_ns;		/* disk time owed to this class */
	u64 since_ns;		/* when it was last served or came */
};

struct dt_line {
	u32 nr;				/* entities in all trees */
	u32 present;			/* bit c: class c has anybody in line */
	u64 vtime[DT_NR_CLASSES];	/* start tag last served; monotonic */
	struct dt_floor floors[DT_NR_CLASSES];
	struct dt_tree trees[DT_NR_CLASSES];
};

/* The children of one entity. */
struct dt_level {
	/* Sum of the weights of all that hold or want a request, by class. */
	u64 active_weight[DT_NR_CLASSES];
	u32 nr_busy;			/* how many those are */
	/* who is, or was last, the only one of them; see entity.c */
	struct dt_entity *lone;
	s64 lone_ns;			/* its charges, not in its vdisktime */
	s64 lone_start_ns;		/* the most that was when picked, or never */
	struct dt_line ready;
	struct dt_line gate;
};

enum dt_kind {
	DT_KIND_GROUP,
	DT_KIND_LEAF,		/* a group's own queues, beside child groups */
	DT_KIND_QUEUE,
};

/* Habit of issuing again: mean and mean deviation of the think time. */
struct dt_think {
	u64 last_end_ns;	/* when its last request completed */
	u64 mean_ns;
	u64 dev_ns;
	u32 samples;
};

struct dt_entity {
	struct dt_entity *parent;	/* NULL for the root group */
	struct dt_level *level;		/* of its children; NULL for a queue */
	u64 vdisktime;
	u32 vrest;			/* what its divisions left; see line.h */
	u32 weight;
	u8 class;			/* enum dt_class */
	u8 kind;			/* enum dt_kind */
	u32 nr_queued;			/* items queued in the subtree */
	u32 nr_granted;			/* requests granted, not yet queued */
	u32 nr_inflight;		/* items dispatched in the subtree */
	u32 nr_waiting;			/* waiters at the gate in the subtree */
	struct dt_spot ready;
	struct dt_spot gate;
};

/* Monotonic counters of one group's own requests. */
struct dt_stats {
	u64 dequeues;		/* times it ran out of requests */
	u64 slices;		/* turns it was given */
	u64 wait_ns[DT_NR_CAUSES];
	u64 wait_max_ns;
	u64 time_ns[DT_NR_DIRS];
	u64 sectors[DT_NR_DIRS];
	u64 ios[DT_NR_DIRS];
	u64 express;		/* requests that went ahead as debt */
	u64 idle_ns;		/* anticipation on this group's account */
};

/* What its requests take of a disk's head, where it is known; see cache.c. */
struct dt_head {
	u64 write_ns;			/* mean of a write; 0: unknown */
	u64 took_ns;			/* of these, lately */
	u64 nr;				/* and so many were they */
	u64 read_ns;			/* mean of a read, were it alone in there */
	u32 nr_reads;			/* over so many */
	/* Where none is ever alone in there: */
	u64 quarter_ns;			/* a quarter of the gaps is shorter */
	u64 quick_ns;			/* mean of those */
	u32 nr_quick;			/* over so many, at first */
	/* See drain.c. */
	u32 nr_short;			/* and this over so many: */
	u64 short_ns;			/* mean of gaps that are not long */
	u32 scaled;			/* drains.nr_scales, when it wrote last */
	bool by_drains;			/* write_ns was learned in drains alone */
	u64 worth_ns;			/* mean of what its writes seem worth */
};

/* What a group's writes take of a drive, by turns in which nobody else wrote: quota.c. */
struct dt_writes {
	u8 nr_own;			/* of those turns, few or many */
	u32 turn;			/* serial number of the last, */
	u32 spell;			/* of the spells that they were of, */
	u32 look;			/* and of when it was counted last */
	u64 size;			/* units of its requests then */
	u64 ns;				/* what those turns took of the drive, */
	u64 units;			/* and all that it wrote in them; of older ones less */
};

/* What a group read while it and writers have turns: slice.c. */
struct dt_reads {
	u32 turn;			/* serial number of the turn, */
	u32 run;			/* and of quick slots in a row in it */
	u64 theirs;			/* before these, since the writers' turn began */
	u64 quick;			/* and in them and the readers' turn */
	u32 full;			/* so many are enough, and are in the device; or 0 */
	bool held;			/* it waits while writers have their turn */
	s64 ahead_ns;			/* it had so much more than was due to it */
	u8 nr_seen;			/* slices in which that was seen, */
	u64 part[2];			/* it had of what is due, without and with; 2^-16 */
	u64 alone;			/* in a ns with the device for itself, 2^-30; or 0 */
};

/* What every request of its own touches comes first here, and in a queue. */
struct dt_group {
	struct dt_entity ent;
	struct dt_entity *own;		/* parent of its queues: leaf or ent */
	struct dt_list active;		/* dev->active, while own is busy */
	u64 last_dispatch_ns;
	u64 lat_min_ns;			/* least from dispatch to completion */
	u64 lat_probe_ns;		/* the same in the last probe */
	u64 lat_alone_ns;		/* mean in probes; 0: never in one */
	u64 late_ns;			/* its latencies since it was judged */
	u64 alone_ns;			/* what those would have been alone */
	u64 judge_ns;			/* when it is judged next; 0: never was */
	u64 again_ns;			/* it is not favoured before this */
	u64 emptied_ns;			/* when it had no more, if light and not back since */
	u64 emptied_ios;		/* how many it had done then */
	u32 nr_late;			/* so many since then */
	u32 nr_asked;			/* so many since it was judged, */
	u32 asked;			/* and what it had outstanding, their sum */
	u32 slow;			/* by its share, 2^-8; 0: unknown */
	s64 dither_ns;			/* charged beyond its costs, to learn */
	u32 probe;			/* serial number of that probe */
	u32 dither_window;		/* the window that the next is of */
	u64 dither_from_ns;		/* of busy time, when that began */
	bool dithered_up;
	u8 nr_solos;			/* few or many; see solo.c */
	u32 solo_round;			/* of solos, in which its last was */
	u64 solo_ns;			/* none before this */
	bool well_off;			/* not late, and could use much */
	bool paused;			/* in its last turn, with nothing to do */
	u8 nr_apart;			/* see chain.c */
	u64 apart_until_ns;
	bool odd;			/* begins the other way */
	u8 nr_unharmed;			/* its reads while nobody wrote, few or many */
	struct dt_writes writes;
	struct dt_reads reads;
	struct dt_head head;
	struct dt_think think;
	struct dt_stats stats;
	struct dt_level queues;		/* below own */

	struct dt_entity leaf;		/* in use while it has children */
	struct dt_level children;	/* child groups and the leaf */
	struct dt_dev *dev;
	struct dt_list link;		/* dev->groups */
	struct dt_list queue_list;	/* struct dt_queue.link */
	u32 nr_children;
	u32 nr_queues;
	u64 usual_ns;			/* what an item takes, as a rule */
	u64 nr_wrote;			/* when commit.c looked last */
};

struct dt_queue {
	struct dt_entity ent;
	struct dt_group *grp;
	struct dt_list fifo;		/* items by arrival */
	struct dt_list urgent;		/* items inserted at the head */
	u64 next_sector;		/* where its last item ended */
	u32 last_sectors;		/* how long that was */
	u64 cost_ns[DT_NR_DIRS];	/* mean charge of an item; 0: unknown */
	struct dt_think think;
	u64 seek_mean;			/* sectors, between items */
	u64 follow_ns;			/* mean charge of what it reads on */
	bool sync;

	struct dt_tree sorted;		/* items by sector, if order asks */
	struct dt_list link;		/* grp->queue_list */
	struct dt_list party;		/* of commits or spells, if of one */
	u32 nr_parked;			/* of its items; see park.c */
	u64 wrote;			/* by it in a turn; see spell.c */
	u64 nr_done;			/* requests that were this */
	u64 sent;			/* the same, sent */
	u64 part;			/* and so much may be, if others write as well; or 0 */
	bool spent;			/* it has been, or it reads and waits: slice.c */
	struct dt_list waiters;		/* struct dt_waiter.link */

	/* With a head; see account.c. */
	u64 usual_ns;			/* what an item takes, as a rule */
	u64 owing_ns;			/* had, and not yet charged in its group */
	s64 over_ns;			/* had beyond the turns charged there */
	u32 nr_levelled;		/* in flight when its turn was charged */
};

enum dt_item_state {
	DT_ITEM_FREE,
	DT_ITEM_QUEUED,
	DT_ITEM_DISPATCHED,
	DT_ITEM_DONE,
};

/* One request. The caller embeds it; all fields are the core's. */
struct dt_item {
	struct dt_list fifo;		/* queue->fifo or queue->urgent */
	struct dt_list all;		/* dev->all or dev->express */
	struct dt_queue *queue;
	u64 insert_ns;
	u64 idle_clock_ns;		/* dev->idle_clock_ns at insertion */
	u32 sectors;
	u8 state;			/* enum dt_item_state */
	u8 dir;				/* enum dt_dir */
	bool express;
	bool urgent;			/* on queue->urgent, not queue->fifo */
	bool sorted;			/* on queue->sorted as well */
	bool light;			/* its group was behind */
	bool follows;			/* the device had just served its queue */
	u32 chain;			/* whose link it is: a chain's serial, or 0 */
	u8 watched;			/* enum dt_watched */
	u64 dispatch_ns;
	u64 vbusy;			/* dev->vbusy at dispatch */
	u32 done_before;		/* dev->cache.nr_done at dispatch */
	u32 taken_before;		/* dev->cache.nr_taken at dispatch */
	u32 long_before;		/* dev->cache.nr_long at dispatch */
	u64 estimate_ns;		/* what was charged at dispatch */
	struct dt_node node;		/* queue->sorted; key: first sector */
};

/* A process that waits for a request; lives on its stack. */
struct dt_waiter {
	struct dt_list link;
	struct dt_queue *queue;
	u64 since_ns;
	bool granted;
};

/* What the operator may set; times of 0 mean what the comment says. */
struct dt_tunables {
	u64 slice_ns;	/* 0: automatic */
	u64 idle_ns;	/* longest anticipation; 0: never */
	u32 depth;	/* 0: what the device takes */
	u8 order;	/* enum dt_order */
	bool strict;	/* exact shares before throughput */
};

/* Counters that must balance; see check.c. */
struct dt_counts {
	u64 inserted;
	u64 removed;	/* merged away or freed before dispatch */
	u64 dispatched;
	u64 completed;
	u64 requeued;
	u64 empty;	/* dispatch found nothing though has_work said so */
	u64 raced;	/* dispatch found nothing: another was faster */
	u64 clamped;	/* time stamps that ran backwards */
	u64 faults;
	u64 unasked;	/* work, an empty device, and nobody asked for it */
};

/* A cost of each request, and one of each of its sectors. */
#define DT_NR_COSTS		2

/* So much was done. */
struct dt_load {
	u64 nr[DT_NR_DIRS];
	u64 sectors[DT_NR_DIRS];
};

/* And in so much busy time. */
struct dt_span {
	struct dt_load load;
	u64 busy_ns;
};

/* What was done while nobody was held back, but for who goes first. */
struct dt_free {
	struct dt_span heavy;
	u64 nr_light;			/* and so many of who goes first */
	u32 windows;			/* so often that was looked at */
};

/* What requests take of a parallel device; see cost.c. */
struct dt_fit {
	u64 base[DT_NR_DIRS];		/* of a request, 2^-8 ns */
	u64 sector[DT_NR_DIRS];		/* of each of its sectors, 2^-8 ns */
	u32 scale;			/* of all charges, 2^-16 */
	struct dt_free free;		/* what the heavy have, not held back */
	u32 kept;			/* of that, while they are, 2^-16 */
	u32 alone;			/* and of what they do alone; 0: unknown */
	u32 window;			/* serial number */
	u32 windows;			/* so many were learned from */
	u32 settle;			/* completions until the next begins */

	/* The window. */
	u64 idle_ns;			/* kept so in the window, for who is favoured */
	u64 busy_from_ns;		/* dev->busy_ns at its beginning */
	struct dt_load load;
	struct dt_load light;		/* of that, light requests */
	u32 least, most;		/* sectors of a request */
	bool starved;			/* for a while nothing was queued */
	bool limited;			/* not all were let through */
	bool alike;			/* all were, in the one before */
	bool dither;

	/* The one before, if it was learned from. */
	bool paired;
	s64 part[DT_NR_DIRS][DT_NR_COSTS];	/* of its time, 2^-16 */
	u64 cost_then[DT_NR_DIRS][DT_NR_COSTS];
};

/* What the device does with few in flight; see thin.c. */
struct dt_thin {
	bool on;
	u32 few;			/* so many are let in */
	u32 enough;			/* so many in flight; 0: not known */
	u64 side;			/* worked at side by side, or 0; 2^-16 */
	u32 full;			/* there were, when it began */
	u32 nr_full;			/* of those, done */
	u32 nr;				/* of few, done */
	u64 full_ns;			/* how long those stayed, all together */
	u64 few_ns;			/* and these */
	u64 least_ns;			/* the least of the former */
	u64 from_ns;			/* since when */
	u64 quiet_ns;			/* since when there are few, or 0 */
	u64 until_ns;			/* it is given up then */
	u64 pause_ns;			/* so long after that it begins again */
	u64 next_ns;			/* which is then */
};

/* The request that took least time in the device; 0: none did. */
struct dt_quick {
	u64 ns;
	u32 sectors;
};

/* Of a group, while it is looked at whether the device is serial. */
struct dt_serial_look {
	struct dt_group *grp;
	u64 from_ns;			/* since when */
	u64 ios;			/* it had done by then */
	u64 share;			/* due to it, 2^-16; with all of them active */
	u64 rate;			/* requests a second before turns, 2^-16 */
	u64 late_ns;			/* how long it waited for those watched */
	u64 asked;			/* of so many that it asked for */
	u64 quick_ns;			/* the least that one of them can take */
	u64 alone_ns;			/* how long those stayed that had no other beside them */
	u64 before_ns;			/* from the one before each until that was done, */
	u64 after_ns;			/* and from it to the next */
	u64 line_ns;			/* what one makes the line longer, or 0, */
	u64 line_part;			/* and all that it did of it, 2^-16 */
	u32 nr_late;
	u32 nr_alone;
	u32 nr_before;
	u32 nr_after;
	u32 batch;			/* of those that were done at once just now */
	bool wrote;			/* some that had no other beside them were writes */
};

#define DT_SERIAL_GROUPS	16

enum dt_serial_phase {
	DT_SERIAL_IDLE,
	DT_SERIAL_LOOK,			/* what everybody does is counted */
	DT_SERIAL_WATCH,		/* in what order requests are done */
	DT_SERIAL_ALONE,		/* one at a time is let in */
	DT_SERIAL_TRIAL,		/* turns are tried */
	DT_SERIAL_TURNS,
};

/* Whether requests are served one after the other; see serial.c. */
struct dt_serial {
	enum dt_serial_phase phase;
	bool known;			/* there were turns just before */
	bool unsettled;			/* what all do without was seen too soon */
	bool spelled;			/* there were spells, which were good */
	u64 stay_ns;			/* of a request in the device, a mean */
	u64 since_ns;			/* the phase has begun */
	u32 nr_looks;
	u32 nr_trials;			/* of turns, in a row */
	u32 usual;			/* in flight before that, */
	u32 enough;			/* and enough, or 0; see wide.c; */
	struct dt_quick quick[DT_NR_DIRS];	/* the least that requests took until then */
	struct dt_serial_look looks[DT_SERIAL_GROUPS];
	u32 nr;				/* watched */
	u32 nr_reads;			/* of them */
	u64 newest_ns;			/* when the latest of these was sent */
	u64 early_ns;			/* those done after it were before, together */
	u64 stays_ns;			/* how long they stayed, all together */
	u64 done_ns;			/* when the last one was, */
	u32 nr_batch;			/* with so many others at once, */
	u64 batch_ns;			/* so long after those before, or 0: who knows */
	u64 pause_ns;			/* so long after that it begins again */
	u64 next_ns;			/* which is then */
	u64 lasts_ns;			/* so long turns are taken */
	u64 until_ns;			/* which is until then */
	struct dt_queue *prev;		/* of the request before, or NULL */
	enum dt_dir prev_dir;
	bool passed;			/* its group was another */
	s32 after;			/* more than 0: the next one waits for each */
};

/* More in flight than usual, or less where large ones are written; see wide.c. */
struct dt_wide {
	u32 full;			/* what is usual but for those */
	u32 usual;			/* what it is but when it is wide */
	u32 little;			/* by which is judged who asks for little */
	u64 stay_ns;			/* that a request is in the device, a mean */
	u64 room;			/* of how many there are, by how long they may */
	u32 nr_long;			/* so many in a row stayed for long */
	u64 cached_ns;			/* until then a cache is known to take large writes */
	/* Before one at a time was let in: */
	u32 usual_then;
	u32 little_then;
	u32 enough_then;
	u32 limit;			/* dev->limit */
	u32 limit_then;			/* light.limit_then */
	struct dt_thin thin;
	u64 next_ns;			/* it is not changed for that before */
	u32 nr_then;			/* groups when it became less than all */
	u64 less_ns;			/* when that was */
	u64 doubt_ns;			/* it was wrong, and does not before this, */
	u64 doubt_for_ns;		/* for so long */
	u32 large;			/* sectors of the largest of these */
	u64 large_ns;			/* it counts until then */
	u64 reads_ns;			/* and reads, if there were any */
	bool woken;			/* a group has come in this window */
	u64 from_ns;			/* since when, if it is */
	u64 calm_ns;			/* since when all is alike, and nobody light */
	u64 after_ns;			/* so long after that it begins */
};

/* Who is behind has all in the device, and who is ahead waits; see lead.c. */
struct dt_lead {
	struct dt_group *grp;		/* that is behind, or NULL */
	u32 asked;			/* the most that any has outstanding, of late */
	u32 part_of;			/* the same, where nobody writes, or ~0 */
	u32 asked_now;			/* and since this is looked at */
	u64 asked_ns;			/* until then */
	u64 most_ns;			/* so far ahead may others be */
	u64 writes_ns;			/* there were writes until this */
	u64 unlike_ns;			/* and requests that are not alike */
};

#define DT_SOLO_SPANS		6

/* Who has the device for itself, to see what its requests take; see solo.c. */
/* So many spans are gone by; from two on costs are known, and from eight well. */
#define DT_WRITTEN_SPANS	4
#define DT_WRITTEN_ENOUGH	2
#define DT_WRITTEN_SETTLED	8

/* What writes take behind a cache that is full; see written.c. */
struct dt_written {
	bool on;			/* it is full, and nobody reads */
	u32 serial;			/* of spans; each group is charged more in one, less in the next */
	bool watching;			/* each write is looked at */
	bool thinks;			/* somebody does, between two bursts */
	u8 goes_on;			/* the device does, with what is in the cache; or 0 */
	bool counts;			/* what was there before is written */
	u32 few;			/* so many in flight keep it full */
	u32 nr_since;			/* spans since it is on, up to some */
	u8 longer;			/* they are so much longer; log2 */
	u8 nr_off;			/* that did not agree with those before */
	u32 nr;				/* writes looked at */
	u64 stays_ns;			/* how long they took */
	u64 least_ns;			/* and at the least */
	u64 costs_ns;			/* and what they take of the device */
	u64 newest_ns;			/* when the latest was sent */
	u64 early_ns;			/* those done after it were before, together */
	u64 calm_ns;			/* it is, if it is so until then */
	u64 ahead_ns;			/* charged before it went by */
	u64 base, sector;		/* what a write seemed to take before, 2^-8 ns */
	u64 from_ns;			/* then it counts */
	u64 until_ns;
	struct dt_load all;		/* since ever, but for the window of cost.c's */
	struct dt_load then;		/* when it began to count */
	u64 busy_then_ns;
	struct dt_span spans[DT_WRITTEN_SPANS];
	u32 nr_spans;			/* that there were */
	bool known;			/* costs, by these */
	u64 last_ns;			/* when the last of them ended */
	u64 off_ns;			/* so long it is not looked at, if it was not so */
	u64 again_ns;			/* so long after that it was */
	u64 held_ns;			/* nothing was in flight, and nobody was charged for that yet */
};

struct dt_solo {
	struct dt_group *grp;		/* or NULL */
	bool quiet;			/* the others' are done */
	bool done;			/* enough was seen */
	u32 nr_active;			/* groups, at its beginning */
	u32 outstanding;		/* its requests, then */
	u32 windows;
	u64 worth;			/* of the last of these, 2^-16 */
	struct dt_span span;		/* what was seen */
	u64 from_ns;
	u64 owed_ns;			/* to the others, as the last one took so long */
	u64 owed_until_ns;
	u64 over_ns;			/* the end of the last one */
	u64 calm_ns;			/* from then on a cache is as full as it ever is */
	u64 next_ns;			/* none before this */

	/* All. */
	bool known;			/* of all that are active */
	bool behind;			/* one would leave work to the next */
	u32 nr_together;		/* windows in that */
	u32 nr_then;			/* groups, then */
	u32 round;			/* since they told nothing; serial number */
	u64 off_ns;			/* how long none is made, if so */
	bool partly;			/* some could not fill the device */
	u64 most_ns;			/* so long these wait at most */
	u64 partly_ns;			/* no such one before this */
	u64 partly_off_ns;		/* how long none is, if one was too long */
	u32 nr_open;			/* windows yet with nobody held back */
	struct dt_span spans[DT_SOLO_SPANS + 1]; /* some of each group, and of all */
	struct dt_group *whose[DT_SOLO_SPANS];	/* NULL: of one that is gone */
	u32 nth[DT_SOLO_SPANS];		/* the lower, the older */
	u32 nr_spans;			/* that there were */
	struct dt_span together;	/* what all do, not alone */
	u64 base[DT_NR_DIRS];		/* costs before the first */
	u64 sector[DT_NR_DIRS];
};

/* Sizes that are told apart: 64 sectors, 128, to 4096 and more. */
#define DT_CACHE_SIZES		7

/* What a cache writes while a read waits; see drain.c. In busy time: */
struct dt_drains {
	bool on;			/* nearly all of it is seen in long gaps */
	bool sees;			/* it was, in the last window */
	/* Lately: halved with each window. */
	u64 wrote_ns;			/* in long gaps of reads */
	u64 plain_ns;			/* gaps that are not */
	u64 doubt_ns;			/* and that may be */
	u64 put_ns;			/* charged for writes in advance */
	u32 nr_long;			/* long gaps, in sixteenths */
	/* In this window. */
	bool compares;			/* it can be compared with the one before */
	bool window_unknown;		/* with writes of unknown cost */
	u64 from_busy_ns;
	u64 window_put_ns;
	u64 window_wrote_ns;
	u64 window_nr;			/* writes */
	s64 low_ns;			/* least that was charged in advance */
	s64 low_before_ns;		/* in the one before */
	/* What is to become of the costs of writes. */
	u32 nr_scales;
	u32 scale;			/* the last factor, 2^-10 */
	/* Since nothing is known of whoever writes. */
	u64 all_nr;
	u64 all_wrote_ns;
	u64 write_ns;			/* mean of a write in drains; or 0 */
};

/* Writes that the disk has taken and not yet written; see cache.c. */
struct dt_cache {
	struct dt_list writes;		/* in flight, by dispatch */
	u32 nr_writes;			/* of these */
	u64 done_ns;			/* when the head was done last */
	u32 nr_done;			/* so often it was, as far as is known */
	u64 counted_ns;			/* when that was counted last */
	s64 ahead_ns;			/* charged before the head has moved */
	u32 nr_taken;			/* writes that were done */
	u32 nr_long;			/* times that one was that took long */
	u32 run_long;			/* those in a row, up to now */
	u32 lonely;			/* part of reads with nothing else there, 2^-16 */
	u64 burst_ns;			/* writes apart from each other since then */
	u32 nr_burst;
	u32 absorbed;			/* part that was done at once, 2^-16 */
	u32 beside;			/* of large ones, beside a read; 2^-16 */
	/* The large write that was done last, if nothing was since. */
	u64 large_ns;			/* when; or 0 */
	u64 large_took_ns;		/* alone on the bus, or 0 */
	u32 large_size;			/* index of least_ns */
	u64 head_ns;			/* it was at a read until then; or 0 */
	/* What those that were took at least, by sectors' powers of two. */
	u32 least_ns[DT_CACHE_SIZES];
	u64 write_end;			/* the sector behind the last of them */
	u64 wrote_ns;			/* when that was done */
	u32 apart;			/* part of them that was far from it, 2^-16 */

	/* The span since a write has waited. */
	bool open;
	bool unsure;			/* with reads of which nothing is known */
	bool quickest;			/* some by the quickest of the group, none of which was alone */
	u32 nr;				/* writes */
	u64 from_busy_ns;		/* dev->busy_ns at its beginning */
	u64 fade_busy_ns;		/* its writes become cheaper after that */
	u32 fade_nr;			/* and so many of them */
	u64 known_ns;			/* reads, as they took */
	u64 guessed_ns;			/* others, at what is known of such */
	u64 charged_ns;			/* for the writes */
	u64 worth_ns;			/* what they seem worth */

	/* Writes of all groups, while these are unlike. */
	const struct dt_group *writer;	/* whose the last one was, by name only */
	u64 writer_worth_ns;		/* and what its writes seem worth */
	u64 unlike_ns;			/* when others' followed last; 0: never */
	u64 absorbs_ns;			/* when some were done at once; 0: never */
	u64 all_took_ns;		/* lately */
	u64 all_worth_ns;		/* and what these seemed worth */

	struct dt_drains drains;
};

/* Who goes first, and how long the device makes them wait; see depth.c. */
struct dt_light {
	bool on;			/* anybody goes first, or is held back */
	u32 nr;				/* light requests in this look */
	u32 most;			/* most in flight of the others */
	u32 judged;			/* so often in this look */
	bool slowly;			/* longer looks, and more is counted */
	bool well;			/* what they have while not is measured well */
	u64 look_ns;			/* a look takes so long, at least */
	u64 until_ns;			/* end of this look, at the earliest */

	struct dt_group *grp;		/* is favoured, or probed; or NULL */
	const struct dt_group *first;	/* the same, or who has a solo */
	struct dt_group *behind;	/* was light last, not favoured; or NULL */
	u32 slow;			/* by their share, of light groups; 2^-8 */
	u32 share;			/* by which that was; 2^-16 */
	u64 share_ns;			/* when somebody had it */
	u32 worth;			/* what others may lose for it; 2^-16 */
	u32 window;			/* of the costs, when the limit was moved */
	u32 rest;			/* of one that the limit is to fall by; 2^-16 */
	u32 slow_now;			/* of the last light one that was judged */
	u32 slow_leapt;			/* the same when the limit last fell far, or 0 */
	u32 slow_then;			/* of who is favoured, before it was */
	u32 stuck;			/* so long it did not help */
	bool beside_reads;		/* a write is late, and there are reads */
	bool helped;			/* it was, and with others held back it is not */
	u64 from_ns;			/* since when it is favoured */
	u64 read_ns;			/* when a read was completed last */

	u32 kept_then;			/* what was left to the others a window ago */
	u32 pause;			/* after one of them, in 2^-3 of what it took */
	u64 resume_ns;			/* when that is over */
	struct dt_group *awaited;	/* the device is kept idle for it */

	bool freeing;			/* nobody is held back for now */
	u64 others_done;		/* requests of all others, when it was judged */
	u64 others_ns;			/* since when there was no more */
	u32 limit_then;			/* what it was before */
	u64 free_from_ns;
	u64 free_next_ns;		/* not before this again */
	u64 free_seldom_ns;		/* nor this, where they may lose much more */
	u64 free_every_ns;		/* and so long apart */

	bool probing;			/* grp has the device for itself */
	u32 probe;			/* serial number */
	u32 limit;			/* what it was before the probe */
	struct dt_group *then;		/* who was favoured before it */
	const struct dt_group *probed;	/* who was last; never looked into */
	u64 alone_ns;			/* sum of latencies in it */
	u32 nr_alone;			/* of so many */
	u32 nr_first;			/* so many came before those */
	u64 probe_from_ns;
	u64 probe_end_ns;		/* of the last one */
	u64 quiet_ns;			/* the others' were done; 0: not yet */
	u64 probe_next_ns;		/* not before this */
	u64 probe_first_ns;		/* nor of a group that was in none */
	u64 probe_every_ns;		/* and so long apart */
};

/* What dev->commits counts of an item. */
enum dt_watched {
	DT_WATCHED_NOT,
	DT_WATCHED_SYNC,	/* a write that somebody waits for, until done */
	DT_WATCHED_ASYNC,	/* one that nobody does, in the device */
};

enum dt_commits_phase {
	DT_COMMITS_IDLE,	/* nobody commits, or there are no flushers */
	DT_COMMITS_WATCH,	/* commits are not in anybody's way */
	DT_COMMITS_SETTLE,	/* until a flush finds nothing of the flushers' */
	DT_COMMITS_OURS,	/* turn of who commits, and all others */
	DT_COMMITS_THEIRS,	/* turn of the flushers as well */
};

/* Who waits for flushes, and the flushers beside; see commit.c. */
struct dt_commits {
	u8 phase;			/* enum dt_commits_phase */
	bool called;			/* their turn, as nobody commits */
	bool full;			/* enough of theirs is in the device */
	u32 nr_open;			/* flushes in progress */
	u32 nr_inflight;		/* and in the device, */
	u64 sectors;			/* of this size */
	u32 nr_sync;			/* writes that somebody waits for */
	bool waits;			/* anybody does, for commits, as of */
	u64 asked_ns;			/* no later than this */
	u32 ratio;			/* of our turn by theirs, 2^-8 */
	u64 ratio_ns;			/* which holds until then */
	u64 since_ns;			/* beginning of the phase */
	u64 from_ns;			/* beginning of their turn */
	u64 until_ns;			/* end of ours */
	u64 look_ns;			/* when there is something to do, or 0 */
	u64 ended_ns;			/* the last flush */
	u64 again_ns;			/* no earlier is it the flushers again */
	u64 try_ns;			/* when to look what a flush can take */
	u64 least_ns;			/* least that a flush has taken */
	u64 gap_ns;			/* mean between two */
	struct dt_list queues;		/* struct dt_queue.party */
};

enum dt_spells_phase {
	DT_SPELLS_IDLE,		/* none */
	DT_SPELLS_WRITE,	/* turn of the writers */
	DT_SPELLS_DRAIN,	/* until what they left behind is written */
	DT_SPELLS_READ,		/* turn of the readers */
};

#define DT_SPELL_SHIFT		30

/* Readers one after the other; see slice.c. */
struct dt_slices {
	struct dt_group *grp;		/* has the device, or NULL */
	bool on;			/* there are some in this turn */
	bool holds;			/* some wait meanwhile who are ahead */
	bool pipes;			/* none has more in the device than enough */
	u64 until_ns;			/* end of this one */
	u64 quiet_ns;			/* from then on it was alone, or 0, */
	u64 units;			/* and read so much */
	u32 turn;			/* serial number of the writers' turn, */
	u32 run;			/* and of quick slots in a row */
	u8 passes;			/* so many slices tell what a group does alone */
	u32 nr_turns;			/* in which there could be some */
	u32 nr_unknown;			/* and in which it was not known what they do */
	u64 value[2];			/* least that one had, without and with; 2^-16 */
};

/* What each of several writers may send in their turn; see quota.c. */
struct dt_quota {
	u64 units;			/* so many are enough, or 0 */
	u64 enough;			/* the same in this turn */
	u64 sent;			/* to the device */
	struct dt_group *own;		/* who has this turn for itself, or NULL */
	u64 wrote;			/* units written by it */
	u32 turn;			/* serial number, */
	u32 spell;			/* and of the spells, since they began */
	u32 look;			/* at who writes, */
	u32 nr;				/* groups then, */
	u64 least;			/* units of their requests, */
	u64 most;			/* the least and the most of any */
	bool unlike;			/* several do, in requests that differ */
};

/* Readers and writers of flash by turns; see spell.c. */
struct dt_spells {
	u8 phase;			/* enum dt_spells_phase */
	bool both;			/* reads and writes were done lately */
	bool cut;			/* the writers' turn, by what they wrote */
	bool good;			/* they have paid, */
	u64 good_ns;			/* from then on */
	bool failed;			/* they have not, lately */
	u32 failures;			/* so often in a row it did not pay */
	u32 ratio;			/* of reads' turn by the writers', 2^-8 */
	u64 since_ns;			/* beginning of the phase */
	u64 from_ns;			/* of the writers' turn */
	u64 until_ns;			/* end of the readers', */
	u64 read_ns;			/* which is so long, or was */
	u64 slot_ns;			/* beginning of the slot */
	u64 look_ns;			/* end of the slot or the turn, or 0 */
	u64 units;			/* of reads done since it began */
	u64 nr_reads;			/* and so many, */
	u64 reads_ns;			/* their latencies, */
	u32 nr_most;			/* and so many at a time, the most of late */
	u64 theirs;			/* and in the writers' turn */
	u64 wrote;			/* units written in it */
	struct dt_quota quota;
	u64 reads_most;			/* who reads waits when so many were, by its share */
	u64 drain_ns;			/* how long the last drain took, */
	u64 took_ns;			/* and all from when the writers' turn began */
	u64 nr_drain;			/* reads done in this one */
	u64 taken_ns;			/* until then it had writes in the device */
	u64 run_ns;			/* beginning of a run of slots, */
	u64 run_units;			/* what was read in it, */
	u64 run_reads;			/* by so many, */
	u32 run_slots;			/* and so many there were */
	u64 rate;			/* of reads in the last run, a ns; 2^-30 */
	u64 best;			/* the most in two, one after the other */
	u64 most;			/* the same in any turn; it was less */
	u64 grew_ns;			/* until then, and */
	bool sees;			/* this one goes on as long as it grows */
	u32 nr_due;			/* so many slots in a row end a drain */
	u64 read_units;			/* in the readers' turn, until this slot */
	u32 nr_quick;			/* slots in a row, */
	u64 quick_ns;			/* from then on, */
	u64 quick_units;		/* in which so much was read, */
	u64 quick_rate;			/* and no less at a time */
	u64 owed_ns;			/* not charged to reads in it */
	u64 again_ns;			/* none before this */
	u64 off_ns;			/* how long none is tried */
	u64 late_ns;			/* latencies of reads, while there are none */
	u64 least_ns;			/* the least that those can be */
	u32 nr_late;
	struct dt_list queues;		/* writers: struct dt_queue.party */
	struct dt_slices slices;
};

/* Who waits for what goes on in another group: chain.c. */
struct dt_chain {
	struct dt_group *grp;		/* it does, or NULL */
	struct dt_group *wrote;		/* was the last, and is idle; or NULL */
	u32 serial;			/* of grp's chain; 0 is none's */
	u32 nr_links;			/* of it in flight */
};

struct dt_dev {
	struct dt_group *root;
	struct dt_tunables tun;
	struct dt_list groups;		/* all, parents before children */
	struct dt_list active;		/* groups that hold or want requests */
	u32 nr_active;
	u64 several_ns;			/* when there were two last */
	u32 nr_made;			/* groups so far */
	struct dt_list all;		/* queued items by arrival */
	struct dt_list express;		/* queued items that go at once */

	/* accounting: account.c */
	u64 clock_ns;			/* time of the last event */
	u64 vbusy;			/* integral of dt / N, 2^-16 ns */
	u64 busy_ns;			/* time with N > 0 */
	u64 charged_ns;			/* sum of all charges */
	u64 excess_ns;			/* cut off charges that were too long */
	u64 estimates_ns;		/* of all that is in flight */
	u64 nr_sectors;			/* in flight */
	u64 cost_ns[DT_NR_DIRS];	/* mean charge of an item */
	u64 service_ns;			/* mean to completion, with turns */
	u8 engine;			/* enum dt_engine */
	bool plain;			/* no turns, no fault, no other engine */

	/* what lies in the disk's cache: cache.c */
	struct dt_cache cache;

	/* what requests take, learned: cost.c */
	struct dt_fit fit;
	u32 crowd;			/* part of requests that waited, 2^-16 */
	u32 crowd_limit;		/* most do where it is more than this */
	struct dt_quick quick[DT_NR_DIRS];
	bool crowded;			/* most requests wait in the device */
	bool by_cost;			/* so that their costs are charged */

	/* who waits for flushes: commit.c */
	struct dt_commits commits;

	/* readers and writers by turns: spell.c */
	struct dt_spells spells;

	/* selection: select.c */
	u32 nr_queued;
	u32 nr_inflight;
	u32 nr_parked;			/* items in no line; see park.c */
	bool parking;			/* so are those of a party now */
	u32 depth_hw;			/* what the device takes at once */
	u32 depth;			/* how many items may be in flight */
	u32 limit;			/* how many of those that are not light */
	u32 nr_heavy;			/* so many of those are in flight */
	struct dt_light light;
	struct dt_wide wide;
	struct dt_lead lead;
	struct dt_serial serial;
	struct dt_solo solo;
	struct dt_written written;
	u64 slice_ns;			/* of a turn; 0: there are no turns */
	bool rotational;
	struct dt_chain chain;
	bool holding;			/* idle for turn_grp's, turn_queue's or light.awaited's next */
	bool back_soon;			/* was before back_until_ns when reviewed */
	bool work;			/* has_work; written under the lock */
	struct dt_group *turn_grp;	/* whose turn it is, or NULL */
	struct dt_queue *turn_queue;	/* whose turn within it, or NULL */
	struct dt_group *back;		/* had paused, and waits; or NULL */
	u64 back_until_ns;		/* one may be, until then */
	struct dt_queue *last_queue;	/* of the last dispatched item */
	u64 head_sector;		/* where what was done last ended */
	u64 turn_used_ns;		/* disk time used in this turn */
	u64 turn_queue_ns;		/* of it charged to turn_queue for reads */
	u64 turn_idle_ns;		/* and what it was waited for meanwhile */
	u64 hold_until_ns;
	u64 hold_idle_ns;		/* idle time not yet charged */
	u64 idle_clock_ns;		/* total time held idle */
	u64 last_sector;		/* end of the last dispatched item */
	u64 last_dispatch_ns;
	u64 class_dispatch_ns[DT_NR_CLASSES]; /* when each was dispatched last */

	/* requests: gate.c */
	u32 tags;			/* how many requests exist */
	u32 nr_waiting;			/* waiters not yet granted */
	u32 nr_granted;			/* granted, not yet turned into a request */

	/* health.c */
	u8 fault;			/* enum dt_fault */
	struct dt_counts counts;
};

/* entity.c: the tree of groups and queues */
void dt_group_init(struct dt_group *grp, struct dt_dev *dev,
		   struct dt_group *parent, u32 weight, enum dt_class class);
/* Nothing may be queued, in flight or waiting, nor any child or queue left. */
void dt_group_exit(struct dt_group *grp);
void dt_queue_init(struct dt_queue *queue, struct dt_group *grp, bool sync,
		   u32 weight, enum dt_class class, u64 now);
void dt_queue_exit(struct dt_queue *queue);
bool dt_group_busy(const struct dt_group *grp);
bool dt_queue_busy(const struct dt_queue *queue);
void dt_entity_set_weight(struct dt_entity *ent, u32 weight);
void dt_entity_set_class(struct dt_entity *ent, enum dt_class class, u64 now);

/* queue.c, select.c: the life of an item */
void dt_dev_init(struct dt_dev *dev, struct dt_group *root, u32 depth_hw,
		 u32 tags, bool rotational, u64 now);
/* The limits of the device or of its requests have changed. */
void dt_dev_resize(struct dt_dev *dev, u32 depth_hw, u32 tags, u64 now);
void dt_dev_tune(struct dt_dev *dev, const struct dt_tunables *tun, u64 now);
/* Another rule than that which suits the device. */
void dt_dev_engine(struct dt_dev *dev, enum dt_engine engine);

enum dt_insert_flags {
	DT_INSERT_HEAD = 1,	/* first inside its group */
	DT_INSERT_EXPRESS = 2,	/* holds up others: goes at once, as debt */
};

void dt_insert(struct dt_dev *dev, struct dt_queue *queue,
	       struct dt_item *item, enum dt_dir dir, u64 sector, u32 sectors,
	       unsigned int flags, u64 now);
/*
 * The same and its dispatch at once, for a fraction of the cost: true if @item
 * is for the device to have now. False, with nothing changed, where anything is
 * queued before it (so that it never goes express), the device is full or there
 * are turns.
 */
bool dt_pass(struct dt_dev *dev, struct dt_queue *queue, struct dt_item *item,
	     enum dt_dir dir, u64 sector, u32 sectors, u64 now);
/* A queued item that has been merged into another, or is freed undispatched. */
void dt_remove(struct dt_dev *dev, struct dt_item *item, u64 now);
/* A queued item that a merge has made longer; at the front if sector is less. */
void dt_grow(struct dt_dev *dev, struct dt_item *item, u64 sector, u32 sectors);
/* The queued item of this queue that begins at @sector, or NULL. */
struct dt_item *dt_queue_find(struct dt_queue *queue, u64 sector);
struct dt_item *dt_item_next(struct dt_item *item);
struct dt_item *dt_item_prev(struct dt_item *item);
/* The next item for the device, or NULL; O(log n). */
struct dt_item *dt_dispatch(struct dt_dev *dev, u64 now);
/* A dispatched item that is done; any other is left alone. Returns the charge. */
u64 dt_complete(struct dt_dev *dev, struct dt_item *item, u64 now);
/*
 * What an item of @queue took, where dev->engine says that somebody knows: the
 * simulator, to judge all else without the accounting. To be called as often
 * and as late as more becomes known, also when the item is long complete;
 * @estimate_ns is the item's at the first call, and 0 later.
 */
void dt_charge(struct dt_dev *dev, struct dt_queue *queue, enum dt_dir dir,
	       u64 took_ns, u64 estimate_ns, u64 now);
/* A dispatched item that the device gave back: it will be inserted again. */
void dt_requeue(struct dt_dev *dev, struct dt_item *item, u64 now);
/* Time has passed: to be called at the time that dt_wake_at() gave. */
void dt_tick(struct dt_dev *dev, u64 now);
/* When to call dt_tick(), or 0 for never. */
static inline u64 dt_wake_at(const struct dt_dev *dev)
{
	return dev->holding ? dev->hold_until_ns :
	       dev->commits.look_ns ? dev->commits.look_ns :
				      dev->spells.look_ns;
}
/*
 * Somebody waits for the device to have written its cache, and does no more:
 * @begun_ns is what the time was when it began.
 */
void dt_commit_begin(struct dt_dev *dev, u64 now);
void dt_commit_end(struct dt_dev *dev, u64 begun_ns, u64 now);
/* Lockless: whether dt_dispatch() would return an item. */
static inline bool dt_has_work(const struct dt_dev *dev)
{
	return READ_ONCE(dev->work);
}

/*
 * Lockless: whether any item waits in here, in line or parked. Those that are
 * parked and let go again are in here all the time.
 */
static inline bool dt_has_items(const struct dt_dev *dev)
{
	return READ_ONCE(dev->nr_queued) ||
	       READ_ONCE(dev->all.next) != &dev->all;
}

/* gate.c: who gets the next free request */
/* A request is free: may @queue have it at once? Grants it if so. */
bool dt_gate_enter(struct dt_dev *dev, struct dt_queue *queue);
void dt_gate_wait(struct dt_dev *dev, struct dt_waiter *waiter,
		  struct dt_queue *queue, u64 now);
void dt_gate_cancel(struct dt_dev *dev, struct dt_waiter *waiter, u64 now);
/*
 * The waiter to get the next free request, no longer waiting; or NULL if there
 * is none, or if it has its part and the device enough to do.
 */
struct dt_waiter *dt_gate_grant(struct dt_dev *dev, u64 now);
/* A request granted to @queue now exists (was queued), or was given up. */
void dt_gate_settle(struct dt_dev *dev, struct dt_queue *queue);

/* health.c */
void dt_fail(struct dt_dev *dev, enum dt_fault fault, u64 now);
void dt_rearm(struct dt_dev *dev, u64 now);
/* Look for requests that wait past the limit; every second or so. */
void dt_watch(struct dt_dev *dev, u64 now);
const char *dt_fault_name(enum dt_fault fault);

/* check.c: 0, or the number of the first invariant that does not hold. */
int dt_check(struct dt_dev *dev);
const char *dt_invariant(int number);

/* dump.c: the whole state as text, a line a call. */
void dt_dump(struct dt_dev *dev, void (*line)(void *arg, const char *text),
	     void *arg);

#endif /* DISKTIME_CORE_H */
