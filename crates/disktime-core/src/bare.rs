//! The core without the checks and tables of a [`Device`](crate::Device), and one plain list in the
//! same terms: for benches, which measure what the calls cost by themselves. Items are made once,
//! named by index and used again, as a disk's requests are.

use crate::{Error, ffi};

struct Items {
    all: Vec<*mut ffi::ItemBox>,
}

impl Items {
    fn new(len: usize) -> Result<Self, Error> {
        let mut items = Items { all: Vec::new() };
        for index in 0..len {
            // SAFETY: no preconditions; a null return is handled.
            let item = unsafe { ffi::dts_item_new(index as u64) };
            if item.is_null() {
                return Err(Error::Memory);
            }
            items.all.push(item);
        }
        Ok(items)
    }

    fn item(&self, index: usize) -> *mut ffi::Item {
        // SAFETY: every item lives as long as this.
        unsafe { ffi::dts_item(self.all[index]) }
    }

    /// The item that a dispatch returned, if any.
    fn index(item: *mut ffi::Item) -> Option<usize> {
        // SAFETY: only items of this table are ever inserted.
        (!item.is_null()).then(|| unsafe { ffi::dts_item_id(item) } as usize)
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        for &item in &self.all {
            // SAFETY: allocated by the shim, once, and its device is gone.
            unsafe { ffi::dts_free(item.cast()) }
        }
    }
}

/// The core with groups of one queue each.
pub struct Core {
    all: *mut ffi::DevBox,
    dev: *mut ffi::Dev,
    groups: Vec<*mut ffi::Group>,
    queues: Vec<*mut ffi::Queue>,
    items: Items,
}

// SAFETY: all memory behind the pointers belongs to this alone, and the core keeps no state outside
// of it.
unsafe impl Send for Core {}

impl Core {
    /// A disk without seeks that takes `depth` items at once. Item i is of group i modulo their
    /// number.
    pub fn new(depth: u32, weights: &[u32], items: usize) -> Result<Self, Error> {
        let items = Items::new(items)?;
        // SAFETY: no preconditions; a null return is handled.
        let all = unsafe { ffi::dts_dev_new(depth, 1 << 20, false, 0) };
        if all.is_null() {
            return Err(Error::Memory);
        }
        // SAFETY: `all` was just made.
        let (dev, root) = unsafe { (ffi::dts_dev(all), ffi::dts_root(all)) };
        let mut core = Core {
            all,
            dev,
            groups: Vec::new(),
            queues: Vec::new(),
            items,
        };
        for &weight in weights {
            if !(1..=10_000).contains(&weight) {
                return Err(Error::Weight(weight));
            }
            // SAFETY: device and root are alive; a null return is handled.
            let group = unsafe { ffi::dts_group_new(dev, root, weight, 1) };
            if group.is_null() {
                return Err(Error::Memory);
            }
            core.groups.push(group);
            // SAFETY: the group is alive; a null return is handled.
            let queue = unsafe { ffi::dts_queue_new(group, true, 100, 1, 0) };
            if queue.is_null() {
                return Err(Error::Memory);
            }
            core.queues.push(queue);
        }
        Ok(core)
    }

    /// # Panics
    /// If the item is queued or in flight.
    pub fn insert(&mut self, item: usize, sector: u64, now: u64) {
        let queue = self.queues[item % self.queues.len()];
        let all = self.items.all[item];
        // SAFETY: all three are alive; an item that is in use is refused.
        let free = unsafe { ffi::dts_bare_insert(self.dev, queue, all, sector, 8, now) };
        assert!(free, "item {item} is in use");
    }

    pub fn has_work(&self) -> bool {
        // SAFETY: the device is alive.
        unsafe { ffi::dts_has_work(self.dev) }
    }

    pub fn dispatch(&mut self, now: u64) -> Option<usize> {
        // SAFETY: the device is alive.
        Items::index(unsafe { ffi::dt_dispatch(self.dev, now) })
    }

    /// Nothing happens if the item is not in flight.
    pub fn complete(&mut self, item: usize, now: u64) {
        // SAFETY: both are alive.
        unsafe { ffi::dt_complete(self.dev, self.items.item(item), now) };
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: allocated by the shim, once; nothing is called with any of them again.
        unsafe {
            for &queue in &self.queues {
                ffi::dts_free(queue.cast());
            }
            for &group in &self.groups {
                ffi::dts_free(group.cast());
            }
            ffi::dts_free(self.all.cast());
        }
    }
}

/// One list: first come, first served.
pub struct List {
    list: *mut ffi::ListBox,
    items: Items,
}

// SAFETY: as for `Core`.
unsafe impl Send for List {}

impl List {
    pub fn new(depth: u32, items: usize) -> Result<Self, Error> {
        let items = Items::new(items)?;
        // SAFETY: no preconditions; a null return is handled.
        let list = unsafe { ffi::dts_list_new(depth) };
        if list.is_null() {
            return Err(Error::Memory);
        }
        Ok(List { list, items })
    }

    /// # Panics
    /// If the item is queued or in flight.
    pub fn insert(&mut self, item: usize, sector: u64) {
        // SAFETY: both are alive; an item that is in use is refused.
        let free = unsafe { ffi::dts_list_insert(self.list, self.items.all[item], sector, 8) };
        assert!(free, "item {item} is in use");
    }

    pub fn dispatch(&mut self) -> Option<usize> {
        // SAFETY: the list is alive.
        Items::index(unsafe { ffi::dts_list_dispatch(self.list) })
    }

    /// Nothing happens if the item is not in flight.
    pub fn complete(&mut self, item: usize) {
        // SAFETY: both are alive.
        unsafe { ffi::dts_list_complete(self.list, self.items.item(item)) };
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: allocated by the shim, once.
        unsafe { ffi::dts_free(self.list.cast()) }
    }
}
