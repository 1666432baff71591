//! The stack of a program in the kernel: 512 bytes for all calls within each other.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a chain of calls may need, without the program that the kernel calls.
const MOST: u64 = 416;

/// Functions with their stacks and the functions that they call.
#[derive(Default)]
struct Functions {
    stack: BTreeMap<String, u64>,
    calls: BTreeMap<String, BTreeSet<String>>,
}

/// The function with the largest stack on a chain of calls that needs too much, if there is one. Those that
/// are `demoted` cannot need less. `listing` is the output of `llvm-objdump -dr`.
pub(super) fn too_much(listing: &str, demoted: &[String]) -> Option<String> {
    let functions = read(listing);
    let mut known = BTreeMap::new();
    let chains = functions.stack.keys().map(|name| functions.chain(name, &mut known));
    let (bytes, chain) = chains.max_by_key(|(bytes, _)| *bytes)?;
    if bytes <= MOST {
        return None;
    }
    // The program itself is C, and not changed by the pass.
    let others = chain.into_iter().filter(|name| name != "gw_main" && !demoted.contains(name));
    others.max_by_key(|name| functions.stack.get(name).copied())
}

impl Functions {
    /// The chain of calls below a function that needs most, with its bytes.
    fn chain(&self, name: &str, known: &mut BTreeMap<String, (u64, Vec<String>)>) -> (u64, Vec<String>) {
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        // A function that calls itself is an error of the pass, and the kernel would refuse it.
        known.insert(name.to_owned(), (0, Vec::new()));
        let below = self.calls.get(name).into_iter().flatten();
        let chains: Vec<_> = below.map(|callee| self.chain(callee, known)).collect();
        let (bytes, mut chain) = chains.into_iter().max_by_key(|(bytes, _)| *bytes).unwrap_or_default();
        chain.push(name.to_owned());
        let found = (bytes + self.stack.get(name).copied().unwrap_or(0), chain);
        known.insert(name.to_owned(), found.clone());
        found
    }
}

fn read(listing: &str) -> Functions {
    let mut functions = Functions::default();
    let mut current = String::new();
    let mut loops = BTreeSet::new();
    for line in listing.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once('<')) {
            // Labels within functions have symbols, too.
            if !name.starts_with("LBB") {
                name.clone_into(&mut current);
                functions.stack.insert(current.clone(), 0);
            }
            continue;
        }
        for place in line.split("r10 - 0x").skip(1) {
            let digits: String = place.chars().take_while(char::is_ascii_hexdigit).collect();
            let bytes = u64::from_str_radix(&digits, 16).unwrap_or(0);
            let most = functions.stack.entry(current.clone()).or_default();
            *most = bytes.max(*most);
        }
        if line.contains("may_goto") {
            loops.insert(current.clone());
        }
        if let Some((_, callee)) = line.split_once("R_BPF_64_32") {
            functions.calls.entry(current.clone()).or_default().insert(callee.trim().to_owned());
        }
    }
    for (name, bytes) in &mut functions.stack {
        // The kernel keeps the time of the first turn of its loops on the stack, in two words.
        let loops = if loops.contains(name) { 16 } else { 0 };
        *bytes = (*bytes + loops).max(1).next_multiple_of(16);
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_chain_counts() {
        let function = |name: &str, bytes: u64, callee: &str| {
            format!(
                "0000 <{name}>:\n 1:\t*(u64 *)(r10 - 0x{bytes:x}) = r1\n 2:\tcall -1\n\t0: \
                 R_BPF_64_32\t{callee}\n"
            )
        };
        let fits = function("a", 200, "b") + &function("b", 100, "c") + &function("c", 60, "d");
        assert_eq!(too_much(&fits, &[]), None);
        let deep = fits + &function("d", 96, "e");
        assert_eq!(too_much(&deep, &[]).as_deref(), Some("a"));
        assert_eq!(too_much(&deep, &["a".to_owned()]).as_deref(), Some("b"));
    }
}
