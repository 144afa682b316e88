//! disktime's scheduler core behind a safe interface.
//!
//! The core is freestanding C (`core/` at the root of the repository) whose caller embeds its
//! structures and keeps its lock. Here that caller is a [`Device`]: it owns every group, queue,
//! item and waiter of one device, names them by ids with generations, and checks each call against
//! the core's preconditions, so that misuse is an [`Error`] and never undefined behaviour.
//!
//! With [`Device::set_checked`] the core's invariants are verified after every event; a violation
//! panics with the invariant and a dump of the whole state.

pub mod bare;
mod ffi;
mod slab;
pub mod tree;
mod units;

use std::ffi::{CStr, c_char, c_void};

pub use slab::Id;
use slab::Slab;
pub use units::{
    Class, Counts, DeviceState, Dir, Engine, EntityState, Fault, ItemLife, ItemState, Nanos, Order,
    Request, Spell, Stats, Tunables, Weight,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("no such {0} on this device")]
    Unknown(&'static str),
    #[error("the {0} is still in use")]
    Busy(&'static str),
    #[error("the item is not {0}")]
    State(&'static str),
    #[error("weight {0} is not between 1 and 10000")]
    Weight(u32),
    #[error("a group more than {MAX_DEPTH} levels below the root")]
    TooDeep,
    #[error("class {0:?} is for queues only")]
    ClassOfGroup(Class),
    #[error("out of memory")]
    Memory,
}

/// Levels of groups below the root that the core walks.
pub const MAX_DEPTH: u32 = 32;

#[doc(hidden)]
pub struct GroupSlot {
    ptr: *mut ffi::Group,
    parent: Option<GroupId>,
    depth: u32,
}

#[doc(hidden)]
pub struct QueueSlot {
    ptr: *mut ffi::Queue,
    group: GroupId,
    /// Items and waiters that the core or the caller still refers to.
    users: u32,
}

#[doc(hidden)]
pub struct ItemSlot {
    all: *mut ffi::ItemBox,
    ptr: *mut ffi::Item,
    queue: QueueId,
}

#[doc(hidden)]
pub struct WaiterSlot {
    all: *mut ffi::WaiterBox,
    ptr: *mut ffi::Waiter,
    queue: QueueId,
    granted: bool,
}

pub type GroupId = Id<GroupSlot>;
pub type QueueId = Id<QueueSlot>;
pub type ItemId = Id<ItemSlot>;
pub type WaiterId = Id<WaiterSlot>;

/// What competes with its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    Group(GroupId),
    /// A group's own queues, beside its child groups.
    Leaf(GroupId),
    Queue(QueueId),
}

/// One device with all that is scheduled on it.
pub struct Device {
    all: *mut ffi::DevBox,
    dev: *mut ffi::Dev,
    root: GroupId,
    groups: Slab<GroupSlot>,
    queues: Slab<QueueSlot>,
    items: Slab<ItemSlot>,
    waiters: Slab<WaiterSlot>,
    checked: bool,
}

// SAFETY: all memory behind the pointers belongs to this device alone, and the core keeps no
// state outside of it.
unsafe impl Send for Device {}

impl Device {
    /// `depth_hw`: items the device takes at once; `tags`: requests that exist for it.
    pub fn new(depth_hw: u32, tags: u32, rotational: bool, now: Nanos) -> Result<Self, Error> {
        // SAFETY: no preconditions; a null return is handled.
        let all = unsafe { ffi::dts_dev_new(depth_hw, tags, rotational, now.0) };
        if all.is_null() {
            return Err(Error::Memory);
        }
        // SAFETY: `all` was just made.
        let (dev, root) = unsafe { (ffi::dts_dev(all), ffi::dts_root(all)) };
        let mut groups = Slab::new();
        let root = groups
            .insert_with(|_| {
                Some(GroupSlot {
                    ptr: root,
                    parent: None,
                    depth: 0,
                })
            })
            .ok_or(Error::Memory)?;
        Ok(Device {
            all,
            dev,
            root,
            groups,
            queues: Slab::new(),
            items: Slab::new(),
            waiters: Slab::new(),
            checked: false,
        })
    }

    pub fn root(&self) -> GroupId {
        self.root
    }

    /// Verify all invariants after every event; slow.
    pub fn set_checked(&mut self, checked: bool) {
        self.checked = checked;
    }

    // ---- groups and queues ----

    pub fn add_group(
        &mut self,
        parent: GroupId,
        weight: Weight,
        class: Class,
    ) -> Result<GroupId, Error> {
        let (above, depth) = {
            let slot = self.group(parent)?;
            (slot.ptr, slot.depth + 1)
        };
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        if class == Class::Writeback {
            return Err(Error::ClassOfGroup(class));
        }
        let dev = self.dev;
        let id = self.groups.insert_with(|_| {
            // SAFETY: `dev` and `above` are alive; a null return is handled.
            let ptr = unsafe { ffi::dts_group_new(dev, above, weight.get(), class as u32) };
            (!ptr.is_null()).then_some(GroupSlot {
                ptr,
                parent: Some(parent),
                depth,
            })
        });
        self.verify();
        id.ok_or(Error::Memory)
    }

    /// Its counters go to its parent. The root stays.
    pub fn remove_group(&mut self, group: GroupId) -> Result<(), Error> {
        let ptr = self.group(group)?.ptr;
        // SAFETY: the group is alive.
        if group == self.root || !unsafe { ffi::dts_group_vacant(ptr) } {
            return Err(Error::Busy("group"));
        }
        self.groups.remove(group);
        // SAFETY: nothing refers to the group any more: no child, queue, item or waiter.
        unsafe {
            ffi::dt_group_exit(ptr);
            ffi::dts_free(ptr.cast());
        }
        self.verify();
        Ok(())
    }

    pub fn parent(&self, group: GroupId) -> Result<Option<GroupId>, Error> {
        Ok(self.group(group)?.parent)
    }

    pub fn add_queue(
        &mut self,
        group: GroupId,
        sync: bool,
        weight: Weight,
        class: Class,
        now: Nanos,
    ) -> Result<QueueId, Error> {
        let grp = self.group(group)?.ptr;
        let id = self.queues.insert_with(|_| {
            // SAFETY: the group is alive; a null return is handled.
            let ptr = unsafe { ffi::dts_queue_new(grp, sync, weight.get(), class as u32, now.0) };
            (!ptr.is_null()).then_some(QueueSlot {
                ptr,
                group,
                users: 0,
            })
        });
        self.verify();
        id.ok_or(Error::Memory)
    }

    pub fn remove_queue(&mut self, queue: QueueId) -> Result<(), Error> {
        let &QueueSlot { ptr, users, .. } = self.queue(queue)?;
        // SAFETY: the queue is alive.
        if users > 0 || unsafe { ffi::dt_queue_busy(ptr) } {
            return Err(Error::Busy("queue"));
        }
        self.queues.remove(queue);
        // SAFETY: no item or waiter refers to the queue.
        unsafe {
            ffi::dt_queue_exit(ptr);
            ffi::dts_free(ptr.cast());
        }
        self.verify();
        Ok(())
    }

    pub fn queue_group(&self, queue: QueueId) -> Result<GroupId, Error> {
        Ok(self.queue(queue)?.group)
    }

    pub fn set_weight(&mut self, entity: Entity, weight: Weight) -> Result<(), Error> {
        let ent = self.entity(entity)?;
        // SAFETY: the entity is alive.
        unsafe { ffi::dt_entity_set_weight(ent, weight.get()) };
        self.verify();
        Ok(())
    }

    pub fn set_class(&mut self, entity: Entity, class: Class, now: Nanos) -> Result<(), Error> {
        let ent = self.entity(entity)?;
        if class == Class::Writeback && !matches!(entity, Entity::Queue(_)) {
            return Err(Error::ClassOfGroup(class));
        }
        // SAFETY: the entity is alive.
        unsafe { ffi::dt_entity_set_class(ent, class as u32, now.0) };
        self.verify();
        Ok(())
    }

    pub fn entity_state(&self, entity: Entity) -> Result<EntityState, Error> {
        let ent = self.entity(entity)?;
        let mut raw = [0; EntityState::LEN];
        // SAFETY: the entity is alive, and the shim writes as many numbers as there is room for.
        unsafe { ffi::dts_entity_state(ent, raw.as_mut_ptr()) };
        Ok(EntityState::from_raw(&raw))
    }

    pub fn stats(&self, group: GroupId) -> Result<Stats, Error> {
        let mut raw = [0; Stats::LEN];
        // SAFETY: the group is alive, and the shim writes as many numbers as there is room for.
        unsafe { ffi::dts_group_stats(self.group(group)?.ptr, raw.as_mut_ptr()) };
        Ok(Stats::from_raw(&raw))
    }

    // ---- items ----

    pub fn insert(
        &mut self,
        queue: QueueId,
        request: Request,
        now: Nanos,
    ) -> Result<ItemId, Error> {
        let id = self.new_item(queue)?;
        self.insert_item(id, request, now)?;
        Ok(id)
    }

    /// Insert an item again that the device gave back; see [`Device::requeue`].
    pub fn insert_again(
        &mut self,
        item: ItemId,
        request: Request,
        now: Nanos,
    ) -> Result<(), Error> {
        self.expect(item, ItemLife::Free, "free")?;
        self.insert_item(item, request, now)
    }

    fn new_item(&mut self, queue: QueueId) -> Result<ItemId, Error> {
        self.queue(queue)?;
        let id = self
            .items
            .insert_with(|id| {
                // SAFETY: no preconditions; a null return is handled.
                let all = unsafe { ffi::dts_item_new(id.to_bits()) };
                if all.is_null() {
                    return None;
                }
                // SAFETY: `all` was just made.
                let ptr = unsafe { ffi::dts_item(all) };
                Some(ItemSlot { all, ptr, queue })
            })
            .ok_or(Error::Memory)?;
        self.hold_queue(queue);
        Ok(id)
    }

    fn insert_item(&mut self, item: ItemId, request: Request, now: Nanos) -> Result<(), Error> {
        let slot = self.item(item)?;
        let queue = self.queue(slot.queue)?.ptr;
        let flags = u32::from(request.head) | u32::from(request.express) << 1;
        // SAFETY: queue and item are alive, and the item is on no list.
        unsafe {
            ffi::dt_insert(
                self.dev,
                queue,
                slot.ptr,
                request.dir as u32,
                request.sector,
                request.sectors,
                flags,
                now.0,
            );
        }
        self.verify();
        Ok(())
    }

    /// Inserts and dispatches at once, where nothing is queued, the device has room and there are
    /// no turns: `None`, and nothing has happened, elsewhere.
    pub fn pass(
        &mut self,
        queue: QueueId,
        request: Request,
        now: Nanos,
    ) -> Result<Option<ItemId>, Error> {
        let id = self.new_item(queue)?;
        let (item, queue) = (self.item(id)?.ptr, self.queue(queue)?.ptr);
        // SAFETY: queue and item are alive, and the item is on no list.
        let passed = unsafe {
            ffi::dt_pass(
                self.dev,
                queue,
                item,
                request.dir as u32,
                request.sector,
                request.sectors,
                now.0,
            )
        };
        if !passed {
            self.drop_item(id);
        }
        self.verify();
        Ok(passed.then_some(id))
    }

    /// Takes a queued item out, or forgets one that was given back.
    pub fn remove(&mut self, item: ItemId, now: Nanos) -> Result<(), Error> {
        match self.item_state(item)?.life {
            ItemLife::Free => {}
            ItemLife::Queued => {
                let ptr = self.item(item)?.ptr;
                // SAFETY: the item is alive and queued.
                unsafe { ffi::dt_remove(self.dev, ptr, now.0) };
            }
            _ => return Err(Error::State("queued or free")),
        }
        self.drop_item(item);
        self.verify();
        Ok(())
    }

    /// A merge has made a queued item longer, or moved its start to the front.
    pub fn grow(&mut self, item: ItemId, sector: u64, sectors: u32) -> Result<(), Error> {
        self.expect(item, ItemLife::Queued, "queued")?;
        let ptr = self.item(item)?.ptr;
        // SAFETY: the item is alive and queued.
        unsafe { ffi::dt_grow(self.dev, ptr, sector, sectors) };
        self.verify();
        Ok(())
    }

    /// The next item for the device, if there is work.
    pub fn dispatch(&mut self, now: Nanos) -> Option<ItemId> {
        let work = self.has_work();
        // SAFETY: the device is alive.
        let item = unsafe { ffi::dt_dispatch(self.dev, now.0) };
        if self.checked {
            assert_eq!(
                work,
                !item.is_null(),
                "has_work says {work} and dispatch disagrees\n{}",
                self.dump()
            );
        }
        self.verify();
        // SAFETY: every item that the core knows was made by the shim, and is alive.
        (!item.is_null()).then(|| ItemId::from_bits(unsafe { ffi::dts_item_id(item) }))
    }

    /// A dispatched item is done; returns its charge. The id is no longer valid.
    pub fn complete(&mut self, item: ItemId, now: Nanos) -> Result<Nanos, Error> {
        self.expect(item, ItemLife::Dispatched, "dispatched")?;
        let ptr = self.item(item)?.ptr;
        // SAFETY: the item is alive and dispatched.
        let charge = unsafe { ffi::dt_complete(self.dev, ptr, now.0) };
        self.drop_item(item);
        self.verify();
        Ok(Nanos(charge))
    }

    /// By what rule items are charged from now on.
    pub fn set_engine(&mut self, engine: Engine) {
        // SAFETY: the device is alive.
        unsafe { ffi::dts_engine(self.dev, engine as u32) };
    }

    /// Says what an item of the queue took, complete or not, as often as more becomes known;
    /// `estimate` is the item's at the first time, and nothing later. See [`Engine::Given`].
    pub fn charge(
        &mut self,
        queue: QueueId,
        dir: Dir,
        took: Nanos,
        estimate: Nanos,
        now: Nanos,
    ) -> Result<(), Error> {
        let ptr = self.queue(queue)?.ptr;
        // SAFETY: the queue is alive.
        unsafe { ffi::dt_charge(self.dev, ptr, dir as u32, took.0, estimate.0, now.0) };
        self.verify();
        Ok(())
    }

    /// The device gives a dispatched item back: [`Device::insert_again`] or [`Device::remove`] it.
    pub fn requeue(&mut self, item: ItemId, now: Nanos) -> Result<(), Error> {
        self.expect(item, ItemLife::Dispatched, "dispatched")?;
        let ptr = self.item(item)?.ptr;
        // SAFETY: the item is alive and dispatched.
        unsafe { ffi::dt_requeue(self.dev, ptr, now.0) };
        self.verify();
        Ok(())
    }

    pub fn item_state(&self, item: ItemId) -> Result<ItemState, Error> {
        let mut raw = [0; ItemState::LEN];
        // SAFETY: the item is alive, and the shim writes as many numbers as there is room for.
        unsafe { ffi::dts_item_state(self.item(item)?.ptr, raw.as_mut_ptr()) };
        Ok(ItemState::from_raw(&raw))
    }

    pub fn item_queue(&self, item: ItemId) -> Result<QueueId, Error> {
        Ok(self.item(item)?.queue)
    }

    /// The queued item of `queue` that begins at `sector`.
    pub fn find(&self, queue: QueueId, sector: u64) -> Result<Option<ItemId>, Error> {
        // SAFETY: the queue is alive.
        let item = unsafe { ffi::dt_queue_find(self.queue(queue)?.ptr, sector) };
        Ok(self.id_of(item))
    }

    /// The items of the same queue before and after a queued one, by sector.
    pub fn neighbours(&self, item: ItemId) -> Result<[Option<ItemId>; 2], Error> {
        self.expect(item, ItemLife::Queued, "queued")?;
        let ptr = self.item(item)?.ptr;
        // SAFETY: the item is alive and queued.
        let (prev, next) = unsafe { (ffi::dt_item_prev(ptr), ffi::dt_item_next(ptr)) };
        Ok([self.id_of(prev), self.id_of(next)])
    }

    // ---- time ----

    pub fn has_work(&self) -> bool {
        // SAFETY: the device is alive.
        unsafe { ffi::dts_has_work(self.dev) }
    }

    /// When to call [`Device::tick`], if at all.
    pub fn wake_at(&self) -> Option<Nanos> {
        // SAFETY: the device is alive.
        let at = unsafe { ffi::dts_wake_at(self.dev) };
        (at != 0).then_some(Nanos(at))
    }

    pub fn tick(&mut self, now: Nanos) {
        // SAFETY: the device is alive.
        unsafe { ffi::dt_tick(self.dev, now.0) };
        self.verify();
    }

    // ---- the gate ----

    /// A process finds no request free and waits.
    pub fn gate_wait(&mut self, queue: QueueId, now: Nanos) -> Result<WaiterId, Error> {
        let queue_ptr = self.queue(queue)?.ptr;
        let id = self
            .waiters
            .insert_with(|id| {
                // SAFETY: no preconditions; a null return is handled.
                let all = unsafe { ffi::dts_waiter_new(id.to_bits()) };
                if all.is_null() {
                    return None;
                }
                // SAFETY: `all` was just made.
                let ptr = unsafe { ffi::dts_waiter(all) };
                Some(WaiterSlot {
                    all,
                    ptr,
                    queue,
                    granted: false,
                })
            })
            .ok_or(Error::Memory)?;
        let ptr = self.waiter(id)?.ptr;
        self.hold_queue(queue);
        // SAFETY: waiter and queue are alive.
        unsafe { ffi::dt_gate_wait(self.dev, ptr, queue_ptr, now.0) };
        self.verify();
        Ok(id)
    }

    /// A request is free: the waiter to have it, until it settles or cancels.
    pub fn gate_grant(&mut self, now: Nanos) -> Option<WaiterId> {
        // SAFETY: the device is alive.
        let waiter = unsafe { ffi::dt_gate_grant(self.dev, now.0) };
        self.verify();
        if waiter.is_null() {
            return None;
        }
        // SAFETY: every waiter that the core knows was made by the shim, and is alive.
        let id = WaiterId::from_bits(unsafe { ffi::dts_waiter_id(waiter) });
        if let Some(slot) = self.waiters.get_mut(id) {
            slot.granted = true;
        }
        Some(id)
    }

    /// The request that was granted now exists.
    pub fn gate_settle(&mut self, waiter: WaiterId) -> Result<(), Error> {
        let slot = self.waiter(waiter)?;
        if !slot.granted {
            return Err(Error::State("granted"));
        }
        let queue = self.queue(slot.queue)?.ptr;
        // SAFETY: the queue is alive and has a granted request.
        unsafe { ffi::dt_gate_settle(self.dev, queue) };
        self.drop_waiter(waiter);
        self.verify();
        Ok(())
    }

    /// The waiter gives up, whether it had been granted a request or not. Says whether it had.
    pub fn gate_cancel(&mut self, waiter: WaiterId, now: Nanos) -> Result<bool, Error> {
        let slot = self.waiter(waiter)?;
        let (ptr, granted) = (slot.ptr, slot.granted);
        // SAFETY: the waiter is alive.
        unsafe { ffi::dt_gate_cancel(self.dev, ptr, now.0) };
        self.drop_waiter(waiter);
        self.verify();
        Ok(granted)
    }

    pub fn waiter_queue(&self, waiter: WaiterId) -> Result<QueueId, Error> {
        Ok(self.waiter(waiter)?.queue)
    }

    // ---- the device ----

    pub fn tunables(&self) -> Tunables {
        let mut raw = [0; 5];
        // SAFETY: the device is alive, and the shim writes as many numbers as there is room for.
        unsafe { ffi::dts_tunables_get(self.dev, raw.as_mut_ptr()) };
        Tunables {
            slice: Nanos(raw[0]),
            idle: Nanos(raw[1]),
            depth: raw[2] as u32,
            order: Order::ALL[raw[3] as usize],
            strict: raw[4] != 0,
        }
    }

    pub fn tune(&mut self, tunables: Tunables, now: Nanos) {
        let raw = [
            tunables.slice.0,
            tunables.idle.0,
            u64::from(tunables.depth),
            tunables.order as u64,
            u64::from(tunables.strict),
        ];
        // SAFETY: the device is alive, and the shim reads as many numbers as there are.
        unsafe { ffi::dts_tune(self.dev, raw.as_ptr(), now.0) };
        self.verify();
    }

    pub fn resize(&mut self, depth_hw: u32, tags: u32, now: Nanos) {
        // SAFETY: the device is alive.
        unsafe { ffi::dt_dev_resize(self.dev, depth_hw, tags, now.0) };
        self.verify();
    }

    /// Somebody waits for the device to have written its cache.
    pub fn commit_begin(&mut self, now: Nanos) {
        // SAFETY: the device is alive.
        unsafe { ffi::dt_commit_begin(self.dev, now.0) };
        self.verify();
    }

    /// It has: what began at `begun` is over.
    pub fn commit_end(&mut self, begun: Nanos, now: Nanos) {
        // SAFETY: the device is alive, and the time only compared.
        unsafe { ffi::dt_commit_end(self.dev, begun.0, now.0) };
        self.verify();
    }

    pub fn state(&self) -> DeviceState {
        let mut raw = [0; DeviceState::LEN];
        // SAFETY: the device is alive, and the shim writes as many numbers as there is room for.
        unsafe { ffi::dts_dev_state(self.dev, raw.as_mut_ptr()) };
        DeviceState::from_raw(&raw)
    }

    pub fn counts(&self) -> Counts {
        let mut raw = [0; Counts::LEN];
        // SAFETY: the device is alive, and the shim writes as many numbers as there is room for.
        unsafe { ffi::dts_dev_counts(self.dev, raw.as_mut_ptr()) };
        Counts::from_raw(&raw)
    }

    // ---- health ----

    /// Turns the device to plain arrival order.
    pub fn fail(&mut self, fault: Fault, now: Nanos) {
        // SAFETY: the device is alive.
        unsafe { ffi::dt_fail(self.dev, fault as u32, now.0) };
        self.verify();
    }

    /// Back to shares, if the state can be made sound; says whether it could.
    pub fn rearm(&mut self, now: Nanos) -> bool {
        // SAFETY: the device is alive.
        unsafe { ffi::dt_rearm(self.dev, now.0) };
        self.verify();
        self.state().fault.is_none()
    }

    /// Look for requests that wait past the limit.
    pub fn watch(&mut self, now: Nanos) {
        // SAFETY: the device is alive.
        unsafe { ffi::dt_watch(self.dev, now.0) };
        self.verify();
    }

    pub fn fault_name(fault: Option<Fault>) -> String {
        let raw = fault.map_or(0, |fault| fault as u32);
        // SAFETY: the core returns a static string for any number.
        unsafe { CStr::from_ptr(ffi::dt_fault_name(raw)) }
            .to_string_lossy()
            .into_owned()
    }

    /// Number and text of the first invariant that does not hold.
    pub fn check(&self) -> Result<(), (i32, String)> {
        // SAFETY: the device is alive; the check changes nothing.
        let number = unsafe { ffi::dt_check(self.dev) };
        if number == 0 {
            return Ok(());
        }
        // SAFETY: the core returns a static string for any number.
        let text = unsafe { CStr::from_ptr(ffi::dt_invariant(number)) };
        Err((number, text.to_string_lossy().into_owned()))
    }

    /// The whole state as text, a line for the device, each group and each queue.
    pub fn dump(&self) -> String {
        unsafe extern "C" fn line(arg: *mut c_void, text: *const c_char) {
            // SAFETY: `arg` is the String below, `text` a string of the core's, for this call.
            let (all, text) = unsafe { (&mut *arg.cast::<String>(), CStr::from_ptr(text)) };
            all.push_str(&text.to_string_lossy());
            all.push('\n');
        }
        let mut all = String::new();
        // SAFETY: the device is alive, and `all` outlives the call.
        unsafe { ffi::dt_dump(self.dev, line, (&raw mut all).cast()) };
        all
    }

    /// Damages the state on purpose: takes an entity out of its ready line (or its gate line)
    /// though it belongs there. Says whether it stood there. For tests of what survives it.
    pub fn corrupt_line(&mut self, entity: Entity, gate: bool) -> Result<bool, Error> {
        let ent = self.entity(entity)?;
        // SAFETY: the entity is alive; the core is to cope with what this leaves.
        Ok(unsafe { ffi::dts_corrupt_line(ent, gate) })
    }

    // ---- inside ----

    fn verify(&self) {
        if self.checked
            && let Err((number, text)) = self.check()
        {
            panic!("invariant {number} does not hold: {text}\n{}", self.dump());
        }
    }

    fn group(&self, id: GroupId) -> Result<&GroupSlot, Error> {
        self.groups.get(id).ok_or(Error::Unknown("group"))
    }

    fn queue(&self, id: QueueId) -> Result<&QueueSlot, Error> {
        self.queues.get(id).ok_or(Error::Unknown("queue"))
    }

    fn item(&self, id: ItemId) -> Result<&ItemSlot, Error> {
        self.items.get(id).ok_or(Error::Unknown("item"))
    }

    fn waiter(&self, id: WaiterId) -> Result<&WaiterSlot, Error> {
        self.waiters.get(id).ok_or(Error::Unknown("waiter"))
    }

    fn entity(&self, entity: Entity) -> Result<*mut ffi::Entity, Error> {
        // SAFETY: what the ids name is alive.
        Ok(unsafe {
            match entity {
                Entity::Group(id) => ffi::dts_group_entity(self.group(id)?.ptr),
                Entity::Leaf(id) => ffi::dts_leaf_entity(self.group(id)?.ptr),
                Entity::Queue(id) => ffi::dts_queue_entity(self.queue(id)?.ptr),
            }
        })
    }

    fn expect(&self, item: ItemId, life: ItemLife, name: &'static str) -> Result<(), Error> {
        if self.item_state(item)?.life == life {
            Ok(())
        } else {
            Err(Error::State(name))
        }
    }

    fn id_of(&self, item: *mut ffi::Item) -> Option<ItemId> {
        // SAFETY: every item that the core knows was made by the shim, and is alive.
        (!item.is_null()).then(|| ItemId::from_bits(unsafe { ffi::dts_item_id(item) }))
    }

    fn hold_queue(&mut self, queue: QueueId) {
        if let Some(slot) = self.queues.get_mut(queue) {
            slot.users += 1;
        }
    }

    fn release_queue(&mut self, queue: QueueId) {
        if let Some(slot) = self.queues.get_mut(queue) {
            slot.users -= 1;
        }
    }

    fn drop_item(&mut self, item: ItemId) {
        if let Some(slot) = self.items.remove(item) {
            self.release_queue(slot.queue);
            // SAFETY: the item is neither queued nor in flight, so the core holds no pointer to it.
            unsafe { ffi::dts_free(slot.all.cast()) };
        }
    }

    fn drop_waiter(&mut self, waiter: WaiterId) {
        if let Some(slot) = self.waiters.remove(waiter) {
            self.release_queue(slot.queue);
            // SAFETY: the waiter has left its queue's list.
            unsafe { ffi::dts_free(slot.all.cast()) };
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: each object was allocated once by the shim, and no call into the core follows.
        // The root lies in `all`.
        unsafe {
            for slot in self.items.iter() {
                ffi::dts_free(slot.all.cast());
            }
            for slot in self.waiters.iter() {
                ffi::dts_free(slot.all.cast());
            }
            for slot in self.queues.iter() {
                ffi::dts_free(slot.ptr.cast());
            }
            for slot in self.groups.iter().filter(|slot| slot.parent.is_some()) {
                ffi::dts_free(slot.ptr.cast());
            }
            ffi::dts_free(self.all.cast());
        }
    }
}
