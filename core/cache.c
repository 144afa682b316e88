// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Write caches: who pays for writes that were complete before they were begun?
 *
 * A disk with a volatile cache says that a write is done when it lies there.
 * The head moves for it later, in the time of whoever waits for the head then.
 * Charged by the gap (account.c) a writer has its writes for almost nothing,
 * and others pay: of three groups at 8:4:1, of which the last one writes, that
 * one had 52 % of the disk behind a cache of 1000 writes, where 8 are due.
 *
 * How large the cache is, and when it writes what, nobody says. But there are
 * moments at which it is known to be full: when a write is done that has had to
 * wait. Between two of these as many writes have left the cache as have entered
 * it, so that the time between them is what these writes took of the head, and
 * the reads that were done meanwhile:
 *
 *	T = W + R
 *
 * What the reads took is known where a write was waiting all the while, as then
 * nothing was written in between: the gap is theirs alone. Other reads are put
 * down at the mean of their group's known ones, for as many as the disk had to
 * choose from; spans that are nearly all those are not learned from. So W, and
 * the number of writes, give what a write of the group takes. That is right for
 * writes anywhere, in a row, and over and over to the same place, which take
 * almost nothing, as the disk does it.
 *
 * - A write that did not wait is charged this mean, and no time of its own: the
 *   head was busy with something else. It is in advance (cache.ahead_ns).
 * - A write that waited closes a span: it is charged what the writes of the span
 *   took and were not charged yet. A span that says nothing: the mean.
 * - Reads whose gap may hold somebody else's writing are charged less than it,
 *   by a part that grows with what is charged in advance, a second of it being
 *   all. A gap of more than twice the known mean is cut off there beforehand.
 *
 * Who is taken for dearer than he is fills the cache no more, and then no span
 * ends: he had 27 % of the disk where 62 were due, for a minute. But a span need
 * not end to say something. The cache was full when it began and is no fuller
 * now, so that at least as many writes have been written since as were taken, in
 * what the reads have left of the time:
 *
 *	number of writes * cost <= T - R
 *
 * That holds whenever one looks, and if what some reads took is not known at all.
 * Those that are put down at their mean count less here: it is of reads beside a
 * full cache. What that leaves of the error goes by and by: in a span of thousands
 * of writes they become cheaper bit by bit until one has to wait, as more of them
 * fill the cache.
 *
 * What the disk chooses from. It serves what is nearest, so that a read takes the
 * less the more there are. A tenth less for each doubling makes 31 at a time twice
 * as fast as one; of disks with NCQ 2.0 to 2.9 times has been measured. Known reads
 * are those that shared the disk with a write that waited and with few others;
 * where they are guessed it was full of them. Taken for alike, reads of 3.4 ms were
 * put down at 4.4 to 4.8, and the writes at what that left: who wrote 64 KB in a row
 * had 65.2 % of the disk's time where 61.5 were due, and now 62.3. But where the
 * cache holds writes from all over the disk it has those to choose from at all
 * times, and what a read takes does not go by how many of them there are: it is
 * what it were with as many as the disk takes. Nor does it for who reads on, who
 * is as near as can be: taken for one of those who are chosen from, a reader of
 * 64 KB in a row beside a buffered writer had 41 to 47 % of the disk, for 50.
 *
 * Where the cache never fills, but is written out in one go while a read waits,
 * that is seen, and is what is learned by and charged: drain.c.
 *
 * Thus all charges add up to the busy time and what is charged in advance, which
 * is at most a few seconds, and of a steady load always the same.
 *
 * What a completion says of time may be late, most of all in a virtual machine.
 * So who has waited is not told by its latency alone: meanwhile the head was
 * done with two other things at least, at different times. By latency alone, on
 * a busy host, one write was charged a long span that was none, and its group
 * stood still for 70 s. Things are reads, and writes that have waited. Beside one
 * reader with a request at a time there are hardly any, and no write waits for
 * two, so that none ever has: the reader was charged what the disk wrote while it
 * waited, and had 1.5 % of it where 50 were due. So there it is enough that
 * several writes took as long, which a late completion alone does not make. And
 * where reads come one at a time, as on a disk that takes no more or in a turn of
 * one reader, and there are not so many writes in the device either, that three
 * in a row did: he had 5 to 20 %, beside whoever wrote at random.
 *
 * A machine that is slow passes on one by one what a cache has taken in a burst,
 * so that hardly any write seems to be done at once and most seem to have waited.
 * But no head is done with sixteen of them that are apart in 8 ms, nor with two in one.
 *
 * Such a reader has the disk for itself, and what there was in the cache to choose
 * from is soon written: what it takes then is the mean of gaps that are not long
 * (drain.c). Taken for what it takes among a full cache its reads were put down at a
 * third, and the writes at what that left: it had 60 to 80 %.
 *
 * A disk that takes one request at a time has the next read only when the last is
 * done, and begins to write before it comes. So none of them is known to have had the
 * head alone, and spans with reads said nothing: writes were put down at what they
 * take while nobody reads, each next to the one before, two thirds of what it is with
 * the way to and from the reads. In a machine, where a read is told late and comes
 * later still, the reader had 11 to 39 % of the disk, four runs, and without any
 * scheduler half of it. There reads are put down at the mean of the quickest quarter
 * of their gaps, which is what they take where nothing was written before them: among
 * what a cache holds the disk takes a read when it is near. And where no span ends, as
 * the cache is never full, writes become dearer by and by until they and the reads make
 * up the time, once there were 512 of them, of which those of long ago count less and
 * less: put down too low once, writes fill the cache, and even the quickest reads wait
 * (27 points off, one start of five, where all of a span counts). Shares of the reader
 * 0.57 for 0.44 behind 128 and 0.52 for 0.40 behind 32, two seeds, and in the machine
 * 0.57 to 0.62, four runs. Rejected: four fifths of the quicker half (the same), all
 * of it, or a third (0.36 to 0.46); the quickest quarter without the second rule (0.33
 * to 0.42); either on disks that queue, where reads that were alone are known (who
 * writes eight at a time, 20 ms apart, 0.35 for 0.56).
 *
 * Several writers. While a write waits for room the disk writes what the cache is
 * full of, and that is another's as often as not: a turn is shorter than it takes to
 * write what others have left. Where all writes are alike it does not matter whose
 * they are. Who wrote 4 KB in a row beside one who wrote megabytes paid for those,
 * and had a hundredth of the disk. So where writers are unlike, what all writes of
 * the last seconds took is divided among them by what each seems worth: a way of
 * 2 ms, or next to none of one that goes on where the last one of its process ended,
 * and 5 us for each sector. Only the ratio of the two matters, and by disks of these
 * twenty years it is off by no more than a factor of two; the share then is 0.26 to
 * 0.63 where a half is due. A cache that is full all the time is not seen to take
 * anything at once; that it is there is remembered.
 *
 * Without a cache the head goes on from one write to the next in less time than it
 * takes to anywhere else. That is told by the second having been in the device when
 * the first was done, and by its taking no less than what passes under a head.
 *
 * Large writes take longer over the bus than small ones behind a full cache: a
 * megabyte 3.5 ms at 300 MB/s. But the head can be at one thing at a time. Where
 * it is done with a read within a millisecond of a large write, of many of them,
 * it was not at the write: there is a cache, and what such a write took, if no
 * other one came in between, is what the bus takes. Who comes with k others takes
 * k times as long. So long no write of this size is said to have waited. Taken
 * for writes by the head, and charged the bus, a light writer of megabytes had
 * 15 to 28 % of the disk where 7.7 are due; now 6 to 9. Not if the cache never
 * fills: then nothing is known but that there is one.
 *
 * Nobody can leave more in the cache than its share, for long: what it has put
 * there it has been charged, and it stands as far back. A group whose writes
 * never wait (it writes little, or the cache is that of an array) is charged its
 * gaps: nothing is known of its writes, and it does not fill the cache.
 *
 * On a disk without a cache, or behind one that is always full, writes wait for
 * the head; while hardly any are done at once gaps are exact, and are charged. A
 * span begins with each write that waits then, too: when those that come next are
 * cheaper and no longer wait, the last of them is the moment to count from.
 *
 * Rejected: to learn what a read takes while nobody writes, and to charge the
 * rest to who wrote (the error of the one, 3 %, is a half of a light writer's
 * share, and with few writes in the cache the disk serves reads at another
 * cost); least squares over spans for both (a write's cost changes with what it
 * stands among, and that goes with the number of reads); to guess when the
 * cache has been emptied (a guess too early makes reads look dearer, writes
 * cheaper, and the next guess earlier still); the bound with reads at their full
 * mean (who writes anywhere had 48 % of the disk instead of 31); to have writes
 * become cheaper with time alone (dear ones fill no cache meanwhile: 48 %, too); to
 * tell large absorbed writes by the least latency of their size alone (without a
 * cache that is one, too: 66.8 % for 61.5).
 */
#include "cache.h"
#include "drain.h"
#include "line.h"
#include "select.h"

/*
 * Who is done sooner has not waited: the head hardly reaches anything so soon.
 * Nor has, whatever it took, who has not seen the head done with that many.
 */
#define ABSORBED_NS		DT_NSEC_PER_MSEC
#define WAITED_FOR		2
/* Where there are too few reads for that, that many other writes that took long. */
#define WAITED_FOR_LONG		8
/* Or that many in a row with it, where there are not so many at a time. */
#define WAITED_IN_A_ROW		3
/* That is where so many reads have the device for themselves; 2^-16. */
#define ONE_BY_ONE		32768
#define LONELY_SHIFT		6
#define APART_NS		(DT_NSEC_PER_MSEC / 4)
#define ABSORBED_SHIFT		6
/* No bus takes longer for a sector: 16 MB/s. */
#define BUS_NS			(DT_NSEC_PER_MSEC / 32)
/* Nor does one pass under a head in less: 500 MB/s. */
#define UNDER_LEAST_NS		DT_NSEC_PER_USEC
/* The least that a size took becomes more by this part with each that says it. */
#define LEAST_GROWS		256

/* Means go over so much time, or so many reads. */
#define WRITES_NS		DT_NSEC_PER_SEC
#define READS			64
/* Nothing is known before so much was seen. */
#define WRITES_MIN_NS		(WRITES_NS / 16)
#define WRITES_MIN		8
#define READS_MIN		8

/* A read takes so much less for each doubling of what the disk chooses from. */
#define CHOICE			102		/* a tenth, 2^-10 */
/* That is no more than this, NCQ's, and as much with writes from all over. */
#define CHOICE_MOST		32
/* A write that is further from the one before than this is apart from it. */
#define APART_SECTORS		8192
#define APART_SHIFT		6
/* So many of those are a burst in so little time. */
#define BURST			16
#define BURST_NS		(8 * DT_NSEC_PER_MSEC)

/* In a span, reads at their mean are at most so many times its writes. */
#define GUESSED			6
/* Where nothing is known of its writes yet, of what it leaves them itself. */
#define GUESSED_FIRST		3

/* The write that closes a span is charged no more than this, or its gap. */
#define CLOSING_MAX_NS		(100 * DT_NSEC_PER_MSEC)
/* And what a span says of its writes is at most so many times what was known. */
#define STRANGE			4

/* A span is so long, at least, that says something before its end. */
#define BOUND_NS		DT_NSEC_PER_SEC
/* Reads have taken at least so much of what they are put down at. */
#define READS_SURE(ns)		((ns) * 13 / 16)
/* After so many writes of a span, and so long, they are cheaper by this part. */
#define FADE_WRITES		4096
#define FADE_NS			(2 * DT_NSEC_PER_SEC)
#define FADE			32

/* Gaps of reads: by so much of what is known for each of them. */
#define GAPS			32
/* After so many writes of a span they are dearer, by this part of what they might be. */
#define RAISE_WRITES		512
#define RAISE			128

/*
 * What writes seem worth, beside each other: the way to one, or a part of that for
 * who writes on, and what passes under the head.
 */
#define WAY_NS			(2 * DT_NSEC_PER_MSEC)
#define WAYS			128
#define UNDER_NS		(5 * DT_NSEC_PER_USEC)
#define WORTH_SHIFT		4
/* Writers whose writes are unlike are there for so long. */
#define UNLIKE_NS		(4 * DT_NSEC_PER_SEC)
/* What all took is of so long. */
#define ALL_NS			(4 * DT_NSEC_PER_SEC)
/* A disk that had a cache has one. */
#define HAD_CACHE_NS		(600ull * DT_NSEC_PER_SEC)

/* With so much charged in advance a read is charged next to nothing. */
#define AHEAD_NS		((s64)DT_NSEC_PER_SEC)
/* It is no more than this. */
#define AHEAD_MAX_NS		(4 * AHEAD_NS)

void dt_cache_init(struct dt_cache *cache)
{
	*cache = (struct dt_cache) { 0 };
	dt_list_init(&cache->writes);
}

static void begin_span(struct dt_dev *dev)
{
	struct dt_cache *cache = &dev->cache;

	cache->from_busy_ns = dev->busy_ns;
	cache->fade_busy_ns = dev->busy_ns + FADE_NS;
	cache->fade_nr = FADE_WRITES;
	cache->nr = 0;
	cache->worth_ns = 0;
	cache->known_ns = 0;
	cache->guessed_ns = 0;
	cache->unsure = false;
	cache->quickest = false;
	cache->open = true;
}

/* The index of a write's size; less than 0: no bus takes long for it. */
static int size_of(const struct dt_item *item)
{
	return dt_min(25 - __builtin_clz(item->sectors | 1), DT_CACHE_SIZES - 1);
}

/* A write that has not waited was done before that, as far as is known. */
static u64 latest(const struct dt_cache *cache, const struct dt_item *item)
{
	int size = size_of(item);
	u64 takes = 0;

	if (size >= 0)
		takes = dt_min(cache->least_ns[size], item->sectors * BUS_NS);
	takes += takes / 2;
	/* Those before it came over the bus, too. */
	takes *= 1 + cache->nr_taken - item->taken_before;
	return item->dispatch_ns + dt_max(takes, ABSORBED_NS);
}

/* Whether a write has stayed in the device longer than the cache takes. */
static bool took_long(const struct dt_dev *dev, const struct dt_item *item)
{
	return dt_before(latest(&dev->cache, item), dev->clock_ns);
}

/* Reads come one at a time, so that there is hardly anything to tell them by. */
static bool one_by_one(const struct dt_dev *dev)
{
	return dev->depth_hw == 1 || dev->cache.lonely >= ONE_BY_ONE;
}

/* And if so, whether that is because the head had other things to do. */
static bool has_waited(const struct dt_dev *dev, const struct dt_item *item)
{
	const struct dt_cache *cache = &dev->cache;
	bool few_reads = dev->nr_inflight - cache->nr_writes < WAITED_FOR;

	return cache->nr_done - item->done_before >= WAITED_FOR ||
	       (few_reads &&
		(cache->nr_long - item->long_before > WAITED_FOR_LONG ||
		 (one_by_one(dev) &&
		  cache->run_long >= WAITED_IN_A_ROW)));
}

/* It leaves the device; if it is a write, it was on the list. */
static void forget_write(struct dt_cache *cache, struct dt_item *item)
{
	if (!dt_list_empty(&item->fifo))
		cache->nr_writes--;
	dt_list_unlink(&item->fifo);
}

/*
 * A write took long. The head is done with one no sooner than that after another,
 * where a slow machine passes on those of a burst one by one.
 */
static void note_long(struct dt_cache *cache, u64 now)
{
	if (!dt_before(cache->wrote_ns + ABSORBED_NS, now))
		return;
	cache->nr_long++;
	cache->run_long++;
}

/*
 * Whether one has been there for so long ever since the head was done last. What
 * is told late makes a read dearer in the mean than it is, and then by little.
 */
static bool always_full(const struct dt_cache *cache)
{
	const struct dt_item *oldest;

	if (dt_list_empty(&cache->writes))
		return false;
	oldest = DT_CONTAINER(cache->writes.next, struct dt_item, fifo);
	return dt_before(latest(cache, oldest), cache->done_ns);
}

static void learn_writes(struct dt_group *grp, u64 took_ns, u32 nr)
{
	struct dt_head *head = &grp->head;

	head->by_drains = false;
	head->took_ns += took_ns;
	head->nr += nr;
	if (head->write_ns ||
	    (head->nr >= WRITES_MIN && head->took_ns >= WRITES_MIN_NS))
		head->write_ns = dt_max(dt_div(head->took_ns, head->nr), 1);
	while (head->took_ns > WRITES_NS && head->nr > 1) {
		head->took_ns /= 2;
		head->nr /= 2;
	}
}

/* The binary logarithm of @nr, 2^-10, straight between powers of two. */
static u32 log2_of(u32 nr)
{
	u32 whole = 31 - (u32)__builtin_clz(nr);

	return whole * 1024 + (((nr - (1u << whole)) * 1024) >> whole);
}

/*
 * Part of what a read takes alone in the disk that it takes among what is there
 * now, 2^-10: from all of it down to a half. Who reads on is as near as can be.
 */
static u32 choice(const struct dt_dev *dev, const struct dt_queue *queue)
{
	u32 nr = dt_max(dt_min(dev->nr_inflight, CHOICE_MOST), 1);
	u32 most = log2_of(CHOICE_MOST), less = log2_of(nr);

	if (queue->seek_mean < DT_SEEKY_SECTORS)
		return 1024;
	less += ((most - less) * (dev->cache.apart >> 6)) >> 10;
	return 1024 - ((less * CHOICE) >> 10);
}

/*
 * What a read of the queue takes now, as far as is known of its group. Alone in the
 * device it takes what such reads do (drain.c): what there is to choose from in a
 * cache is soon written.
 */
static u64 read_takes(const struct dt_dev *dev, const struct dt_queue *queue)
{
	const struct dt_head *head = &queue->grp->head;
	u64 takes = (head->read_ns * choice(dev, queue)) >> 10;

	if (dev->nr_inflight == 1 && one_by_one(dev))
		takes = dt_max(takes, head->short_ns);
	return takes;
}

/* It was done in @gap_ns, and nothing else was. */
static void learn_read(const struct dt_dev *dev, const struct dt_queue *queue,
		       u64 gap_ns)
{
	struct dt_head *head = &queue->grp->head;

	gap_ns = dt_div(gap_ns << 10, choice(dev, queue));
	if (head->nr_reads < READS)
		head->nr_reads++;
	head->read_ns += (s64)(gap_ns - head->read_ns) / (s64)head->nr_reads;
}

/* What a write seems worth beside others, without knowing the disk. */
static u64 seems_worth(const struct dt_item *item)
{
	u64 way = item->queue->seek_mean < DT_SEEKY_SECTORS ? WAY_NS / WAYS :
							      WAY_NS;

	return way + item->sectors * UNDER_NS;
}

static bool unlike(u64 a, u64 b)
{
	return 4 * a > 5 * b || 4 * b > 5 * a;
}

/* A write is done, of one group or another. */
static void note_worth(struct dt_dev *dev, const struct dt_item *item)
{
	struct dt_group *grp = item->queue->grp;
	struct dt_cache *cache = &dev->cache;
	u64 worth = seems_worth(item), *mean = &grp->head.worth_ns;

	if (!*mean)
		*mean = worth;
	*mean += (s64)(worth - *mean) / (1 << WORTH_SHIFT);
	if (cache->writer && cache->writer != grp &&
	    unlike(*mean, cache->writer_worth_ns))
		cache->unlike_ns = dev->clock_ns;
	cache->writer = grp;
	cache->writer_worth_ns = *mean;
	cache->worth_ns += worth;
}

/* Whether the writes that fill the cache are of several kinds, which it mixes. */
static bool writes_unlike(const struct dt_dev *dev)
{
	const struct dt_cache *cache = &dev->cache;

	return cache->unlike_ns && cache->absorbs_ns &&
	       dt_before(dev->clock_ns, cache->unlike_ns + UNLIKE_NS) &&
	       dt_before(dev->clock_ns, cache->absorbs_ns + HAD_CACHE_NS);
}

static void learn_all(struct dt_cache *cache, u64 took_ns)
{
	cache->all_took_ns += took_ns;
	cache->all_worth_ns += cache->worth_ns;
	while (cache->all_took_ns > ALL_NS) {
		cache->all_took_ns /= 2;
		cache->all_worth_ns /= 2;
	}
}

/* What so much seems worth, by what all have taken. */
static u64 worth_takes(const struct dt_cache *cache, u64 worth_ns)
{
	u64 scale = dt_div(cache->all_took_ns << 10,
			   dt_max(cache->all_worth_ns, 1));

	return (worth_ns * dt_min(scale, 1 << 14)) >> 10;
}

/* A write has waited: the cache is full. What it is charged. */
static u64 end_span(struct dt_dev *dev, struct dt_group *grp, u64 gap_ns)
{
	struct dt_cache *cache = &dev->cache;
	u64 took = dev->busy_ns - cache->from_busy_ns, charge = gap_ns;
	u64 reads = cache->known_ns + cache->guessed_ns, most, mean;

	cache->nr++;
	mean = grp->head.write_ns;
	most = mean ? GUESSED * cache->nr * mean :
		      GUESSED_FIRST * (took - dt_min(took, reads));
	if (cache->open && !cache->unsure && cache->guessed_ns <= most) {
		took -= dt_min(took, reads);
		/* One strange span is not to be believed. */
		if (mean)
			took = dt_min(took, STRANGE * cache->nr * mean +
					    CLOSING_MAX_NS);
		learn_writes(grp, took, cache->nr);
		learn_all(cache, took);
	} else {
		took = cache->nr * mean;
	}
	if (mean) {
		/* What is too much already is kept for the next. */
		charge = took - dt_min(took, cache->charged_ns);
		charge = dt_min(charge, dt_max(gap_ns, CLOSING_MAX_NS));
		cache->charged_ns -= dt_min(took, cache->charged_ns);
		cache->charged_ns = dt_min(cache->charged_ns, CLOSING_MAX_NS);
	} else {
		cache->charged_ns = 0;
	}
	begin_span(dev);
	return charge;
}

/* The same bounds what all take, while they are unlike. */
static void bound_all(struct dt_cache *cache, u64 most)
{
	u64 takes = worth_takes(cache, cache->worth_ns);

	if (takes > most)
		cache->all_took_ns = cache->all_took_ns *
				     dt_div(most << 10, takes) >> 10;
}

/* What was long ago in the span that is open counts for a half. */
static void halve_span(struct dt_dev *dev)
{
	struct dt_cache *cache = &dev->cache;

	cache->from_busy_ns += (dev->busy_ns - cache->from_busy_ns) / 2;
	cache->nr /= 2;
	cache->worth_ns /= 2;
	cache->known_ns /= 2;
	cache->guessed_ns /= 2;
	cache->charged_ns /= 2;
}

/*
 * Nor have they taken much less, once there were more of them than most caches hold. So
 * where reads are put down at no more than they take themselves what is left is writes'.
 */
static void raise_writes(struct dt_dev *dev, struct dt_head *head)
{
	struct dt_cache *cache = &dev->cache;
	u64 took = dev->busy_ns - cache->from_busy_ns, left;
	u64 reads = cache->known_ns + cache->guessed_ns;

	if (cache->unsure || cache->nr < RAISE_WRITES)
		return;
	left = dt_div(took - dt_min(took, reads), cache->nr);
	if (cache->nr >= 2 * RAISE_WRITES)
		halve_span(dev);
	if (8 * head->write_ns >= 7 * left)
		return;
	head->write_ns += (left - head->write_ns) / RAISE;
	head->took_ns = head->write_ns * head->nr;
}

/* The writes of the span that is open have not taken more than was left. */
static void bound_writes(struct dt_dev *dev, struct dt_group *grp)
{
	struct dt_cache *cache = &dev->cache;
	struct dt_head *head = &grp->head;
	u64 took, reads, most, least;

	if (!cache->open || !head->write_ns)
		return;
	if (cache->nr >= cache->fade_nr &&
	    !dt_before(dev->busy_ns, cache->fade_busy_ns)) {
		cache->fade_nr = cache->nr + FADE_WRITES;
		cache->fade_busy_ns = dev->busy_ns + FADE_NS;
		head->write_ns -= head->write_ns / FADE;
		head->took_ns -= head->took_ns / FADE;
		cache->all_took_ns -= cache->all_took_ns / FADE;
	}
	took = dev->busy_ns - cache->from_busy_ns;
	if (took < BOUND_NS)
		return;
	if (cache->quickest) {
		raise_writes(dev, head);
		took = dev->busy_ns - cache->from_busy_ns;
	}
	reads = cache->known_ns + READS_SURE(cache->guessed_ns);
	least = cache->guessed_ns / GUESSED;
	most = dt_max(took - dt_min(took, reads), least);
	bound_all(cache, most);
	if (cache->nr * head->write_ns <= most)
		return;
	head->write_ns = dt_max(dt_div(most, cache->nr), 1);
	head->took_ns = head->write_ns * head->nr;
}

static u64 charge_write(struct dt_dev *dev, const struct dt_item *item,
			u64 gap_ns, bool waited)
{
	struct dt_group *grp = item->queue->grp;
	struct dt_cache *cache = &dev->cache;
	u64 charge = gap_ns;

	if (waited) {
		charge = end_span(dev, grp, gap_ns);
	} else {
		bound_writes(dev, grp);
		charge = dt_drain_write(dev, grp, gap_ns);
		cache->nr++;
		cache->charged_ns += charge;
	}
	/* What is written while one waits are others'. */
	if (writes_unlike(dev) && !cache->drains.on &&
	    cache->all_took_ns >= WRITES_MIN_NS)
		charge = worth_takes(cache, seems_worth(item));
	return charge;
}

/* No read is ever known to have had the head alone, as writes do not wait beside one. */
static bool none_alone(const struct dt_dev *dev, const struct dt_head *head)
{
	return dev->depth_hw == 1 && head->nr_reads < READS_MIN;
}

/* What the quickest quarter of reads takes: before most of these nothing was written. */
static void note_gap(struct dt_head *head, u64 gap_ns)
{
	if (!head->nr_quick) {
		head->quarter_ns = gap_ns;
		head->quick_ns = gap_ns;
	}
	if (gap_ns > head->quarter_ns) {
		head->quarter_ns += head->quarter_ns / GAPS;
		return;
	}
	head->quarter_ns -= 3 * head->quarter_ns / GAPS;
	if (head->nr_quick < GAPS)
		head->nr_quick++;
	head->quick_ns += (s64)(gap_ns - head->quick_ns) /
			  (s64)head->nr_quick;
}

/* What is done with a read, whatever it is charged. */
static void note_read(struct dt_dev *dev, const struct dt_queue *queue,
		      u64 gap_ns, bool alone)
{
	struct dt_head *head = &queue->grp->head;
	struct dt_cache *cache = &dev->cache;

	if (alone) {
		learn_read(dev, queue, gap_ns);
		cache->known_ns += gap_ns;
	} else if (none_alone(dev, head)) {
		note_gap(head, gap_ns);
		cache->guessed_ns += dt_min(gap_ns, head->quick_ns);
		cache->quickest = true;
	} else if (head->nr_reads >= READS_MIN) {
		cache->guessed_ns += read_takes(dev, queue);
	} else {
		cache->unsure = true;
	}
}

static u64 charge_read(struct dt_dev *dev, const struct dt_item *item,
		       u64 gap_ns, bool alone)
{
	const struct dt_queue *queue = item->queue;
	struct dt_cache *cache = &dev->cache;
	bool drained = dt_drain_read(dev, item, gap_ns, alone);
	u64 charge = gap_ns;
	s64 part;

	if (cache->drains.on && !alone) {
		if (drained)
			charge = queue->grp->head.short_ns;
		cache->known_ns += charge;
		return charge;
	}
	note_read(dev, queue, gap_ns, alone);
	if (alone || !cache->ahead_ns)
		return gap_ns;
	if (cache->ahead_ns > 0 && queue->grp->head.nr_reads >= READS_MIN)
		charge = dt_min(charge, 2 * read_takes(dev, queue));
	/* In 64ths; who was charged too little gives back by no more than half. */
	part = cache->ahead_ns / (AHEAD_NS / 64);
	part = part > 63 ? 63 : part < -32 ? -32 : part;
	return charge - (s64)(charge / 64) * part;
}

u64 dt_cache_back(struct dt_dev *dev, struct dt_item *item, u64 gap_ns)
{
	forget_write(&dev->cache, item);
	dev->cache.done_ns = dev->clock_ns;
	return gap_ns;
}

static bool is_apart(const struct dt_cache *cache, const struct dt_item *item)
{
	u64 at = item->node.key, end = cache->write_end;

	return (at < end ? end - at : at - end) > APART_SECTORS;
}

/* Where a write is, beside the one before. */
static void note_place(struct dt_cache *cache, const struct dt_item *item,
		       u64 now)
{
	cache->apart -= cache->apart >> APART_SHIFT;
	if (is_apart(cache, item))
		cache->apart += 65536 >> APART_SHIFT;
	cache->write_end = item->node.key + item->sectors;
	cache->wrote_ns = now;
}

/* A large write of that size was in the cache after so long, alone on the bus. */
static void note_least(struct dt_cache *cache, u32 size, u64 took_ns)
{
	u32 *least = &cache->least_ns[size];

	*least += *least / LEAST_GROWS;
	if (!*least || took_ns < *least)
		*least = dt_min(took_ns, DT_NSEC_PER_SEC);
}

/* A read is done: whether the head was at it while a large write was done. */
static void note_head(struct dt_cache *cache, const struct dt_item *item,
		      u64 now)
{
	u64 ahead = dt_max(item->sectors * BUS_NS, ABSORBED_NS);
	u64 since = cache->large_ns;

	cache->large_ns = 0;
	cache->head_ns = 0;
	/* What was read ahead needs no head. */
	if (!dt_before(item->dispatch_ns + ahead, now))
		return;
	cache->head_ns = now;
	if (!since)
		return;
	cache->beside -= cache->beside >> ABSORBED_SHIFT;
	if (now - since > ABSORBED_NS)
		return;
	cache->beside += 65536 >> ABSORBED_SHIFT;
	if (cache->large_took_ns)
		note_least(cache, cache->large_size, cache->large_took_ns);
}

/*
 * It was there before the one was done that ends where it begins: the head goes on
 * with it, no faster than what passes under it. That tells nothing of a cache.
 */
static bool goes_on(const struct dt_cache *cache, const struct dt_item *item,
		    u64 now)
{
	return item->node.key == cache->write_end &&
	       dt_before(item->dispatch_ns, cache->wrote_ns) &&
	       now - cache->wrote_ns >= item->sectors * UNDER_LEAST_NS;
}

/*
 * So many writes that are apart were done in so little time as no head can, however
 * late a slow machine tells of them.
 */
static void note_burst(struct dt_cache *cache, const struct dt_item *item,
		       u64 now)
{
	if (!dt_before(now, cache->burst_ns + BURST_NS)) {
		cache->burst_ns = now;
		cache->nr_burst = 0;
	}
	if (is_apart(cache, item) && ++cache->nr_burst >= BURST)
		cache->absorbed = dt_max(cache->absorbed, 2 * DT_ABSORBING);
}

/* A write is done: whether it was at once, or while the head was elsewhere. */
static void note_absorbed(struct dt_cache *cache, const struct dt_item *item,
			  u64 now)
{
	u64 took = now - item->dispatch_ns, since = cache->head_ns;
	int size = size_of(item);

	if (took > ABSORBED_NS || !goes_on(cache, item, now)) {
		cache->absorbed -= cache->absorbed >> ABSORBED_SHIFT;
		if (took <= ABSORBED_NS)
			cache->absorbed += 65536 >> ABSORBED_SHIFT;
	}
	cache->head_ns = 0;
	cache->large_ns = size < 0 ? 0 : now;
	if (size < 0)
		return;
	cache->large_size = size;
	cache->large_took_ns =
		cache->nr_taken == item->taken_before ? took : 0;
	if (!cache->large_took_ns)
		return;
	/* What is told together may have been told late. */
	if (took <= ABSORBED_NS ||
	    (since && now - since >= APART_NS && now - since <= ABSORBED_NS))
		note_least(cache, size, took);
}

u64 dt_cache_done(struct dt_dev *dev, struct dt_item *item, u64 gap_ns)
{
	struct dt_cache *cache = &dev->cache;
	struct dt_group *grp = item->queue->grp;
	bool write = item->dir == DT_WRITE, full = always_full(cache);
	bool lasted = write && took_long(dev, item);
	u64 charge;
	bool waited;

	if (lasted)
		note_long(cache, dev->clock_ns);
	else
		cache->run_long = 0;
	waited = lasted && has_waited(dev, item);

	if (write) {
		note_absorbed(cache, item, dev->clock_ns);
		note_burst(cache, item, dev->clock_ns);
		note_place(cache, item, dev->clock_ns);
		note_worth(dev, item);
		cache->nr_taken++;
	} else {
		note_head(cache, item, dev->clock_ns);
		cache->lonely -= cache->lonely >> LONELY_SHIFT;
		if (dev->nr_inflight == 1)
			cache->lonely += 65536 >> LONELY_SHIFT;
	}
	forget_write(cache, item);
	/* What is told at once may have been done at once, or told late. */
	if ((!write || waited) &&
	    dt_before(cache->counted_ns + APART_NS, dev->clock_ns)) {
		cache->counted_ns = dev->clock_ns;
		cache->nr_done++;
	}
	if (dt_absorbs(dev)) {
		cache->absorbs_ns = dev->clock_ns;
	} else if (!writes_unlike(dev)) {
		/* It is full all the time. A span is open for when it is not. */
		cache->done_ns = dev->clock_ns;
		if (!write)
			note_read(dev, item->queue, gap_ns, full);
		else if (waited)
			begin_span(dev);
		else
			cache->nr++;
		return gap_ns;
	}
	if (write)
		charge = charge_write(dev, item, gap_ns, waited);
	else
		charge = charge_read(dev, item, gap_ns, full);
	/* The head may be busy with something else, which is not done yet. */
	if (write && !waited && grp->head.write_ns && dev->nr_inflight > 1)
		gap_ns = 0;
	else
		cache->done_ns = dev->clock_ns;
	/* Too little was charged, or too much: from now on gaps are, or it is lost. */
	if (cache->ahead_ns < -AHEAD_MAX_NS && !cache->drains.on)
		charge = dt_max(charge, gap_ns);
	cache->ahead_ns += (s64)(charge - gap_ns);
	dt_drain_look(dev);
	if (cache->ahead_ns > AHEAD_MAX_NS) {
		dev->excess_ns -= cache->ahead_ns - AHEAD_MAX_NS;
		cache->ahead_ns = AHEAD_MAX_NS;
	} else if (cache->ahead_ns < -AHEAD_MAX_NS && cache->drains.on) {
		dev->excess_ns += -AHEAD_MAX_NS - cache->ahead_ns;
		cache->ahead_ns = -AHEAD_MAX_NS;
	}
	return charge;
}
