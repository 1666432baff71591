// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions that the pass of the compiler calls: arithmetic that BPF lacks, and copies of memory. The
//! products, sums and quotients of `f64` come from Rust's own library of compiler functions.

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff << 52;

#[inline(always)]
fn unordered(a: u64, b: u64) -> bool {
    (a & !SIGN) > INFINITY || (b & !SIGN) > INFINITY
}

/// True if one of two numbers is not a number.
#[unsafe(export_name = "gw_f64_uno")]
#[inline(never)]
extern "C" fn either_is_none(a: u64, b: u64) -> bool {
    unordered(a, b)
}

/// The place of a number in the order of all: both zeros have the same.
#[inline(always)]
fn order(bits: u64) -> i64 {
    let magnitude = (bits & !SIGN) as i64;
    if bits & SIGN == 0 { magnitude } else { -magnitude }
}

/// `a == b`
#[unsafe(export_name = "gw_f64_eq")]
#[inline(never)]
extern "C" fn equal(a: u64, b: u64) -> bool {
    !unordered(a, b) && order(a) == order(b)
}

/// `a < b`
#[unsafe(export_name = "gw_f64_lt")]
#[inline(never)]
extern "C" fn less(a: u64, b: u64) -> bool {
    !unordered(a, b) && order(a) < order(b)
}

/// `a <= b`
#[unsafe(export_name = "gw_f64_le")]
#[inline(never)]
extern "C" fn at_most(a: u64, b: u64) -> bool {
    !unordered(a, b) && order(a) <= order(b)
}

/// The smaller number, or the one that is a number.
#[unsafe(export_name = "gw_f64_min")]
#[inline(never)]
extern "C" fn min(a: u64, b: u64) -> u64 {
    if unordered(b, b) || less(a, b) { a } else { b }
}

/// The larger number, or the one that is a number.
#[unsafe(export_name = "gw_f64_max")]
#[inline(never)]
extern "C" fn max(a: u64, b: u64) -> u64 {
    if unordered(b, b) || less(b, a) { a } else { b }
}

/// Generates functions of one number.
macro_rules! unary {
    ($($name:literal $path:path),* $(,)?) => {$(
        const _: () = {
            #[unsafe(export_name = $name)]
            #[inline(never)]
            extern "C" fn function(x: u64) -> u64 {
                $path(f64::from_bits(x)).to_bits()
            }
        };
    )*};
}

unary! {
    "gw_f64_sqrt" libm::sqrt,
    "gw_f64_floor" libm::floor,
    "gw_f64_ceil" libm::ceil,
    "gw_f64_trunc" libm::trunc,
    "gw_f64_round" libm::round,
    "gw_f64_rint" libm::rint,
}

/// `a * b + c`, rounded once.
#[unsafe(export_name = "gw_f64_fma")]
#[inline(never)]
extern "C" fn fma(a: u64, b: u64, c: u64) -> u64 {
    libm::fma(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c)).to_bits()
}

/// The upper half of a product.
#[unsafe(export_name = "gw_umulh")]
extern "C" fn upper_product(a: u64, b: u64) -> u64 {
    const LOW: u64 = u32::MAX as u64;
    let (a0, a1, b0, b1) = (a & LOW, a >> 32, b & LOW, b >> 32);
    let mut middle = a1 * b0 + (a0 * b0 >> 32);
    // Without this the compiler recognises the product of 128 bits, which is a call of this function.
    // SAFETY: no instruction at all.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) middle, options(pure, nomem, nostack)) };
    let other = a0 * b1 + (middle & LOW);
    a1 * b1 + (middle >> 32) + (other >> 32)
}

/// Copies bytes between blocks that may overlap.
#[unsafe(export_name = "gw_copy")]
unsafe extern "C" fn copy(to: *mut u8, from: *const u8, bytes: u64) {
    let backwards = (to as u64).wrapping_sub(from as u64) < bytes;
    let (words, tail) = (bytes / 8, bytes & 7);
    // SAFETY: the caller passes blocks of this length.
    unsafe {
        if backwards {
            let mut at = tail;
            while at > 0 {
                at -= 1;
                let place = (words * 8 + at) as usize;
                *to.add(place) = *from.add(place);
            }
            let mut at = words;
            while at > 0 {
                at -= 1;
                let place = (at * 8) as usize;
                to.add(place).cast::<u64>().write_unaligned(from.add(place).cast::<u64>().read_unaligned());
            }
        } else {
            let mut at = 0;
            while at < words {
                let place = (at * 8) as usize;
                to.add(place).cast::<u64>().write_unaligned(from.add(place).cast::<u64>().read_unaligned());
                at += 1;
            }
            let mut at = 0;
            while at < tail {
                let place = (words * 8 + at) as usize;
                *to.add(place) = *from.add(place);
                at += 1;
            }
        }
    }
}

/// Fills a block with a byte, which the word repeats.
#[unsafe(export_name = "gw_fill")]
unsafe extern "C" fn fill(to: *mut u8, word: u64, bytes: u64) {
    let (words, tail) = (bytes / 8, bytes & 7);
    // SAFETY: the caller passes a block of this length.
    unsafe {
        let mut at = 0;
        while at < words {
            to.add((at * 8) as usize).cast::<u64>().write_unaligned(word);
            at += 1;
        }
        let mut at = 0;
        while at < tail {
            *to.add((words * 8 + at) as usize) = word as u8;
            at += 1;
        }
    }
}

/// The upper half of the last result of 128 bits.
#[unsafe(export_name = "gw_high")]
static mut HIGH: u64 = 0;

unsafe extern "C" {
    safe fn __udivti3(a: u128, b: u128) -> u128;
    safe fn __umodti3(a: u128, b: u128) -> u128;
    safe fn __divti3(a: i128, b: i128) -> i128;
    safe fn __modti3(a: i128, b: i128) -> i128;
    safe fn __floatuntidf(a: u128) -> f64;
    safe fn __floattidf(a: i128) -> f64;
    safe fn __fixunsdfti(x: f64) -> u128;
    safe fn __fixdfti(x: f64) -> i128;
}

#[inline(always)]
fn joined(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// Leaves the upper half in [`HIGH`] and returns the lower one.
#[inline(always)]
fn split(number: u128) -> u64 {
    // SAFETY: there is one call at a time.
    unsafe { HIGH = (number >> 64) as u64 };
    number as u64
}

/// `a / b`
#[unsafe(export_name = "gw_udivti")]
extern "C" fn quotient(a0: u64, a1: u64, b0: u64, b1: u64) -> u64 {
    if a1 | b1 == 0 {
        // SAFETY: there is one call at a time.
        unsafe { HIGH = 0 };
        return a0.checked_div(b0).unwrap_or(0);
    }
    split(__udivti3(joined(a0, a1), joined(b0, b1)))
}

/// `a % b`
#[unsafe(export_name = "gw_umodti")]
extern "C" fn remainder(a0: u64, a1: u64, b0: u64, b1: u64) -> u64 {
    split(__umodti3(joined(a0, a1), joined(b0, b1)))
}

/// `a / b` of numbers with a sign.
#[unsafe(export_name = "gw_divti")]
extern "C" fn signed_quotient(a0: u64, a1: u64, b0: u64, b1: u64) -> u64 {
    split(__divti3(joined(a0, a1) as i128, joined(b0, b1) as i128) as u128)
}

/// `a % b` of numbers with a sign.
#[unsafe(export_name = "gw_modti")]
extern "C" fn signed_remainder(a0: u64, a1: u64, b0: u64, b1: u64) -> u64 {
    split(__modti3(joined(a0, a1) as i128, joined(b0, b1) as i128) as u128)
}

/// A whole number as `f64`.
#[unsafe(export_name = "gw_floatuntidf")]
extern "C" fn from_unsigned(a0: u64, a1: u64) -> u64 {
    __floatuntidf(joined(a0, a1)).to_bits()
}

/// A whole number with a sign as `f64`.
#[unsafe(export_name = "gw_floattidf")]
extern "C" fn from_signed(a0: u64, a1: u64) -> u64 {
    __floattidf(joined(a0, a1) as i128).to_bits()
}

/// `f64` as a whole number.
#[unsafe(export_name = "gw_fixunsdfti")]
extern "C" fn to_unsigned(x: u64) -> u64 {
    split(__fixunsdfti(f64::from_bits(x)))
}

/// `f64` as a whole number with a sign.
#[unsafe(export_name = "gw_fixdfti")]
extern "C" fn to_signed(x: u64) -> u64 {
    split(__fixdfti(f64::from_bits(x)) as u128)
}
