/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel has one name space for all symbols. There the core's functions are
 * called disktime_core_*; in the sources, and elsewhere, dt_*.
 */
#ifndef DISKTIME_NAMES_H
#define DISKTIME_NAMES_H

#define dt_charge	disktime_core_charge
#define dt_check	disktime_core_check
#define dt_complete	disktime_core_complete
#define dt_dev_engine	disktime_core_dev_engine
#define dt_dev_init	disktime_core_dev_init
#define dt_dev_resize	disktime_core_dev_resize
#define dt_dev_tune	disktime_core_dev_tune
#define dt_dispatch	disktime_core_dispatch
#define dt_commit_begin	disktime_core_commit_begin
#define dt_commit_end	disktime_core_commit_end
#define dt_dump	disktime_core_dump
#define dt_entity_set_class	disktime_core_entity_set_class
#define dt_entity_set_weight	disktime_core_entity_set_weight
#define dt_fail	disktime_core_fail
#define dt_fault_name	disktime_core_fault_name
#define dt_gate_cancel	disktime_core_gate_cancel
#define dt_gate_enter	disktime_core_gate_enter
#define dt_gate_grant	disktime_core_gate_grant
#define dt_gate_settle	disktime_core_gate_settle
#define dt_gate_wait	disktime_core_gate_wait
#define dt_group_busy	disktime_core_group_busy
#define dt_group_exit	disktime_core_group_exit
#define dt_group_init	disktime_core_group_init
#define dt_grow	disktime_core_grow
#define dt_insert	disktime_core_insert
#define dt_invariant	disktime_core_invariant
#define dt_item_next	disktime_core_item_next
#define dt_item_prev	disktime_core_item_prev
#define dt_queue_busy	disktime_core_queue_busy
#define dt_queue_exit	disktime_core_queue_exit
#define dt_queue_find	disktime_core_queue_find
#define dt_queue_init	disktime_core_queue_init
#define dt_pass	disktime_core_pass
#define dt_rearm	disktime_core_rearm
#define dt_remove	disktime_core_remove
#define dt_requeue	disktime_core_requeue
#define dt_tick	disktime_core_tick
#define dt_watch	disktime_core_watch

#endif /* DISKTIME_NAMES_H */
