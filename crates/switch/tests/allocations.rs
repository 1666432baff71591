//! No arbiter allocates when it is asked: its buffers are there from the beginning.
//!
//! An allocator cannot be written without `unsafe`; this one only counts and passes on to the system's.
#![allow(unsafe_code)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use support::{Paper, Shape, build, variants};
use switch::Spec;
use switch::arbiter::Matching;
use switch::scheduler::{ALL, Queueing};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { System.dealloc(block, layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations in 200 slots of a switch of 32 ports, from the first slot on.
fn allocations(scheduler: &Spec, filled: u64, busy: u64) -> u64 {
    let shape = Shape { ports: 32, filled, busy, seed: 7 };
    let slots: Vec<Paper<1>> = shape.slots(scheduler.queueing(), 200);
    let mut arbiter = build::<1>(scheduler, shape.ports, 7);
    let mut matching = Matching::new();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let mut pairs = 0;
    for paper in &slots {
        paper.ask(&mut *arbiter, &mut matching);
        pairs += matching.pairs().len();
    }
    let counted = ALLOCATIONS.load(Ordering::Relaxed) - before;
    // Where the queues decide, no arbiter is asked.
    let asked = !matches!(scheduler.queueing(), Queueing::Output | Queueing::Combined);
    assert!(pairs > 0 || !asked, "{scheduler} has decided something");
    counted
}

/// The only test of this file: another one beside it would be counted, too.
#[test]
fn arbiters_do_not_allocate() {
    // The counter works: building an arbiter allocates.
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    drop(build::<1>(&(ALL[0].default)(), 32, 7));
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > before);

    for entry in ALL {
        for scheduler in variants(entry, 32) {
            for (filled, busy) in [(100, 0), (20, 0), (60, 80)] {
                let counted = allocations(&scheduler, filled, busy);
                assert_eq!(
                    counted, 0,
                    "{scheduler}, {filled} % of the queues filled, {busy} % of the ports busy"
                );
            }
        }
    }
}
