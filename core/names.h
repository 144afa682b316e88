/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel has one name space for all symbols. There the core's functions are
 * called disktime_core_*; in the sources, and elsewhere, dt_*.
 */
#ifndef DISKTIME_NAMES_H
#define DISKTIME_NAMES_H

#define dt_actual	disktime_core_actual
#define dt_check	disktime_core_check
#define dt_clock	disktime_core_clock
#define dt_complete	disktime_core_complete
#define dt_dev_init	disktime_core_dev_init
#define dt_dev_resize	disktime_core_dev_resize
#define dt_dev_review	disktime_core_dev_review
#define dt_dev_tune	disktime_core_dev_tune
#define dt_dispatch	disktime_core_dispatch
#define dt_dump	disktime_core_dump
#define dt_entity_init	disktime_core_entity_init
#define dt_entity_place	disktime_core_entity_place
#define dt_entity_set_class	disktime_core_entity_set_class
#define dt_entity_set_weight	disktime_core_entity_set_weight
#define dt_estimate	disktime_core_estimate
#define dt_fail	disktime_core_fail
#define dt_fault_name	disktime_core_fault_name
#define dt_forget_group	disktime_core_forget_group
#define dt_forget_queue	disktime_core_forget_queue
#define dt_gate_cancel	disktime_core_gate_cancel
#define dt_gate_enter	disktime_core_gate_enter
#define dt_gate_grant	disktime_core_gate_grant
#define dt_gate_settle	disktime_core_gate_settle
#define dt_gate_wait	disktime_core_gate_wait
#define dt_group_busy	disktime_core_group_busy
#define dt_group_exit	disktime_core_group_exit
#define dt_group_init	disktime_core_group_init
#define dt_group_note_change	disktime_core_group_note_change
#define dt_grow	disktime_core_grow
#define dt_insert	disktime_core_insert
#define dt_invariant	disktime_core_invariant
#define dt_item_next	disktime_core_item_next
#define dt_item_prev	disktime_core_item_prev
#define dt_learn	disktime_core_learn
#define dt_level_init	disktime_core_level_init
#define dt_line_add	disktime_core_line_add
#define dt_line_class	disktime_core_line_class
#define dt_line_del	disktime_core_line_del
#define dt_line_due	disktime_core_line_due
#define dt_line_floors	disktime_core_line_floors
#define dt_line_init	disktime_core_line_init
#define dt_node_next	disktime_core_node_next
#define dt_node_prev	disktime_core_node_prev
#define dt_path_charge	disktime_core_path_charge
#define dt_path_class	disktime_core_path_class
#define dt_path_completed	disktime_core_path_completed
#define dt_path_dispatched	disktime_core_path_dispatched
#define dt_path_granted	disktime_core_path_granted
#define dt_path_queued	disktime_core_path_queued
#define dt_path_settled	disktime_core_path_settled
#define dt_path_unqueued	disktime_core_path_unqueued
#define dt_path_unwait	disktime_core_path_unwait
#define dt_path_wait	disktime_core_path_wait
#define dt_queue_add	disktime_core_queue_add
#define dt_queue_busy	disktime_core_queue_busy
#define dt_queue_del	disktime_core_queue_del
#define dt_queue_exit	disktime_core_queue_exit
#define dt_queue_find	disktime_core_queue_find
#define dt_queue_init	disktime_core_queue_init
#define dt_queue_next	disktime_core_queue_next
#define dt_rearm	disktime_core_rearm
#define dt_remove	disktime_core_remove
#define dt_requeue	disktime_core_requeue
#define dt_tick	disktime_core_tick
#define dt_tree_add	disktime_core_tree_add
#define dt_tree_at	disktime_core_tree_at
#define dt_tree_del	disktime_core_tree_del
#define dt_tree_init	disktime_core_tree_init
#define dt_tree_move	disktime_core_tree_move
#define dt_watch	disktime_core_watch

#endif /* DISKTIME_NAMES_H */
