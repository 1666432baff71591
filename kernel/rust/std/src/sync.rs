// SPDX-License-Identifier: MIT OR Apache-2.0

pub use alloc_crate::sync::{Arc, Weak};
pub use core::sync::atomic;

use core::cell::{Cell, OnceCell};
use core::ops::Deref;

/// A cell that is written once.
pub struct OnceLock<T>(OnceCell<T>);

// SAFETY: a qdisc is called under its lock, so there is one thread.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub const fn new() -> OnceLock<T> {
        OnceLock(OnceCell::new())
    }
    /// The value, which `init` creates at the first call.
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(init)
    }
    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

/// A value that is computed when it is first used.
pub struct LazyLock<T, F = fn() -> T> {
    value: OnceCell<T>,
    init: Cell<Option<F>>,
}

// SAFETY: a qdisc is called under its lock, so there is one thread.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// A value that `init` will compute.
    pub const fn new(init: F) -> LazyLock<T, F> {
        LazyLock { value: OnceCell::new(), init: Cell::new(Some(init)) }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.get_or_init(|| {
            let init = self.init.take();
            init.expect("a value does not need itself")()
        })
    }
}
