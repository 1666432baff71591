//! Rates as values of 16 bits: the exact ones, the largest error, and the largest value.

use giveway_qdisc::{Label, Rate};
use giveway_wire::label::{decode, encode};
use proptest::prelude::*;

fn of(bits: u64) -> Label {
    Label::of(Rate::bit(bits))
}

/// The rate that is read after this one was written.
fn decoded(bits: u64) -> u64 {
    decode(encode(of(bits)).expect("a rate has an encoding")).rate().as_bit()
}

const LARGEST: u64 = 4095 << 30;

#[test]
fn values_computed_by_hand() {
    assert_eq!(encode(Label::NONE), None);
    assert_eq!(encode(Label::SHORT), Some(0));
    for (bits, value) in [
        (1, 0x0001),
        (2_047, 0x07ff),
        (2_048, 0x0800),          // e = 1, m = 0
        (4_095, 0x0fff),          // e = 1, m = 2047
        (4_096, 0x1000),          // e = 2, m = 0
        (64_000, 0x2fa0),         // 64,000 = 4,000 2^4: e = 5, m = 1,952
        (1_000_000, 0x4f42),      // 1,953.125 2^9 = 3,906.25 2^8, so 3,906 2^8: e = 9, m = 1,858
        (10_000_000_000, 0xb950), // 2,384.19 2^22, so 2,384 2^22: e = 23, m = 336
        (LARGEST, 0xffff),
        (u64::MAX, 0xffff),
    ] {
        let found = encode(of(bits)).unwrap();
        assert_eq!(found, value, "{bits} bit/s is {found:#06x}, not {value:#06x}");
    }
}

/// All of the 65,536 values: the first is a short flow, all others are ascending rates, and encoding a
/// decoded value gives the same value.
#[test]
fn values_are_distinct_and_ordered() {
    assert_eq!(decode(0), Label::SHORT);
    let mut before = 0;
    for value in 1..=u16::MAX {
        let label = decode(value);
        assert!(label.rate().as_bit() > before, "{value}");
        assert_eq!(encode(label), Some(value));
        before = label.rate().as_bit();
    }
    assert_eq!(before, LARGEST);
}

#[test]
fn small_rates_are_exact() {
    assert!((1..=4095).all(|bits| decoded(bits) == bits));
    assert_eq!(decoded(4097), 4098, "the first inexact rate: a half is rounded upwards");
}

/// A rate in the middle between two adjacent values has the largest error. Over all middles that is 1 in
/// 4,097 right above a power of two, and less elsewhere.
#[test]
fn the_error_is_at_most_one_in_4097() {
    let mut worst = (1, 0);
    for value in 2048..u16::MAX {
        let (low, high) = (decode(value).rate().as_bit(), decode(value + 1).rate().as_bit());
        let middle = low.midpoint(high);
        for bits in [middle, middle + 1] {
            let error = decoded(bits).abs_diff(bits);
            assert!(error * 4097 <= bits, "{bits} becomes {}", decoded(bits));
            if u128::from(error) * u128::from(worst.0) > u128::from(worst.1) * u128::from(bits) {
                worst = (bits, error);
            }
        }
    }
    assert_eq!(worst, (4097, 1));
}

proptest! {
    /// The bound holds over the whole range, with rates that are uniform in the logarithm.
    #[test]
    fn decoded_rates_are_within_the_error(exponent in 0..63_u32, fraction in 0..1_u64 << 20) {
        let bits = ((1_u64 << exponent) + ((u128::from(fraction) << exponent) >> 20) as u64).min(LARGEST);
        prop_assert!(decoded(bits).abs_diff(bits) * 4097 <= bits);
    }

    #[test]
    fn larger_rates_have_larger_values(a in any::<u64>(), b in any::<u64>(), shift in 0..63_u32) {
        let (a, b) = (a.min(b) >> shift, a.max(b) >> shift);
        prop_assert!(encode(of(a)) <= encode(of(b)));
        prop_assert!(encode(of(a)) > Some(0), "never a short flow");
        prop_assert!(b <= LARGEST || encode(of(b)) == Some(u16::MAX));
    }
}
