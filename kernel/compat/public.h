/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The public kernel headers that disktime builds on. compat.h includes them, and
 * genprivate reads them preprocessed: what they define, it does not declare.
 */
#ifndef DISKTIME_COMPAT_PUBLIC_H
#define DISKTIME_COMPAT_PUBLIC_H

#include <linux/backing-dev.h>
#include <linux/bio.h>
#include <linux/blk-cgroup.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/build_bug.h>
#include <linux/cgroup.h>
#include <linux/ctype.h>
#include <linux/debugfs.h>
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/iocontext.h>
#include <linux/ioprio.h>
#include <linux/kobject.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/percpu-refcount.h>
#include <linux/radix-tree.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/sbitmap.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/u64_stats_sync.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#endif
