// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares the decisions of a discipline in the kernel with those of its native build:
//! `giveway-kernel-test NAME OBJECT OPERATIONS VARIANT`.

use std::ffi::{CString, c_char, c_int};

// Only for its library.
use libbpf_sys as _;

type Build = extern "C" fn(u64, u64, u64) -> u64;
type Test = extern "C" fn(u64) -> u64;

unsafe extern "C" {
    fn gw_compare(path: *const c_char, build: Build, test: Test, operations: u64, variant: u64) -> c_int;
}

/// The native entries of a discipline.
fn entries(name: &str) -> Option<(Build, Test)> {
    macro_rules! table {
        ($($name:ident),* $(,)?) => {
            match name {
                $(stringify!($name) => {
                    Some((giveway_entry::$name::build as Build, giveway_entry::$name::test as Test))
                })*
                _ => None,
            }
        };
    }
    giveway_entry::each!(table)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, object, operations, variant] = &arguments[..] else {
        panic!("NAME OBJECT OPERATIONS VARIANT")
    };
    let (build, test) = entries(name).expect("the name is that of a discipline");
    let path = CString::new(object.as_str()).expect("a path has no zero");
    let number = |text: &str| text.parse().expect("a number");
    // SAFETY: the driver reads the path, and calls the entries from this thread only.
    let status = unsafe { gw_compare(path.as_ptr(), build, test, number(operations), number(variant)) };
    std::process::exit(status);
}
