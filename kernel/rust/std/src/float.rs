// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions of numbers with a point that `core` does not have as methods.

use core::f64::math;

/// Generates methods that call a function of the same name.
macro_rules! methods {
    ($($name:ident),*) => {
        impl f64 {
            $(
                #[rustc_allow_incoherent_impl]
                #[must_use]
                #[inline]
                #[allow(missing_docs)]
                pub fn $name(self) -> f64 {
                    math::$name(self)
                }
            )*
            #[rustc_allow_incoherent_impl]
            #[must_use]
            #[inline]
            #[allow(missing_docs)]
            pub fn mul_add(self, a: f64, b: f64) -> f64 {
                math::mul_add(self, a, b)
            }
        }
    };
}

methods!(floor, ceil, round, round_ties_even, trunc, fract, sqrt);
