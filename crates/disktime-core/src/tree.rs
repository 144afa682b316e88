//! The core's ordered tree by itself, for its tests: nodes are named by index.

use crate::ffi;

/// An ordered tree over `len` nodes, none of them on it at first.
pub struct Tree {
    all: *mut ffi::TreeBox,
    on: Vec<bool>,
}

impl Tree {
    pub fn new(len: usize) -> Self {
        // SAFETY: no preconditions.
        let all = unsafe { ffi::dts_tree_new(len as u64) };
        assert!(!all.is_null(), "out of memory");
        Tree {
            all,
            on: vec![false; len],
        }
    }

    pub fn contains(&self, index: usize) -> bool {
        self.on[index]
    }

    /// # Panics
    /// If the node is on the tree.
    pub fn add(&mut self, index: usize, key: u64) {
        assert!(!self.on[index], "node {index} is on the tree");
        self.on[index] = true;
        // SAFETY: the index is within bounds, and the node on no tree.
        unsafe { ffi::dts_tree_add(self.all, index as u64, key) }
    }

    /// # Panics
    /// If the node is not on the tree.
    pub fn del(&mut self, index: usize) {
        self.expect_on(index);
        self.on[index] = false;
        // SAFETY: the node is on the tree.
        unsafe { ffi::dts_tree_del(self.all, index as u64) }
    }

    /// # Panics
    /// If the node is not on the tree.
    pub fn set_key(&mut self, index: usize, key: u64) {
        self.expect_on(index);
        // SAFETY: the node is on the tree.
        unsafe { ffi::dts_tree_move(self.all, index as u64, key) }
    }

    pub fn first(&self) -> Option<usize> {
        // SAFETY: the tree is alive.
        usize::try_from(unsafe { ffi::dts_tree_first(self.all) }).ok()
    }

    /// # Panics
    /// If the node is not on the tree.
    pub fn next(&self, index: usize) -> Option<usize> {
        self.expect_on(index);
        // SAFETY: the node is on the tree.
        usize::try_from(unsafe { ffi::dts_tree_next(self.all, index as u64) }).ok()
    }

    /// # Panics
    /// If the node is not on the tree.
    pub fn prev(&self, index: usize) -> Option<usize> {
        self.expect_on(index);
        // SAFETY: the node is on the tree.
        usize::try_from(unsafe { ffi::dts_tree_prev(self.all, index as u64) }).ok()
    }

    /// The first node whose key is not before `key`.
    pub fn at(&self, key: u64) -> Option<usize> {
        // SAFETY: the tree is alive.
        usize::try_from(unsafe { ffi::dts_tree_at(self.all, key) }).ok()
    }

    /// Nodes on the longest way down.
    pub fn height(&self) -> u64 {
        // SAFETY: the tree is alive and has this many nodes.
        unsafe { ffi::dts_tree_height(self.all, self.on.len() as u64) }
    }

    fn expect_on(&self, index: usize) {
        assert!(self.on[index], "node {index} is not on the tree");
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: allocated by the shim, once.
        unsafe { ffi::dts_free(self.all.cast()) }
    }
}
