//! Counts what a test allocates: how often memory is asked for, how many bytes are held, and the most that were held at once.
//!
//! A test that measures memory makes [`Counting`] its allocator:
//!
//! ```
//! #[global_allocator]
//! static COUNTING: giveway_counting::Counting = giveway_counting::Counting;
//!
//! let before = giveway_counting::calls();
//! let numbers = vec![1u64; 100];
//! assert_eq!(giveway_counting::calls() - before, 1);
//! assert!(giveway_counting::held() >= 800);
//! drop(numbers);
//! ```
//!
//! Each thread has its own counters, so that tests of one file do not count each other's memory. A block that one thread
//! allocates and another frees is held by the first for good.
//!
//! An allocator cannot be written without `unsafe`. This one passes every call on to the system's.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Constants without a destructor: their use allocates nothing, and they are there until the thread is gone.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

/// How often this thread has asked for memory, a block that grows or shrinks included.
pub fn calls() -> u64 {
    CALLS.get()
}

/// How many bytes this thread holds: what it has allocated less what it has freed.
pub fn held() -> i64 {
    HELD.get()
}

/// The most bytes that `what` holds at once beyond those that were held before it, and its result. `what` may ask the same of a part
/// of itself.
pub fn most<T>(what: impl FnOnce() -> T) -> (i64, T) {
    let before = held();
    let outer = MOST.replace(before);
    let result = what();
    let most = MOST.get();
    MOST.set(most.max(outer));
    (most - before, result)
}

/// The system's allocator, with counters.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

fn asked(bytes: usize) {
    CALLS.set(CALLS.get() + 1);
    let held = HELD.get() + bytes as i64;
    HELD.set(held);
    MOST.set(MOST.get().max(held));
}

fn freed(bytes: usize) {
    HELD.set(HELD.get() - bytes as i64);
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        asked(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        asked(layout.size());
        // The system's: memory that is never touched takes no room, so that a test can count what would not fit.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        freed(layout.size());
        unsafe { System.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it is copied both are there.
        asked(size);
        freed(layout.size());
        unsafe { System.realloc(block, layout, size) }
    }
}
