//! An allocator that counts for tests: the number of allocations, the bytes in use, and their largest number.
//!
//! A test that measures memory has [`Counting`] as its allocator:
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
//! Each thread has its own counters, so tests of one program do not count each other's memory. A block that
//! one thread allocates and another frees stays counted in the first thread, and is subtracted in the second.
//!
//! An allocator requires `unsafe`. This one forwards every call to the system's allocator.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Constants without a destructor: access does not allocate, and they exist until the thread has ended.
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MAX: Cell<i64> = const { Cell::new(0) };
}

/// Number of allocations and reallocations of this thread.
pub fn calls() -> u64 {
    CALLS.get()
}

/// Bytes that this thread has allocated, less those that it has freed.
pub fn held() -> i64 {
    HELD.get()
}

/// Calls `what`. Returns the largest number of bytes in use during the call, beyond those before it, and the
/// result. Calls may be nested.
pub fn most<T>(what: impl FnOnce() -> T) -> (i64, T) {
    let before = held();
    let outer = MAX.replace(before);
    let result = what();
    let most = MAX.get();
    MAX.set(most.max(outer));
    (most - before, result)
}

/// The system's allocator, with counters.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

fn count_in(bytes: usize) {
    CALLS.set(CALLS.get() + 1);
    let held = HELD.get() + bytes as i64;
    HELD.set(held);
    MAX.set(MAX.get().max(held));
}

fn count_out(bytes: usize) {
    HELD.set(HELD.get() - bytes as i64);
}

// SAFETY: every call is forwarded unchanged to the system's allocator, which has the required properties.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_in(layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_in(layout.size());
        // Forwarded, too: untouched zeroed memory takes no physical memory, so a test can count more than
        // fits.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_out(layout.size());
        unsafe { System.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may exist while the content is copied.
        count_in(size);
        count_out(layout.size());
        unsafe { System.realloc(block, layout, size) }
    }
}
