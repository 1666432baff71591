// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions that the pass of the compiler calls: arithmetic that BPF lacks, and copies of memory. The
//! products, sums and quotients of `f64` come from Rust's own library of compiler functions.

const SIGN: u64 = 1 << 63;
const INFINITY: u64 = 0x7ff << 52;

/// True if one of two numbers is not a number.
#[unsafe(export_name = "gw_f64_uno")]
extern "C" fn unordered(a: u64, b: u64) -> bool {
    (a & !SIGN) > INFINITY || (b & !SIGN) > INFINITY
}

/// The place of a number in the order of all: both zeros have the same.
#[inline(always)]
fn order(bits: u64) -> i64 {
    let magnitude = (bits & !SIGN) as i64;
    if bits & SIGN == 0 { magnitude } else { -magnitude }
}

/// `a == b`
#[unsafe(export_name = "gw_f64_eq")]
extern "C" fn equal(a: u64, b: u64) -> bool {
    !unordered(a, b) && order(a) == order(b)
}

/// `a < b`
#[unsafe(export_name = "gw_f64_lt")]
extern "C" fn less(a: u64, b: u64) -> bool {
    !unordered(a, b) && order(a) < order(b)
}

/// `a <= b`
#[unsafe(export_name = "gw_f64_le")]
extern "C" fn at_most(a: u64, b: u64) -> bool {
    !unordered(a, b) && order(a) <= order(b)
}

/// The smaller number, or the one that is a number.
#[unsafe(export_name = "gw_f64_min")]
extern "C" fn min(a: u64, b: u64) -> u64 {
    if unordered(b, b) || less(a, b) { a } else { b }
}

/// The larger number, or the one that is a number.
#[unsafe(export_name = "gw_f64_max")]
extern "C" fn max(a: u64, b: u64) -> u64 {
    if unordered(b, b) || less(b, a) { a } else { b }
}

/// Generates functions of one number.
macro_rules! unary {
    ($($name:literal $path:path),* $(,)?) => {$(
        const _: () = {
            #[unsafe(export_name = $name)]
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
extern "C" fn fma(a: u64, b: u64, c: u64) -> u64 {
    libm::fma(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c)).to_bits()
}

/// The upper half of a product.
#[unsafe(export_name = "gw_umulh")]
extern "C" fn upper_product(a: u64, b: u64) -> u64 {
    const LOW: u64 = u32::MAX as u64;
    let (a0, a1, b0, b1) = (a & LOW, a >> 32, b & LOW, b >> 32);
    let middle = a1 * b0 + (a0 * b0 >> 32);
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
