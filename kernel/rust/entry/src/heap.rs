// SPDX-License-Identifier: MIT OR Apache-2.0

//! Memory from the arena, in blocks whose size is a power of two. A freed block is used again for the same
//! size, so a discipline whose backlog is bounded needs a bounded part of the arena.

use std::alloc::{GlobalAlloc, Layout};

/// The part of the arena that is free. The loader writes both addresses before the discipline is built.
#[repr(C)]
struct Heap {
    next: u64,
    end: u64,
    /// First freed block of each size; each block holds the address of the next one.
    freed: [u64; 64],
}

#[unsafe(export_name = "gw_heap")]
static mut HEAP: Heap = Heap { next: 0, end: 0, freed: [0; 64] };

struct Arena;

#[global_allocator]
static ARENA: Arena = Arena;

/// Number of the size of blocks for this layout.
#[inline]
fn class(layout: Layout) -> u32 {
    let bytes = layout.size().max(layout.align()).max(16);
    64 - (bytes - 1).leading_zeros()
}

// SAFETY: blocks do not overlap, and are aligned to their size up to a page. There is one call at a time.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class(layout) & 63;
        // SAFETY: there is one call at a time, and freed blocks hold the address of the next one.
        unsafe {
            let heap = &mut *(&raw mut HEAP);
            let freed = heap.freed[class as usize];
            if freed != 0 {
                heap.freed[class as usize] = *(freed as *const u64);
                return freed as *mut u8;
            }
            let size = 1u64 << class;
            let mask = size.min(4096) - 1;
            let at = (heap.next + mask) & !mask;
            if size > heap.end.wrapping_sub(at) || at >= heap.end {
                return core::ptr::null_mut();
            }
            heap.next = at + size;
            at as *mut u8
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = class(layout) & 63;
        // SAFETY: there is one call at a time, and a block has at least 16 bytes.
        unsafe {
            let heap = &mut *(&raw mut HEAP);
            *block.cast::<u64>() = heap.freed[class as usize];
            heap.freed[class as usize] = block as u64;
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller passes a valid layout and a size that is not too large for one.
        unsafe {
            let other = Layout::from_size_align_unchecked(size, layout.align());
            if class(other) == class(layout) {
                return block;
            }
            let moved = self.alloc(other);
            if !moved.is_null() {
                core::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}
