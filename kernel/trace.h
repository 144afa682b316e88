/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints at the few decisions. Groups go by the inode number of their
 * cgroup's directory, times in nanoseconds.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM disktime

#if !defined(DISKTIME_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DISKTIME_TRACE_H

#include <linux/tracepoint.h>

/* A group that had nothing queued has something now. */
TRACE_EVENT(disktime_activate,
	TP_PROTO(dev_t dev, u64 cgroup, u32 weight),
	TP_ARGS(dev, cgroup, weight),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, cgroup)
		__field(u32, weight)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->cgroup = cgroup;
		__entry->weight = weight;
	),
	TP_printk("%d,%d cgroup=%llu weight=%u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->cgroup, __entry->weight)
);

/* A request was chosen for the device. */
TRACE_EVENT(disktime_pick,
	TP_PROTO(dev_t dev, u64 cgroup, u64 sector, u32 sectors, u64 waited,
		 u64 estimate, u32 inflight),
	TP_ARGS(dev, cgroup, sector, sectors, waited, estimate, inflight),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, cgroup)
		__field(u64, sector)
		__field(u32, sectors)
		__field(u64, waited)
		__field(u64, estimate)
		__field(u32, inflight)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->cgroup = cgroup;
		__entry->sector = sector;
		__entry->sectors = sectors;
		__entry->waited = waited;
		__entry->estimate = estimate;
		__entry->inflight = inflight;
	),
	TP_printk("%d,%d cgroup=%llu %llu + %u waited=%llu estimate=%llu inflight=%u",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		  __entry->sector, __entry->sectors, __entry->waited,
		  __entry->estimate, __entry->inflight)
);

/* A request came back and its group was charged. */
TRACE_EVENT(disktime_charge,
	TP_PROTO(dev_t dev, u64 cgroup, u64 sector, u64 service, u64 charge,
		 u64 estimate),
	TP_ARGS(dev, cgroup, sector, service, charge, estimate),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, cgroup)
		__field(u64, sector)
		__field(u64, service)
		__field(u64, charge)
		__field(u64, estimate)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->cgroup = cgroup;
		__entry->sector = sector;
		__entry->service = service;
		__entry->charge = charge;
		__entry->estimate = estimate;
	),
	TP_printk("%d,%d cgroup=%llu %llu service=%llu charge=%llu estimate=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		  __entry->sector, __entry->service, __entry->charge,
		  __entry->estimate)
);

/* The device is kept idle for a group (until > 0), or no longer. */
TRACE_EVENT(disktime_anticipate,
	TP_PROTO(dev_t dev, u64 cgroup, u64 until, u64 think),
	TP_ARGS(dev, cgroup, until, think),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, cgroup)
		__field(u64, until)
		__field(u64, think)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->cgroup = cgroup;
		__entry->until = until;
		__entry->think = think;
	),
	TP_printk("%d,%d cgroup=%llu until=%llu think=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->cgroup,
		  __entry->until, __entry->think)
);

/* Something is wrong: requests go out in the order in which they came. */
TRACE_EVENT(disktime_fallback,
	TP_PROTO(dev_t dev, u32 fault),
	TP_ARGS(dev, fault),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, fault)
	),
	TP_fast_assign(
		__entry->dev = dev;
		__entry->fault = fault;
	),
	TP_printk("%d,%d fault=%u", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->fault)
);

#endif /* DISKTIME_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
