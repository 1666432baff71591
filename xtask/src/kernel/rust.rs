//! The disciplines of `crates/disciplines` as programs for the kernel (BPF), from their Rust sources.
//!
//! `kernel/rust/README.md` describes the way. In short: the crates are compiled to bitcode against a `std`
//! that consists of `core` and `alloc`; a plug-in of LLVM's optimizer makes programs for the verifier out of
//! it; and a test loads each program into the kernel of this machine, and compares the decisions with those
//! of the same source compiled natively, over a million random operations.
//!
//! On this machine only the folder `target/kernel-rust` is changed, and no network interface. Loading a
//! program needs root, and Linux 6.16 or later on x86-64 or arm64.

mod bitcode;
mod folders;
mod object;
mod plugin;
mod stack;

use std::fs;
use std::path::Path;

use self::folders::Folders;
use self::object::{Discipline, Object};
use crate::repository::{Done, Repository};
use crate::tools;

/// Operations of the comparison.
const OPERATIONS: &str = "1000000";

/// Programs of LLVM and Rust, words that make them end at once, and their packages. The bitcode of a compiler
/// must not be newer than the programs that read it.
const NEEDED: [(&str, &str, &str); 6] = [
    ("/usr/bin/rustc", "--version", "rustc-web"),
    ("clang-22", "--version", "clang-22"),
    ("opt-22", "--version", "llvm-22"),
    ("llvm-config-22", "--version", "llvm-22-dev"),
    ("bpftool", "version", "bpftool"),
    ("g++", "--version", "g++"),
];

/// Files of libraries, and their packages: the headers of BPF, and what libbpf is built with.
const FILES: [(&str, &str); 3] = [
    ("/usr/include/bpf/bpf_helpers.h", "libbpf-dev"),
    ("/usr/include/libelf.h", "libelf-dev"),
    ("/usr/include/zlib.h", "zlib1g-dev"),
];

/// Builds programs for the kernel, all or those that are named, and compares each with its native build.
///
/// # Errors
/// A missing program, a discipline that cannot be compiled, is refused by the verifier, or decides
/// differently.
pub fn programs(repository: &Repository, names: &[&str]) -> Done {
    let absent = tools::missing(repository, &NEEDED);
    if !absent.is_empty() {
        tools::install(repository, &absent)?;
    }
    // The version of the compiler names the folder of its library.
    let library = Path::new("/usr/src").join(bitcode::library(repository)?);
    let files = FILES.iter().map(|(file, package)| (Path::new(file), *package));
    let files = files.chain([(&*library, "rust-web-src")]);
    let absent: Vec<&str> = files.filter(|(file, _)| !file.exists()).map(|(_, package)| package).collect();
    if !absent.is_empty() {
        tools::install(repository, &absent)?;
    }
    let folders = Folders {
        sources: repository.root.join("kernel/rust"),
        build: repository.target()?.join("kernel-rust"),
    };
    fs::create_dir_all(&folders.build).map_err(|error| format!("{}: {error}", folders.build.display()))?;
    let test = object::test_parts(repository, &folders)?;
    bitcode::build(repository, &folders)?;
    let mut wrong = Vec::new();
    for discipline in Discipline::all(&folders)? {
        if !names.is_empty() && !names.contains(&discipline.name.as_str()) {
            continue;
        }
        let result = discipline
            .build(repository, &folders)
            .and_then(|object| compare(repository, &test, &discipline, &object));
        match (result, &discipline.missing) {
            (Ok(line), None) => println!("{}: {line}", discipline.name),
            (Ok(line), Some(_)) => {
                println!("{}: {line}", discipline.name);
                wrong
                    .push(format!("{} works: remove it from the list of those that do not", discipline.name));
            }
            (Err(why), Some(known)) => {
                println!("{}: not in the kernel ({known})", discipline.name);
                if !names.is_empty() {
                    println!("{why}");
                }
            }
            (Err(why), None) => wrong.push(format!("{}: {why}", discipline.name)),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Loads a program into the kernel and compares its decisions with the decisions of the native build.
fn compare(
    repository: &Repository,
    test: &object::Test,
    discipline: &Discipline,
    object: &Object,
) -> Result<String, String> {
    let driver = test.driver().to_string_lossy();
    let mut lines = Vec::new();
    for variant in 0.. {
        let variant = variant.to_string();
        let path = object.path.to_string_lossy();
        match repository.output(&driver, &[&discipline.name, &*path, OPERATIONS, &variant]) {
            Ok(line) => lines.push(line.trim().to_owned()),
            // The discipline has no variant with this number.
            Err(error) if error.contains("exit status: 5") && !lines.is_empty() => break,
            Err(error) => return Err(format!("variant {variant}: {error}")),
        }
    }
    Ok(format!("{}; {} panic sites\n  {}", object.bytes, object.sites, lines.join("\n  ")))
}
