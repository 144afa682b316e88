//! The declarations of core/disktime.h and shim.c that the crate calls.

use std::ffi::{c_char, c_int, c_void};

macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)] pub struct $name { _private: [u8; 0] })*
    };
}

opaque! { DevBox Dev Group Queue Entity ItemBox Item WaiterBox Waiter ListBox TreeBox }

unsafe extern "C" {
    pub fn dts_free(ptr: *mut c_void);

    pub fn dts_dev_new(depth_hw: u32, tags: u32, rotational: bool, now: u64) -> *mut DevBox;
    pub fn dts_dev(all: *mut DevBox) -> *mut Dev;
    pub fn dts_root(all: *mut DevBox) -> *mut Group;
    pub fn dts_tunables_get(dev: *const Dev, out: *mut u64);
    pub fn dts_tune(dev: *mut Dev, input: *const u64, now: u64);
    pub fn dts_engine(dev: *mut Dev, engine: u32);
    pub fn dts_has_work(dev: *const Dev) -> bool;
    pub fn dts_dev_state(dev: *const Dev, out: *mut u64);
    pub fn dts_dev_counts(dev: *const Dev, out: *mut u64);
    pub fn dt_commit_begin(dev: *mut Dev, now: u64);
    pub fn dt_commit_end(dev: *mut Dev, begun_ns: u64, now: u64);
    pub fn dt_dev_resize(dev: *mut Dev, depth_hw: u32, tags: u32, now: u64);

    pub fn dts_group_new(dev: *mut Dev, parent: *mut Group, weight: u32, class: u32) -> *mut Group;
    pub fn dts_group_vacant(grp: *const Group) -> bool;
    pub fn dts_group_entity(grp: *mut Group) -> *mut Entity;
    pub fn dts_leaf_entity(grp: *mut Group) -> *mut Entity;
    pub fn dts_queue_entity(queue: *mut Queue) -> *mut Entity;
    pub fn dts_entity_state(ent: *const Entity, out: *mut u64);
    pub fn dts_group_stats(grp: *const Group, out: *mut u64);
    pub fn dt_group_exit(grp: *mut Group);
    pub fn dts_queue_new(
        grp: *mut Group,
        sync: bool,
        weight: u32,
        class: u32,
        now: u64,
    ) -> *mut Queue;
    pub fn dt_queue_busy(queue: *const Queue) -> bool;
    pub fn dt_queue_exit(queue: *mut Queue);
    pub fn dt_entity_set_weight(ent: *mut Entity, weight: u32);
    pub fn dt_entity_set_class(ent: *mut Entity, class: u32, now: u64);

    pub fn dts_item_new(id: u64) -> *mut ItemBox;
    pub fn dts_item(all: *mut ItemBox) -> *mut Item;
    pub fn dts_item_id(item: *const Item) -> u64;
    pub fn dts_item_state(item: *const Item, out: *mut u64);
    pub fn dt_insert(
        dev: *mut Dev,
        queue: *mut Queue,
        item: *mut Item,
        dir: u32,
        sector: u64,
        sectors: u32,
        flags: u32,
        now: u64,
    );
    pub fn dt_pass(
        dev: *mut Dev,
        queue: *mut Queue,
        item: *mut Item,
        dir: u32,
        sector: u64,
        sectors: u32,
        now: u64,
    ) -> bool;
    pub fn dt_remove(dev: *mut Dev, item: *mut Item, now: u64);
    pub fn dt_grow(dev: *mut Dev, item: *mut Item, sector: u64, sectors: u32);
    pub fn dt_queue_find(queue: *mut Queue, sector: u64) -> *mut Item;
    pub fn dt_item_next(item: *mut Item) -> *mut Item;
    pub fn dt_item_prev(item: *mut Item) -> *mut Item;
    pub fn dt_dispatch(dev: *mut Dev, now: u64) -> *mut Item;
    pub fn dt_complete(dev: *mut Dev, item: *mut Item, now: u64) -> u64;
    pub fn dt_charge(
        dev: *mut Dev,
        queue: *mut Queue,
        dir: u32,
        took_ns: u64,
        estimate_ns: u64,
        now: u64,
    );
    pub fn dt_requeue(dev: *mut Dev, item: *mut Item, now: u64);
    pub fn dt_tick(dev: *mut Dev, now: u64);
    pub fn dts_wake_at(dev: *const Dev) -> u64;

    pub fn dts_waiter_new(id: u64) -> *mut WaiterBox;
    pub fn dts_waiter(all: *mut WaiterBox) -> *mut Waiter;
    pub fn dts_waiter_id(waiter: *const Waiter) -> u64;
    pub fn dt_gate_wait(dev: *mut Dev, waiter: *mut Waiter, queue: *mut Queue, now: u64);
    pub fn dt_gate_cancel(dev: *mut Dev, waiter: *mut Waiter, now: u64);
    pub fn dt_gate_grant(dev: *mut Dev, now: u64) -> *mut Waiter;
    pub fn dt_gate_settle(dev: *mut Dev, queue: *mut Queue);

    pub fn dt_fail(dev: *mut Dev, fault: u32, now: u64);
    pub fn dt_rearm(dev: *mut Dev, now: u64);
    pub fn dt_watch(dev: *mut Dev, now: u64);
    pub fn dt_fault_name(fault: u32) -> *const c_char;
    pub fn dt_check(dev: *mut Dev) -> c_int;
    pub fn dt_invariant(number: c_int) -> *const c_char;
    pub fn dt_dump(
        dev: *mut Dev,
        line: unsafe extern "C" fn(*mut c_void, *const c_char),
        arg: *mut c_void,
    );

    pub fn dts_corrupt_line(ent: *mut Entity, gate: bool) -> bool;

    pub fn dts_bare_insert(
        dev: *mut Dev,
        queue: *mut Queue,
        item: *mut ItemBox,
        sector: u64,
        sectors: u32,
        now: u64,
    ) -> bool;
    pub fn dts_list_new(depth: u32) -> *mut ListBox;
    pub fn dts_list_insert(
        list: *mut ListBox,
        item: *mut ItemBox,
        sector: u64,
        sectors: u32,
    ) -> bool;
    pub fn dts_list_dispatch(list: *mut ListBox) -> *mut Item;
    pub fn dts_list_complete(list: *mut ListBox, item: *mut Item);

    pub fn dts_tree_new(nr: u64) -> *mut TreeBox;
    pub fn dts_tree_add(all: *mut TreeBox, index: u64, key: u64);
    pub fn dts_tree_del(all: *mut TreeBox, index: u64);
    pub fn dts_tree_move(all: *mut TreeBox, index: u64, key: u64);
    pub fn dts_tree_first(all: *const TreeBox) -> i64;
    pub fn dts_tree_next(all: *mut TreeBox, index: u64) -> i64;
    pub fn dts_tree_prev(all: *mut TreeBox, index: u64) -> i64;
    pub fn dts_tree_at(all: *const TreeBox, key: u64) -> i64;
    pub fn dts_tree_height(all: *const TreeBox, nr: u64) -> u64;
}
