// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the cases need and a shell cannot do: write exact bytes and see the
 * errno, load a disk from many threads and see each one's longest gap, and keep
 * a model of what a disk holds while it is written in every way at once.
 *
 *	dtcase bad TABLE FILE...	writes that must fail and change no FILE
 *	dtcase good TABLE		writes that must work and read back
 *	dtcase hammer DEV ...		longest gap of any of many threads
 *	dtcase reap DEV ...		processes killed while they wait for a request
 *	dtcase nowait DEV ...		requests that may not sleep, and others beside
 *	dtcase model DEV ...		data against a model, all kinds of writes mixed
 *	dtcase poke FILE SEED N VALUE...	random values into a file
 *
 * Exit status 0: what it looked for holds. 1: it does not; says why. 2: usage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECTOR		512
#define MAX_THREADS	256
#define MAX_FILES	64
#define TEXT_MAX	65536

static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "dtcase: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* splitmix64: any seed will do. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
	return draw(state) % limit;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 0);

	if (!*text || *end)
		die("%s is no number", text);
	return value;
}

/* key=value arguments behind the positional ones. */
static uint64_t option(char **argv, const char *key, uint64_t standard)
{
	size_t len = strlen(key);

	for (; *argv; argv++)
		if (!strncmp(*argv, key, len) && (*argv)[len] == '=')
			return number(*argv + len + 1);
	return standard;
}

static uint64_t disk_size(int fd, const char *path)
{
	uint64_t size;

	if (ioctl(fd, BLKGETSIZE64, &size))
		die("size of %s: %s", path, strerror(errno));
	return size;
}

static void *aligned(size_t size)
{
	void *mem = NULL;

	if (posix_memalign(&mem, 4096, size))
		die("no memory");
	memset(mem, 0, size);
	return mem;
}

/* ---- tables of writes ---- */

/*
 * The bytes that a table's field stands for: \n \t \\ \0 \xHH, and \*NNN*C for
 * NNN times the character C.
 */
static size_t unescape(const char *from, char *to)
{
	size_t len = 0;
	unsigned int value;
	char *end;

	while (*from) {
		if (*from != '\\') {
			to[len++] = *from++;
			continue;
		}
		switch (*++from) {
		case 'n': to[len++] = '\n'; from++; break;
		case 't': to[len++] = '\t'; from++; break;
		case '0': to[len++] = '\0'; from++; break;
		case '\\': to[len++] = '\\'; from++; break;
		case 'x':
			if (sscanf(from + 1, "%2x", &value) != 1)
				die("bad \\x in a table");
			to[len++] = value;
			from += 3;
			break;
		case '*':
			value = strtoul(from + 1, &end, 10);
			if (*end != '*' || len + value > TEXT_MAX / 2)
				die("bad \\* in a table");
			memset(to + len, end[1], value);
			len += value;
			from = end + 2;
			break;
		default:
			die("bad escape \\%c in a table", *from);
		}
	}
	return len;
}

/* What a file says; the errno as text where it cannot be read. */
static char *contents(const char *path)
{
	char *text = malloc(TEXT_MAX);
	size_t len = 0;
	ssize_t got = 0;
	int fd = open(path, O_RDONLY);

	if (!text)
		die("no memory");
	if (fd >= 0) {
		while (len < TEXT_MAX - 1 &&
		       (got = read(fd, text + len, TEXT_MAX - 1 - len)) > 0)
			len += got;
		close(fd);
	}
	if (fd < 0 || got < 0)
		len = sprintf(text, "(%s)", strerrorname_np(errno));
	text[len] = '\0';
	return text;
}

/* One write(2), all of it at once. Returns the errno. */
static int put(const char *path, const char *bytes, size_t len)
{
	int fd = open(path, O_WRONLY);
	ssize_t done;
	int error = 0;

	if (fd < 0)
		return errno;
	done = write(fd, bytes, len);
	if (done < 0)
		error = errno;
	else if ((size_t)done != len)
		error = EMSGSIZE;
	close(fd);
	return error;
}

static char *field(char **line)
{
	char *begin = *line;

	while (**line && **line != '\t')
		(*line)++;
	if (**line)
		*(*line)++ = '\0';
	while (**line == '\t')
		(*line)++;
	return begin;
}

/* Lines of three fields, tabs between; # begins a comment. */
static bool next_entry(FILE *table, char *line, char *part[3])
{
	char *at;
	int i;

	while (fgets(line, TEXT_MAX, table)) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line || *line == '#')
			continue;
		for (at = line, i = 0; i < 3; i++)
			part[i] = field(&at);
		if (!*part[2])
			die("a table's line lacks fields: %s", line);
		return true;
	}
	return false;
}

static FILE *open_table(const char *path)
{
	FILE *table = strcmp(path, "-") ? fopen(path, "r") : stdin;

	if (!table)
		die("%s: %s", path, strerror(errno));
	return table;
}

static const char *error_name(int error)
{
	return error ? strerrorname_np(error) : "OK";
}

static int cmd_bad(int argc, char **argv)
{
	static char line[TEXT_MAX], bytes[TEXT_MAX];
	char *before[MAX_FILES], *after, *part[3];
	FILE *table = open_table(argv[0]);
	int nr = 0, failed = 0, error, i;
	size_t len;

	if (argc - 1 > MAX_FILES)
		die("too many files");
	for (i = 1; i < argc; i++)
		before[i - 1] = contents(argv[i]);
	while (next_entry(table, line, part)) {
		len = unescape(part[1], bytes);
		error = put(part[0], bytes, len);
		nr++;
		if (strcmp(error_name(error), part[2])) {
			printf("%s <- \"%.60s\": %s, expected %s\n", part[0],
			       part[1], error_name(error), part[2]);
			failed++;
		}
		for (i = 1; i < argc; i++) {
			after = contents(argv[i]);
			if (strcmp(before[i - 1], after)) {
				printf("%s <- \"%.60s\" changed %s from \"%s\" to \"%s\"\n",
				       part[0], part[1], argv[i],
				       before[i - 1], after);
				failed++;
				free(before[i - 1]);
				before[i - 1] = after;
			} else {
				free(after);
			}
		}
	}
	printf("%d bad writes, %d files looked at after each, %d wrong\n", nr,
	       argc - 1, failed);
	return failed || !nr;
}

static int cmd_good(int argc, char **argv)
{
	static char line[TEXT_MAX], bytes[TEXT_MAX], expected[TEXT_MAX];
	FILE *table = open_table(argv[0]);
	int nr = 0, failed = 0, error;
	char *part[3], *after;
	size_t len;

	(void)argc;
	while (next_entry(table, line, part)) {
		len = unescape(part[1], bytes);
		expected[unescape(part[2], expected)] = '\0';
		error = put(part[0], bytes, len);
		after = contents(part[0]);
		nr++;
		if (error || strcmp(after, expected)) {
			printf("%s <- \"%s\": %s, reads \"%s\", expected \"%s\"\n",
			       part[0], part[1], error_name(error), after,
			       expected);
			failed++;
		}
		free(after);
	}
	printf("%d good writes, %d wrong\n", nr, failed);
	return failed || !nr;
}

static int cmd_poke(int argc, char **argv)
{
	uint64_t seed = number(argv[1]), count = number(argv[2]);
	int error, refused = 0;
	const char *value;

	while (count--) {
		value = argv[3 + below(&seed, argc - 3)];
		error = put(argv[0], value, strlen(value));
		/* The file goes while a scheduler is switched. */
		if (error == ENOENT || error == ENODEV)
			refused++;
		else if (error)
			die("%s <- %s: %s", argv[0], value, error_name(error));
		usleep(1000 + below(&seed, 4000));
	}
	if (refused)
		printf("%s was away %d times\n", argv[0], refused);
	return 0;
}

/* ---- threads that do one I/O after the other ---- */

struct worker {
	pthread_t thread;
	const char *path;
	uint64_t seed, size, end_ns;
	size_t bs;
	int write_percent;
	int nowait;		/* 0, or RWF_NOWAIT */
	uint64_t ios, again, max_gap_ns, max_gap_at_ns;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	int fd = open(w->path, O_RDWR | O_DIRECT);
	char *buf = aligned(w->bs);
	uint64_t last = now_ns(), now, blocks = w->size / w->bs;
	struct iovec iov = { .iov_base = buf, .iov_len = w->bs };
	ssize_t done;
	off_t at;

	if (fd < 0)
		die("%s: %s", w->path, strerror(errno));
	while ((now = now_ns()) < w->end_ns) {
		at = below(&w->seed, blocks) * w->bs;
		if ((int)below(&w->seed, 100) < w->write_percent)
			done = pwritev2(fd, &iov, 1, at, w->nowait);
		else
			done = preadv2(fd, &iov, 1, at, w->nowait);
		if (done < 0 && errno == EAGAIN && w->nowait) {
			w->again++;
			usleep(100);
			continue;
		}
		if (done != (ssize_t)w->bs)
			die("I/O at %lld of %s: %s", (long long)at, w->path,
			    done < 0 ? strerror(errno) : "short");
		now = now_ns();
		if (now - last > w->max_gap_ns) {
			w->max_gap_ns = now - last;
			w->max_gap_at_ns = now;
		}
		last = now;
		w->ios++;
	}
	if (now - last > w->max_gap_ns && !w->nowait)
		w->max_gap_ns = now - last;
	close(fd);
	free(buf);
	return NULL;
}

static struct worker workers[MAX_THREADS];

static void start(struct worker *w, const char *path, uint64_t seed,
		  uint64_t end_ns, char **options)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	*w = (struct worker) {
		.path = path,
		.seed = seed,
		.size = disk_size(fd, path),
		.end_ns = end_ns,
		.bs = option(options, "bs", 4096),
		.write_percent = option(options, "writes", 0),
	};
	close(fd);
}

static void go(struct worker *w)
{
	if (pthread_create(&w->thread, NULL, work, w))
		die("thread: %s", strerror(errno));
}

/* DEV threads= seconds= gap_ms= least= bs= writes=PERCENT seed= */
static int cmd_hammer(int argc, char **argv)
{
	uint64_t nr = option(argv, "threads", 64);
	uint64_t gap_ns = option(argv, "gap_ms", 2000) * 1000000ull;
	uint64_t seed = option(argv, "seed", 1), ios = 0, least = UINT64_MAX;
	uint64_t end_ns = now_ns() + option(argv, "seconds", 5) * 1000000000ull;
	uint64_t worst = 0, i;

	(void)argc;
	if (nr > MAX_THREADS)
		die("at most %d threads", MAX_THREADS);
	for (i = 0; i < nr; i++) {
		start(&workers[i], argv[0], seed + i, end_ns, argv);
		go(&workers[i]);
	}
	for (i = 0; i < nr; i++) {
		pthread_join(workers[i].thread, NULL);
		ios += workers[i].ios;
		if (workers[i].ios < least)
			least = workers[i].ios;
		if (workers[i].max_gap_ns > worst)
			worst = workers[i].max_gap_ns;
	}
	printf("%llu threads, %llu I/Os, least %llu, longest gap %llu ms (seed %llu)\n",
	       (unsigned long long)nr, (unsigned long long)ios,
	       (unsigned long long)least, (unsigned long long)worst / 1000000,
	       (unsigned long long)seed);
	if (least < option(argv, "least", 0))
		die("a thread did only %llu I/Os", (unsigned long long)least);
	if (worst > gap_ns)
		die("a thread waited %llu ms", (unsigned long long)worst / 1000000);
	return 0;
}

/* DEV threads= waiting= seconds= gap_ms= seed=: NOWAIT threads beside others. */
static int cmd_nowait(int argc, char **argv)
{
	uint64_t nr = option(argv, "threads", 8);
	uint64_t others = option(argv, "waiting", 24);
	uint64_t gap_ns = option(argv, "gap_ms", 2000) * 1000000ull;
	uint64_t seed = option(argv, "seed", 1), ios = 0, again = 0, i;
	uint64_t end_ns = now_ns() + option(argv, "seconds", 5) * 1000000000ull;

	(void)argc;
	if (nr + others > MAX_THREADS)
		die("at most %d threads", MAX_THREADS);
	for (i = 0; i < nr + others; i++) {
		start(&workers[i], argv[0], seed + i, end_ns, argv);
		workers[i].nowait = i < nr ? RWF_NOWAIT : 0;
		go(&workers[i]);
	}
	for (i = 0; i < nr + others; i++) {
		pthread_join(workers[i].thread, NULL);
		if (i < nr) {
			ios += workers[i].ios;
			again += workers[i].again;
		} else if (workers[i].max_gap_ns > gap_ns) {
			die("a thread that may sleep waited %llu ms",
			    (unsigned long long)workers[i].max_gap_ns / 1000000);
		}
	}
	printf("%llu I/Os without sleeping, %llu EAGAIN (seed %llu)\n",
	       (unsigned long long)ios, (unsigned long long)again,
	       (unsigned long long)seed);
	if (!again)
		die("nobody was told EAGAIN: the disk was not full, or NOWAIT slept");
	if (!ios)
		die("no request without sleeping was let in");
	return 0;
}

/* DEV procs= kills= seed=: SIGKILL at random times, each must end within 2 s. */
static int cmd_reap(int argc, char **argv)
{
	uint64_t nr = option(argv, "procs", 32), kills = option(argv, "kills", 100);
	uint64_t seed = option(argv, "seed", 1), gap = option(argv, "gap_ms", 2000);
	uint64_t begin, took, worst = 0, i, which, state = seed;
	pid_t pids[MAX_THREADS];
	int status;

	(void)argc;
	if (nr > MAX_THREADS)
		die("at most %d processes", MAX_THREADS);
	for (i = 0; i < nr + kills; i++) {
		which = i < nr ? i : below(&state, nr);
		if (i >= nr) {
			usleep(below(&state, 8000));
			begin = now_ns();
			kill(pids[which], SIGKILL);
			if (waitpid(pids[which], &status, 0) != pids[which])
				die("wait: %s", strerror(errno));
			took = now_ns() - begin;
			if (!WIFSIGNALED(status))
				die("a reader ended by itself: status %x", status);
			if (took > worst)
				worst = took;
		}
		pids[which] = fork();
		if (pids[which] < 0)
			die("fork: %s", strerror(errno));
		if (!pids[which]) {
			start(&workers[0], argv[0], seed + i, UINT64_MAX, argv);
			work(&workers[0]);
			_exit(0);
		}
	}
	for (i = 0; i < nr; i++)
		kill(pids[i], SIGKILL);
	for (i = 0; i < nr; i++)
		waitpid(pids[i], &status, 0);
	printf("%llu processes killed, the slowest end took %llu ms (seed %llu)\n",
	       (unsigned long long)kills,
	       (unsigned long long)worst / 1000000, (unsigned long long)seed);
	if (worst / 1000000 > gap)
		die("a killed process took too long to end");
	return 0;
}

/* ---- data against a model ---- */

/*
 * Each thread owns stripes of the disk, interleaved with those of the others so
 * that their requests are neighbours and merge. Of each sector it knows the
 * generation written last; 0 is a sector that was discarded or never written
 * and reads as zeroes. Every sector says who it is, so that one which lands
 * elsewhere is found there.
 */
#define STRIPE		8u	/* sectors */
#define RUN_MAX		256u	/* sectors of one I/O */

struct stamp {
	uint64_t sector;
	uint64_t generation;
	uint64_t seed;
	uint64_t fill[SECTOR / 8 - 3];
};

struct model {
	pthread_t thread;
	const char *path;
	uint64_t seed, end_ns, nr_threads, index, stripes, first;
	uint32_t *generation;	/* by own sector, counted without the others' */
	uint64_t salt;
	bool discards, big;
	uint64_t writes, reads, syncs, discarded, bad;
};

static void fill(struct stamp *stamp, uint64_t sector, uint64_t generation,
		 uint64_t salt)
{
	unsigned int i;

	if (!generation) {
		memset(stamp, 0, sizeof(*stamp));
		return;
	}
	stamp->sector = sector;
	stamp->generation = generation;
	stamp->seed = salt;
	for (i = 0; i < SECTOR / 8 - 3; i++)
		stamp->fill[i] = sector * 31 + generation * 17 + i + salt;
}

/* The disk's sector of a thread's own sector number @own. */
static uint64_t place(const struct model *m, uint64_t own)
{
	if (m->big)
		return m->first + m->index * m->stripes * STRIPE + own;
	return m->first + (own / STRIPE * m->nr_threads + m->index) * STRIPE + own % STRIPE;
}

static bool matches(struct model *m, const struct stamp *got, uint64_t own)
{
	struct stamp want;

	fill(&want, place(m, own), m->generation[own], m->salt);
	if (!memcmp(&want, got, sizeof(want)))
		return true;
	if (m->bad++ < 3)
		printf("sector %llu: generation %llu of sector %llu, expected generation %u\n",
		       (unsigned long long)place(m, own),
		       (unsigned long long)got->generation,
		       (unsigned long long)got->sector, m->generation[own]);
	return false;
}

static void do_write(struct model *m, int fd, char *buf, uint64_t own,
		     unsigned int run, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = run * SECTOR };
	ssize_t done;
	unsigned int i;

	for (i = 0; i < run; i++)
		fill((struct stamp *)(buf + i * SECTOR), place(m, own + i),
		     ++m->generation[own + i], m->salt);
	done = pwritev2(fd, &iov, 1, place(m, own) * SECTOR, flags);
	if (done != (ssize_t)iov.iov_len)
		die("write of %u sectors at %llu: %s", run,
		    (unsigned long long)place(m, own),
		    done < 0 ? strerror(errno) : "short");
	m->writes++;
}

static void do_read(struct model *m, int fd, char *buf, uint64_t own,
		    unsigned int run)
{
	ssize_t done = pread(fd, buf, run * SECTOR, place(m, own) * SECTOR);
	unsigned int i;

	if (done != (ssize_t)(run * SECTOR))
		die("read of %u sectors at %llu: %s", run,
		    (unsigned long long)place(m, own),
		    done < 0 ? strerror(errno) : "short");
	for (i = 0; i < run; i++)
		matches(m, (struct stamp *)(buf + i * SECTOR), own + i);
	m->reads++;
}

static void do_discard(struct model *m, int fd, uint64_t own, unsigned int run)
{
	uint64_t range[2] = { place(m, own) * SECTOR, run * SECTOR };
	unsigned int i;

	if (ioctl(fd, BLKDISCARD, range))
		die("discard of %u sectors at %llu: %s", run,
		    (unsigned long long)place(m, own), strerror(errno));
	for (i = 0; i < run; i++)
		m->generation[own + i] = 0;
	m->discarded++;
}

static void *model_work(void *arg)
{
	struct model *m = arg;
	uint64_t owned = m->stripes * STRIPE, own = 0, next = 0;
	int fd = open(m->path, O_RDWR | O_DIRECT), step = 0, dice;
	char *buf = aligned(RUN_MAX * SECTOR);
	unsigned int run;

	if (fd < 0)
		die("%s: %s", m->path, strerror(errno));
	while (now_ns() < m->end_ns && !m->bad) {
		/* Some go on where they were, up or down, and so merge. */
		if (step-- <= 0) {
			step = below(&m->seed, 64);
			next = below(&m->seed, owned);
		}
		own = next;
		run = STRIPE - own % STRIPE;
		if (m->big)
			run = 1 + below(&m->seed, RUN_MAX);
		else if (below(&m->seed, 4) == 0)
			run = 1 + below(&m->seed, run);
		if (run > owned - own)
			run = owned - own;
		next = below(&m->seed, 3) ? own + run : own - STRIPE;
		if (next >= owned)
			next = 0;
		dice = below(&m->seed, 100);
		if (dice < 45)
			do_write(m, fd, buf, own, run, 0);
		else if (dice < 50)
			do_write(m, fd, buf, own, run, RWF_DSYNC);
		else if (dice < 52 && ++m->syncs)
			fdatasync(fd);
		else if (dice < 56 && m->discards)
			do_discard(m, fd, own, run);
		else
			do_read(m, fd, buf, own, run);
	}
	for (own = 0; own < owned && m->bad < 10; own += run) {
		run = m->big ? RUN_MAX : STRIPE;
		if (run > owned - own)
			run = owned - own;
		do_read(m, fd, buf, own, run);
	}
	close(fd);
	free(buf);
	return NULL;
}

/*
 * DEV threads= seconds= seed= mb= at_mb= discards=0|1 big=0|1 zero=0|1. Uses mb
 * MB, all by default, from at_mb on; they have to be zeroes unless zero=1. big=1 gives each thread a contiguous part, and sizes
 * up to 128 KB at any sector; otherwise it has stripes of 4 KB.
 */
static int cmd_model(int argc, char **argv)
{
	uint64_t nr = option(argv, "threads", 8), seed = option(argv, "seed", 1);
	uint64_t end_ns = now_ns() + option(argv, "seconds", 5) * 1000000000ull;
	uint64_t sectors, writes = 0, reads = 0, syncs = 0, discards = 0, bad = 0, i;
	static struct model models[MAX_THREADS];
	uint64_t range[2];
	int fd = open(argv[0], O_RDWR);

	(void)argc;
	if (fd < 0)
		die("%s: %s", argv[0], strerror(errno));
	sectors = disk_size(fd, argv[0]) / SECTOR;
	if (option(argv, "mb", 0))
		sectors = option(argv, "mb", 0) * 2048;
	if (nr > MAX_THREADS)
		die("at most %d threads", MAX_THREADS);
	range[0] = option(argv, "at_mb", 0) << 20;
	range[1] = sectors * SECTOR;
	if (option(argv, "zero", 0) && ioctl(fd, BLKZEROOUT, range))
		die("zeroing %s: %s", argv[0], strerror(errno));
	for (i = 0; i < nr; i++) {
		models[i] = (struct model) {
			.path = argv[0],
			.seed = seed * 1000 + i,
			.salt = seed << 32 | i,
			.end_ns = end_ns,
			.nr_threads = nr,
			.index = i,
			.first = option(argv, "at_mb", 0) * 2048,
			.stripes = sectors / STRIPE / nr,
			.discards = option(argv, "discards", 0),
			.big = option(argv, "big", 0),
		};
		models[i].generation = calloc(models[i].stripes * STRIPE,
					      sizeof(uint32_t));
		if (!models[i].generation)
			die("no memory");
		if (pthread_create(&models[i].thread, NULL, model_work, &models[i]))
			die("thread: %s", strerror(errno));
	}
	for (i = 0; i < nr; i++) {
		pthread_join(models[i].thread, NULL);
		writes += models[i].writes;
		reads += models[i].reads;
		syncs += models[i].syncs;
		discards += models[i].discarded;
		bad += models[i].bad;
	}
	printf("model: %llu writes, %llu reads, %llu syncs, %llu discards, %llu wrong (seed %llu)\n",
	       (unsigned long long)writes, (unsigned long long)reads,
	       (unsigned long long)syncs, (unsigned long long)discards,
	       (unsigned long long)bad, (unsigned long long)seed);
	return bad != 0;
}

static const struct {
	const char *name;
	int least;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "bad", 2, cmd_bad },
	{ "good", 1, cmd_good },
	{ "poke", 4, cmd_poke },
	{ "hammer", 1, cmd_hammer },
	{ "nowait", 1, cmd_nowait },
	{ "reap", 1, cmd_reap },
	{ "model", 1, cmd_model },
};

int main(int argc, char **argv)
{
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name) &&
		    argc - 2 >= commands[i].least)
			return commands[i].run(argc - 2, argv + 2);
	fprintf(stderr, "usage: dtcase bad|good|poke|hammer|nowait|reap|model ...\n");
	return 2;
}
