//! Smoke test without a fuzzer: the stored inputs of a target, and a fixed number of mutations of them.
//!
//! The mutations depend only on the name of the target and its stored inputs, so they are the same on every
//! machine.

use giveway_qdisc::{Rng, Streams};

use crate::Target;
use crate::kept::{Input, dictionary};

/// Inputs are cut to this length before they are mutated, in bytes: copying longer ones takes most of the
/// time.
const LONGEST: usize = 16 << 10;

/// Calls `each` with the empty input, every stored input, and `count` mutated ones.
pub fn inputs(target: &Target, kept: &[Input], count: u32, mut each: impl FnMut(&[u8])) {
    each(&[]);
    kept.iter().for_each(|input| each(&input.bytes));
    let mut rng = Streams::new(1).within("smoke").within(target.name).rng();
    let words = dictionary(target);
    let nothing = [Input { name: String::new(), bytes: Vec::new() }];
    let kept = if kept.is_empty() { &nothing[..] } else { kept };
    for _ in 0..count {
        let input = mutated(kept, &words, &mut rng);
        each(&input);
    }
}

/// A stored input after one to four mutations.
fn mutated(kept: &[Input], words: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let pick = |rng: &mut Rng| &kept[rng.below(kept.len() as u64) as usize].bytes[..];
    let first = pick(rng);
    let mut input = first[..first.len().min(LONGEST)].to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(input.len() as u64 + 1) as usize;
        match rng.below(7) {
            0 => input.truncate(at),
            1 | 2 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            // The beginning of this input and the end of another.
            3 => {
                let other = pick(rng);
                let from = rng.below(other.len() as u64 + 1) as usize;
                input.truncate(at);
                input.extend(&other[from..other.len().min(from + LONGEST)]);
            }
            4 => other_number(&mut input, at, rng),
            5 if !words.is_empty() => {
                let word = &words[rng.below(words.len() as u64) as usize];
                input.splice(at..at, word.iter().copied());
            }
            // A number at the edge of its range.
            _ => {
                let edge =
                    [0u64, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, u64::MAX][rng.below(9) as usize];
                let width = [1, 2, 4, 8][rng.below(4) as usize];
                let bytes =
                    if rng.below(2) == 0 { edge.to_le_bytes() } else { edge.swap_bytes().to_le_bytes() };
                let until = (at + width).min(input.len());
                input[at..until].copy_from_slice(&bytes[..until - at]);
            }
        }
    }
    input
}

/// Numbers at the edges of ranges, as text.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "0.1",
    "1e308",
    "1e-308",
];

/// Replaces the first number at or after `at` in a text, if there is one.
fn other_number(input: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let Some(start) = input[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) else {
        return;
    };
    let digits = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[rng.below(NUMBERS.len() as u64) as usize];
    input.splice(start..start + digits, number.bytes());
}
