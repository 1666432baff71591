// SPDX-License-Identifier: MIT OR Apache-2.0

//! The standard library of a discipline in the kernel: `core` and `alloc` under the names of `std`.
//!
//! A discipline allocates, counts and computes, and asks nothing of an operating system. So all that it uses
//! of `std` is defined in `core` or `alloc`, but its source says `std`. With this crate the source is
//! compiled as it is. A module that would need an operating system is missing here, so using it is an error
//! of compilation.

#![no_std]
#![allow(internal_features)]
#![feature(allocator_api, alloc_error_handler, core_intrinsics, prelude_import, rustc_attrs)]
#![feature(core_float_math, async_iterator, derive_eq_internals, ip, c_str_module)]

extern crate alloc as alloc_crate;
extern crate compiler_builtins as _;

pub use alloc_crate::{borrow, boxed, fmt, format, rc, slice, str, string, vec};
pub use core::{
    any, arch, array, ascii, cell, char, clone, cmp, convert, default, future, hash, hint, i8, i16, i32, i64,
    i128, intrinsics, isize, iter, marker, mem, ops, option, panicking, pin, primitive, ptr, result, task,
    time, u8, u16, u32, u64, u128, usize,
};
pub use core::{
    assert, assert_eq, assert_ne, cfg, column, compile_error, concat, debug_assert, debug_assert_eq,
    debug_assert_ne, env, file, format_args, include, include_bytes, include_str, line, matches, module_path,
    option_env, stringify, todo, r#try, unimplemented, unreachable, write, writeln,
};

/// Memory.
pub mod alloc {
    pub use alloc_crate::alloc::*;
    pub use core::alloc::*;
}

/// Collections that need no source of random numbers.
pub mod collections {
    pub use alloc_crate::collections::*;
}

/// Errors.
pub mod error {
    pub use core::error::Error;
}

/// Numbers of 64 bits with a point.
pub mod f64 {
    pub use core::f64::*;
}

/// Numbers of 32 bits with a point.
pub mod f32 {
    pub use core::f32::*;
}

/// Addresses, which filters compare.
pub mod net {
    pub use core::net::*;
}

/// Numbers.
pub mod num {
    pub use core::num::*;
}

pub use core::panic;

/// Counters and cells. A qdisc is called under its lock, so the cells need no lock of their own.
pub mod sync;

/// Names that every module has.
pub mod prelude {
    /// Names of all editions.
    pub mod v1 {
        pub use crate::{format, vec};
        pub use alloc_crate::borrow::ToOwned;
        pub use alloc_crate::boxed::Box;
        pub use alloc_crate::string::{String, ToString};
        pub use alloc_crate::vec::Vec;
        pub use core::prelude::v1::*;
    }
    /// Names of the edition of 2015.
    pub mod rust_2015 {
        pub use super::v1::*;
    }
    /// Names of the edition of 2018.
    pub mod rust_2018 {
        pub use super::v1::*;
    }
    /// Names of the edition of 2021.
    pub mod rust_2021 {
        pub use super::v1::*;
        pub use core::prelude::rust_2021::*;
    }
    /// Names of the edition of 2024.
    pub mod rust_2024 {
        pub use super::v1::*;
        pub use core::prelude::rust_2024::*;
    }
}

mod float;

unsafe extern "C" {
    fn gw_stop() -> !;
}

/// The pass of the compiler replaces every call that leads here, so that this function is never reached.
#[panic_handler]
fn stopped(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: the function has no arguments and does not return.
    unsafe { gw_stop() }
}
