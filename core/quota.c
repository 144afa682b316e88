// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Quotas: what each of several writers may send while they have their turn.
 *
 * Readers and writers of a flash drive have turns, and what writers leave behind in the
 * cache is written before the readers' begins (spell.c). So of a turn and its drain it is
 * known what they took. Which of several writers it was is not: a write is done when there is
 * room for it, and there is room when somebody else's is written. As long as nothing else
 * is known each may send its part by weight,
 *
 *	units_i	~ weight_i		a unit is a sector, and a request is 16
 *
 * and waits when it has. That is fair among those that are alike. But 16 KB by 64 had 0.46 of
 * what it does alone with that, and 1 MB by 8 0.12, both beside 32 reads of 4 KB on the
 * server's drive.
 *
 * Nobody's cost need be known where one has a turn for itself. So each of several that
 * are unlike has one now and then. What that and its drain take, less what readers did
 * meanwhile, is what its units take,
 *
 *	u_i	= time / units		of its last few turns
 *
 * and in the turns that they have together each may send
 *
 *	units_i	~ weight_i / u_i
 *
 * With that each has its part of the drive, whatever it writes, and it pays to go on with
 * turns even where readers lose less by the writers' than is due to these: without turns
 * costs are a guess there. The readers may then have more than their part, as large reads
 * leave little to a few writes that are beside them; so in the writers' turn who has read
 * what is due to it of all of that turn waits for the rest of it (dt_slices_hold). How quick
 * they can be is seen after a turn of one's own, as theirs may be over at once otherwise.
 *
 * All this only on drives that take many and have a cache. Elsewhere costs of writes are
 * found otherwise (cost.c), and who waits for another's turn loses by it: of three at random
 * on SATA drives the worst off had 0.25 of what it does alone with this, and 0.28 without.
 *
 * The bound: a writer waits for one turn of another's beside what spell.c says, and then
 * has one with others or of its own.
 *
 * What it is worth (docs/DESIGN.md has more): of 91 times three groups made at random, a
 * writer among them, on the server's drive, who is worst off has 0.275 of what it does
 * alone, the geometric mean, where it were 0.242.
 */
#include "commit.h"
#include "entity.h"
#include "park.h"
#include "quota.h"

/* So many turns each has for itself, every second one, and then one of so many is somebody's. */
#define OWN_FIRST		2
#define OWN_EACH		8
/* Of older ones this part is forgotten with each. */
#define OWN_FORGET		4
/* More groups than that have none. */
#define OWN_GROUPS		8
/* Requests are unlike by three halves; whose became so is looked at anew. */
#define UNLIKE_MOST		3
#define UNLIKE_LEAST		2
/* Who has fewer outstanding is not waited for. */
#define OWN_MANY		4
/* Fixed point of what a unit takes, and of parts by that. */
#define UNIT_SHIFT		8
#define BY_UNIT_SHIFT		20

#define FOR_EACH_WRITER(dev, pos, queue) \
	for ((pos) = (dev)->spells.queues.next; \
	     (pos) != &(dev)->spells.queues && \
	     ((queue) = DT_CONTAINER((pos), struct dt_queue, party)); \
	     (pos) = (pos)->next)

/* Queues of the group that write. */
static u32 nr_writers(const struct dt_group *grp)
{
	const struct dt_list *pos;
	u32 nr = 0;

	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next)
		nr += !dt_list_empty(&DT_CONTAINER(pos, struct dt_queue,
						   link)->party);
	return nr;
}

/* Whether there is anything of it: who has stopped is of the party as well. */
static bool has_writes(const struct dt_queue *queue)
{
	return queue->ent.nr_queued + queue->ent.nr_inflight + queue->nr_parked;
}

/* What its units take has been seen, since there are turns and it writes as it does. */
static bool unit_known(const struct dt_dev *dev, const struct dt_group *grp)
{
	return grp->writes.units && grp->writes.spell == dev->spells.quota.spell;
}

/* What a unit of the group's takes of the drive; 2^-8 ns. */
static u64 unit_of(const struct dt_group *grp)
{
	return dt_max(dt_div(grp->writes.ns << UNIT_SHIFT,
			     dt_max(grp->writes.units, 1)), 1);
}

static void divide(struct dt_dev *dev)
{
	struct dt_spells *spells = &dev->spells;
	const struct dt_group *last = NULL;
	bool several = false, known = spells->quota.unlike;
	struct dt_queue *queue;
	struct dt_list *pos;
	u64 all = 0;

	FOR_EACH_WRITER(dev, pos, queue) {
		if (!has_writes(queue))
			continue;
		several |= last && queue->grp != last;
		known &= unit_known(dev, queue->grp);
		last = queue->grp;
	}
	if (!several || !spells->quota.units)
		return;
	FOR_EACH_WRITER(dev, pos, queue) {
		queue->part = dt_div(dt_share_of(queue->grp),
				     nr_writers(queue->grp));
		if (known && unit_known(dev, queue->grp))
			queue->part = dt_div(queue->part << BY_UNIT_SHIFT,
					     unit_of(queue->grp));
		if (has_writes(queue))
			all += queue->part;
	}
	/* Of a class that has to wait for a better one nobody has any. */
	FOR_EACH_WRITER(dev, pos, queue)
		queue->part = all ? dt_div(spells->quota.units * queue->part,
					   all) + 1 : 0;
}

/* Of those that write now, whose turn for itself was longest ago. */
static struct dt_group *who_is_next(struct dt_dev *dev)
{
	u32 now = dev->spells.quota.turn;
	struct dt_group *grp, *next = NULL;
	bool several = false;
	struct dt_queue *queue;
	struct dt_list *pos;

	FOR_EACH_WRITER(dev, pos, queue) {
		grp = queue->grp;
		if (!has_writes(queue))
			continue;
		if (grp->writes.spell != dev->spells.quota.spell) {
			grp->writes.spell = dev->spells.quota.spell;
			grp->writes.nr_own = 0;
			grp->writes.units = 0;
			grp->writes.ns = 0;
		}
		several |= next && grp != next;
		if (!next || grp->writes.nr_own < next->writes.nr_own ||
		    (grp->writes.nr_own == next->writes.nr_own &&
		     now - grp->writes.turn > now - next->writes.turn))
			next = grp;
	}
	return several ? next : NULL;
}

static struct dt_group *whose_own(struct dt_dev *dev)
{
	struct dt_quota *quota = &dev->spells.quota;
	struct dt_group *next;

	/* Two after one another would make others wait for both. */
	if (!dev->spells.good || !quota->units || !quota->unlike ||
	    ++quota->turn % 2)
		return NULL;
	next = who_is_next(dev);
	return next && (next->writes.nr_own < OWN_FIRST || quota->turn % OWN_EACH == 0) ?
		next : NULL;
}

/* All others wait. */
static void begin_own(struct dt_dev *dev, struct dt_group *own, u64 due_ns)
{
	struct dt_quota *quota = &dev->spells.quota;
	struct dt_queue *queue;
	struct dt_list *pos;

	quota->own = own;
	quota->wrote = 0;
	quota->enough = 0;
	FOR_EACH_WRITER(dev, pos, queue) {
		if (queue->grp != own) {
			queue->spent = true;
			dt_park(dev, queue);
			continue;
		}
		quota->enough += queue->part;
		queue->part = 0;
	}
	if (unit_known(dev, own))
		quota->enough = dt_div(due_ns << UNIT_SHIFT, unit_of(own)) + 1;
}

void dt_quota_begin(struct dt_dev *dev, u64 due_ns)
{
	struct dt_quota *quota = &dev->spells.quota;
	struct dt_group *own = whose_own(dev);

	quota->own = NULL;
	quota->sent = 0;
	quota->enough = quota->units;
	divide(dev);
	if (own)
		begin_own(dev, own, due_ns);
}

void dt_quota_reset(struct dt_dev *dev)
{
	struct dt_queue *queue;
	struct dt_list *pos;

	FOR_EACH_WRITER(dev, pos, queue) {
		queue->sent = 0;
		queue->part = 0;
		queue->spent = false;
	}
}

void dt_quota_open(struct dt_dev *dev)
{
	struct dt_queue *queue;
	struct dt_list *pos;

	dev->spells.quota.own = NULL;
	dt_quota_reset(dev);
	if (!dev->parking)
		FOR_EACH_WRITER(dev, pos, queue)
			dt_unpark(dev, queue);
}

bool dt_quota_sent(struct dt_dev *dev, struct dt_queue *queue, u64 units)
{
	struct dt_quota *quota = &dev->spells.quota;

	quota->sent += units;
	queue->sent += units;
	if (queue->part && queue->sent >= queue->part) {
		queue->spent = true;
		dt_park(dev, queue);
	}
	return quota->enough && quota->sent >= quota->enough;
}

void dt_quota_note(struct dt_dev *dev, struct dt_queue *queue, u64 units)
{
	struct dt_quota *quota = &dev->spells.quota;

	if (quota->own == queue->grp)
		quota->wrote += units;
	queue->nr_done++;
}

/*
 * Before turns are known to pay: it writes for the most part, has not read in this one, and
 * waits, as small writes do behind large ones, of which none is done then.
 */
static bool waits_to_write(const struct dt_dev *dev, const struct dt_group *grp)
{
	return !dev->spells.good && grp->stats.ios[DT_WRITE] &&
	       grp->stats.ios[DT_WRITE] > grp->stats.ios[DT_READ] / 2 &&
	       grp->reads.turn != dev->spells.slices.turn &&
	       dt_outstanding_of(grp) >= OWN_MANY && !dt_committed_lately(dev);
}

static bool are_unlike(u64 least, u64 most)
{
	return UNLIKE_LEAST * most > UNLIKE_MOST * least;
}

/* The group wrote @wrote units in so many requests. */
static void note_size(struct dt_quota *quota, struct dt_group *grp, u64 wrote,
		      u64 nr)
{
	u64 mean = dt_div(wrote, nr);

	if (grp->writes.size && are_unlike(dt_min(mean, grp->writes.size),
					dt_max(mean, grp->writes.size)))
		grp->writes.spell = quota->spell - 1;
	grp->writes.size = mean;
	quota->nr++;
	quota->least = dt_min(quota->least, mean);
	quota->most = dt_max(quota->most, mean);
}

/* All queues of the group together, once. */
static void note_group(struct dt_quota *quota, struct dt_group *grp)
{
	const struct dt_queue *queue;
	const struct dt_list *pos;
	u64 wrote = 0, nr = 0;

	if (grp->writes.look == quota->look)
		return;
	grp->writes.look = quota->look;
	for (pos = grp->queue_list.next; pos != &grp->queue_list;
	     pos = pos->next) {
		queue = DT_CONTAINER(pos, struct dt_queue, link);
		wrote += queue->wrote;
		nr += queue->nr_done;
	}
	if (nr)
		note_size(quota, grp, wrote, nr);
}

void dt_quota_look(struct dt_dev *dev, u64 units)
{
	struct dt_quota *quota = &dev->spells.quota;
	struct dt_queue *queue;
	struct dt_group *grp;
	struct dt_list *pos;

	if (quota->own)
		return;
	quota->look++;
	quota->nr = 0;
	quota->least = ~0ull;
	quota->most = 0;
	FOR_EACH_WRITER(dev, pos, queue)
		note_group(quota, queue->grp);
	for (pos = dev->active.next; pos != &dev->active; pos = pos->next) {
		grp = dt_active_group(pos);
		if (grp->writes.look != quota->look && waits_to_write(dev, grp))
			note_size(quota, grp, grp->stats.sectors[DT_WRITE] +
				  units * grp->stats.ios[DT_WRITE],
				  grp->stats.ios[DT_WRITE]);
	}
	quota->unlike = quota->nr > 1 && quota->nr <= OWN_GROUPS &&
			are_unlike(quota->least, quota->most);
}

/* So much is written that they and the drain take as long as they are to. */
static void adapt(struct dt_spells *spells, u64 took_ns, u64 due_ns)
{
	u64 wrote = spells->wrote, units;

	units = dt_div(wrote * due_ns, dt_max(took_ns, 1));
	spells->quota.units = dt_min(dt_max(units, wrote / 2), 2 * wrote);
}

void dt_quota_end(struct dt_dev *dev, u64 took_ns, u64 due_ns, u64 writes_ns)
{
	struct dt_quota *quota = &dev->spells.quota;
	struct dt_group *own = quota->own;

	if (!own) {
		adapt(&dev->spells, took_ns, due_ns);
		return;
	}
	quota->own = NULL;
	own->writes.turn = quota->turn;
	own->writes.nr_own += own->writes.nr_own < OWN_FIRST;
	/* Who has read meanwhile took part of it for that. */
	if (!quota->wrote || own->reads.turn == dev->spells.slices.turn)
		return;
	own->writes.ns += writes_ns - own->writes.ns / OWN_FORGET;
	own->writes.units += quota->wrote - own->writes.units / OWN_FORGET;
}

void dt_quota_forget(struct dt_dev *dev, const struct dt_group *grp)
{
	if (dev->spells.quota.own == grp)
		dt_quota_open(dev);
}
