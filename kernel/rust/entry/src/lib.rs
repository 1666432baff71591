// SPDX-License-Identifier: MIT OR Apache-2.0

//! The entries of the disciplines in the kernel: functions of numbers, which the shim calls.
//!
//! # Principles
//! - The payload of a packet is the number of a slot, in which the shim keeps the socket buffer. A discipline
//!   sees no pointer of the kernel.
//! - Arguments and results are numbers, or lie in [`CALL`]. So the kernel checks each function on its own.
//! - An object of the kernel holds one discipline and one queue of it, so the state is a static variable. The
//!   kernel calls a qdisc under its lock, one call at a time.
//! - The same code runs in a test on the host, where its results are compared with those in the kernel.

#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]

pub mod call;
mod discipline;
#[cfg(target_arch = "bpf")]
mod heap;
#[cfg(target_arch = "bpf")]
mod runtime;
pub mod test;

pub use call::CALL;
pub use discipline::Held;

/// Generates the entries of disciplines: `gw_NAME_build`, `gw_NAME_arrive` and so on.
macro_rules! entries {
    ($($name:ident),* $(,)?) => {$(
        /// Entries of one discipline.
        pub mod $name {
            use crate::discipline::Held;
            use giveway_disciplines::$name::Config;

            static mut HELD: Held<Config> = Held::EMPTY;

            fn held() -> &'static mut Held<Config> {
                // SAFETY: the qdisc is called under its lock, and each entry takes one reference that it
                // drops.
                unsafe { &mut *(&raw mut HELD) }
            }

            /// Builds the discipline: the default, or the variant with this number. Returns 0 if it is built.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_build"))]
            #[inline(never)]
            pub extern "C" fn build(variant: u64, rate: u64, seed: u64) -> u64 {
                held().build(variant, rate, seed)
            }

            /// Enqueues the packet in [`crate::CALL`] at a time in picoseconds.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_arrive"))]
            #[inline(never)]
            pub extern "C" fn arrive(now: u64) {
                held().arrive(now);
            }

            /// Dequeues the next packet. Returns a [`crate::call::Outcome`].
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_leave"))]
            #[inline(never)]
            pub extern "C" fn leave(now: u64) -> u64 {
                held().leave(now)
            }

            /// Takes the next packet that the last call dropped: its slot, with the reason above 32 bits; all
            /// ones without one.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_doomed"))]
            #[inline(never)]
            pub extern "C" fn doomed() -> u64 {
                held().doomed()
            }

            /// Drops the backlog and returns to the initial state.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_reset"))]
            #[inline(never)]
            pub extern "C" fn reset(now: u64) {
                held().reset(now);
            }

            /// The rate of the link is another one from now on.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_rate"))]
            #[inline(never)]
            pub extern "C" fn rate(rate: u64, now: u64) {
                held().rate(rate, now);
            }

            /// Number of packets that the last call marked.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_marks"))]
            #[inline(never)]
            pub extern "C" fn marks() -> u64 {
                held().marks() as u64
            }

            /// Number of packets in the queue.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_packets"))]
            #[inline(never)]
            pub extern "C" fn packets() -> u64 {
                held().backlog().packets
            }

            /// Number of bytes in the queue.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_bytes"))]
            #[inline(never)]
            pub extern "C" fn bytes() -> u64 {
                held().backlog().bytes
            }

            /// Carries out operations of a test and records their results.
            #[unsafe(export_name = concat!("gw_", stringify!($name), "_test"))]
            pub extern "C" fn test(ops: u64) -> u64 {
                use crate::test::{Entries, run};
                run(&Entries { arrive, leave, doomed, reset, rate, marks, packets, bytes }, ops)
            }
        }
    )*};
}

/// Calls a macro with the names of all disciplines.
#[macro_export]
macro_rules! each {
    ($macro:ident) => {
        $macro! {
            fifo, pfifo, bfifo, pfifo_fast, prio, tbf, ets, wrr, htb, hfsc, netem, bsq, bsqred,
            drr, srr, sfq, fq, fq_codel, fq_pie, cake, cake_mq, scfq, stfq, afd, csfq, fpip, fpip_edge,
            efd, run2c, xprotect, pias, las, lars, srpt,
            red, ared, gred, choke, sfb, codel, cobalt, pie, pi2, dualpi2, pip,
            vc, wfq, wf2q, tss, trr, trr_round, trr_sound, vtrr, qfq,
        }
    };
}

each!(entries);
