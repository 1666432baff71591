//! Any bytes are parsed as a journal of a discipline in the kernel, or rejected. A valid journal is compared
//! with the Rust discipline.

use std::io::Cursor;

use giveway_disciplines::Spec;
use giveway_kernel_check::journal::{self, Entry};
use giveway_kernel_plan::plan::Kind;
use giveway_qdisc::{LinkContext, Rate, Streams};

use crate::memory::Memory;

/// Qdiscs of Linux that are compared with Rust disciplines.
const ORACLE: [&str; 5] =
    ["codel limit 20p", "fq_codel limit 20p", "pie limit 20p", "red limit 20p", "ets quanta [500b 1500b]"];
/// Longest journal that is compared, in nanoseconds. Some disciplines process missed intervals one by one, so
/// a jump of years would take hours.
const LONGEST_NS: u64 = 100_000_000_000;

/// Input: one byte that selects a discipline and the format of the rest, which is a journal or its entries
/// only.
pub fn run(input: &[u8]) {
    let Some((choice, bytes)) = input.split_first() else { return };
    let read = if choice & 128 != 0 { journal::read(bytes) } else { journal::read(&with_head(bytes)) };
    let entries = match read {
        Ok(entries) => entries,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    if entries.iter().any(|entry| entry.now > LONGEST_NS) {
        return;
    }
    let choice_of = |count: usize| usize::from(choice & 63) % count;
    match choice & 64 {
        0 => {
            let discipline = Kind::ALL[choice_of(Kind::ALL.len())].discipline();
            check(&entries, &format!("{discipline} limit 20p"));
        }
        _ => drop(giveway_kernel_check::oracle::judge(
            &entries,
            ORACLE[choice_of(ORACLE.len())],
            Rate::mbit(8),
        )),
    }
}

/// A journal of these entries: the head, which has their number, then the entries.
fn with_head(entries: &[u8]) -> Vec<u8> {
    let whole = entries.len() / 40;
    let mut bytes = (whole as u64).to_le_bytes().to_vec();
    bytes.resize(40, 0);
    bytes.extend(&entries[..whole * 40]);
    bytes
}

fn check(entries: &[Entry], spec: &str) {
    let spec: Spec = spec.parse().expect("the discipline is in the registry");
    let context = LinkContext::new(Rate::mbit(8), Streams::new(1));
    let memory = Memory::default();
    if journal::to_trace(entries, "fuzz", &spec, &context, memory.clone()).is_err() {
        return;
    }
    let outcome = giveway_replay::check(Cursor::new(memory.take())).expect("the trace was just written");
    assert!(outcome.complete(), "{:?}", outcome.damage);
}
