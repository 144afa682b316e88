/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The seam between the core and whatever it is compiled into.
 *
 * This is the only header of core/ that knows whether it stands inside the
 * kernel. Everything below it is freestanding C11: fixed-width integers, a
 * doubly linked list and a 64 by 32 bit division.
 */
#ifndef DISKTIME_DEPS_H
#define DISKTIME_DEPS_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/math64.h>
#include <linux/compiler.h>
#include "names.h"
#define dt_div(a, b)	div64_u64(a, b)
#else
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
#ifndef __cplusplus
#define bool _Bool
#define true 1
#define false 0
#endif
#define NULL ((void *)0)
#define noinline	__attribute__((noinline))
#define __always_inline	inline __attribute__((always_inline))
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define dt_div(a, b)	((u64)(a) / (u64)(b))
#endif

/*
 * The core is compiled as one unit, build.c, so that the compiler sees through
 * the seams between its files. What they share is nobody else's; what every
 * request passes once is put where it is called, as the compiler would not.
 */
#ifdef DT_BUILD
#define dt_internal	static
#define dt_inline	static __always_inline
#else
#define dt_internal	extern
#define dt_inline
#endif

#define DT_CONTAINER(ptr, type, member) \
	((type *)((char *)(ptr) - __builtin_offsetof(type, member)))

#define dt_max(a, b)	((a) > (b) ? (a) : (b))
#define dt_min(a, b)	((a) < (b) ? (a) : (b))

/*
 * a lies before b on a counter that may wrap, provided the two are less than
 * 2^63 apart. Every compare of virtual times and sectors goes through here.
 */
static inline bool dt_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline u64 dt_later(u64 a, u64 b)
{
	return dt_before(a, b) ? b : a;
}

struct dt_list {
	struct dt_list *prev, *next;
};

static inline void dt_list_init(struct dt_list *head)
{
	head->prev = head->next = head;
}

static inline bool dt_list_empty(const struct dt_list *head)
{
	return head->next == head;
}

static inline void dt_list_add_before(struct dt_list *pos, struct dt_list *node)
{
	node->prev = pos->prev;
	node->next = pos;
	pos->prev->next = node;
	pos->prev = node;
}

static inline void dt_list_add_tail(struct dt_list *head, struct dt_list *node)
{
	dt_list_add_before(head, node);
}

static inline void dt_list_add_head(struct dt_list *head, struct dt_list *node)
{
	dt_list_add_before(head->next, node);
}

/* Leaves the node as it was: on no list, and not to be removed again. */
static inline void dt_list_unlink(struct dt_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
}

/* Leaves the node empty, so that a second removal does no harm. */
static inline void dt_list_del(struct dt_list *node)
{
	dt_list_unlink(node);
	dt_list_init(node);
}

#endif /* DISKTIME_DEPS_H */
