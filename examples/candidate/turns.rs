//! A candidate for `giveway evaluate judge`: flows take turns, and the longest of 64 queues loses a packet
//! if all are full.
//!
//! ```sh
//! rustup target add wasm32-unknown-unknown
//! rustc --target wasm32-unknown-unknown -O --crate-type cdylib -C panic=abort turns.rs -o turns.wasm
//! giveway evaluate judge turns.wasm
//! ```

#![no_std]

use core::cell::UnsafeCell;

#[link(wasm_import_module = "giveway")]
unsafe extern "C" {
    /// Key of the flow of a packet.
    safe fn flow(packet: i64) -> i64;
    /// Drops a packet.
    safe fn drop(packet: i64);
}

/// Queues, and packets in each.
const QUEUES: usize = 64;
const LONGEST: usize = 128;
/// Packets in all queues together.
const LIMIT: usize = 300;

/// A ring of packets.
#[derive(Clone, Copy)]
struct Ring {
    packets: [i64; LONGEST],
    first: usize,
    len: usize,
}

struct State {
    queues: [Ring; QUEUES],
    next: usize,
    total: usize,
}

struct Shared(UnsafeCell<State>);

// SAFETY: a module has one thread, and its functions do not call each other.
unsafe impl Sync for Shared {}

const EMPTY: Ring = Ring { packets: [0; LONGEST], first: 0, len: 0 };
static STATE: Shared = Shared(UnsafeCell::new(State { queues: [EMPTY; QUEUES], next: 0, total: 0 }));

fn state() -> &'static mut State {
    // SAFETY: each exported function takes it once.
    unsafe { &mut *STATE.0.get() }
}

impl Ring {
    fn push(&mut self, packet: i64) {
        self.packets[(self.first + self.len) % LONGEST] = packet;
        self.len += 1;
    }

    fn pop(&mut self) -> i64 {
        let packet = self.packets[self.first];
        self.first = (self.first + 1) % LONGEST;
        self.len -= 1;
        packet
    }
}

/// A packet arrives.
#[unsafe(no_mangle)]
pub extern "C" fn enqueue(packet: i64) {
    let state = state();
    let place = flow(packet) as u64 as usize % QUEUES;
    if state.queues[place].len == LONGEST {
        return drop(packet);
    }
    state.queues[place].push(packet);
    state.total += 1;
    if state.total > LIMIT {
        let mut longest = 0;
        for other in 1..QUEUES {
            if state.queues[other].len > state.queues[longest].len {
                longest = other;
            }
        }
        drop(state.queues[longest].pop());
        state.total -= 1;
    }
}

/// The packet that leaves, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn dequeue() -> i64 {
    let state = state();
    for _ in 0..QUEUES {
        state.next = (state.next + 1) % QUEUES;
        let queue = &mut state.queues[state.next];
        if queue.len > 0 {
            state.total -= 1;
            return queue.pop();
        }
    }
    -1
}

#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
