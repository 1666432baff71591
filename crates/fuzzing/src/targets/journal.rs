//! Any bytes are the journal of a discipline in the kernel or are refused, and what is read is checked.

use std::io::Cursor;

use giveway_disciplines::Spec;
use giveway_kernel_check::journal::{self, Entry};
use giveway_kernel_plan::plan::Kind;
use giveway_qdisc::{LinkContext, Rate, Streams};

use crate::memory::Memory;

/// Qdiscs of the kernel's own that are compared with ours.
const ORACLE: [&str; 4] = ["codel limit 20p", "fq_codel limit 20p", "pie limit 20p", "red limit 20p"];
/// Some disciplines make up for time that has passed, interval by interval: a jump of years takes them hours. No journal
/// is so long, nanoseconds.
const LONGEST_NS: u64 = 100_000_000_000;

/// The first byte chooses a discipline, and whether the rest is a journal as it is or only its entries.
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
        _ => {
            drop(giveway_kernel_check::oracle::ask(&entries, ORACLE[choice_of(ORACLE.len())], Rate::mbit(8)))
        }
    }
}

/// Entries behind a first one that says how many they are.
fn with_head(entries: &[u8]) -> Vec<u8> {
    let whole = entries.len() / 40;
    let mut bytes = (whole as u64).to_le_bytes().to_vec();
    bytes.resize(40, 0);
    bytes.extend(&entries[..whole * 40]);
    bytes
}

fn check(entries: &[Entry], spec: &str) {
    let spec: Spec = spec.parse().expect("it is in the registry");
    let context = LinkContext::new(Rate::mbit(8), Streams::new(1));
    let memory = Memory::default();
    if journal::to_trace(entries, "fuzz", &spec, &context, memory.clone()).is_err() {
        return;
    }
    let outcome = giveway_replay::check(Cursor::new(memory.take())).expect("it was just written");
    assert!(outcome.complete(), "{:?}", outcome.damage);
}
