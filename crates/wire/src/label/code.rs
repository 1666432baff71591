//! Labels as numbers of 16 bits: 5 bits of exponent, 11 of mantissa, gradual underflow.

use giveway_qdisc::{Label, Rate};

const MANTISSA_BITS: u32 = 11;
/// Smallest number that needs an exponent, and the bit of the mantissa that is implied then.
const IMPLIED: u64 = 1 << MANTISSA_BITS;
const SHORT: u16 = 0;

/// Encodes a label; `None` for [`Label::NONE`], which has no encoding.
pub fn encode(label: Label) -> Option<u16> {
    if !label.is_set() {
        return None;
    }
    let rate = label.rate().as_bit();
    if rate < IMPLIED {
        return Some(rate as u16); // 0 is Label::SHORT: no other label has the rate 0
    }
    // The rate is mantissa 2^shift, with a mantissa of 12 bits, the highest of which is set.
    let shift = rate.ilog2() - MANTISSA_BITS;
    let half = if shift == 0 { 0 } else { 1 << (shift - 1) };
    let mantissa = (u128::from(rate) + half) >> shift;
    // Exponent shift + 1 and mantissa without its highest bit, which adds one to the exponent. So does the
    // next bit, when the mantissa was rounded up to 13 bits.
    let code = (u128::from(shift) << MANTISSA_BITS) + mantissa;
    Some(u16::try_from(code).unwrap_or(u16::MAX))
}

/// Decodes a label.
pub fn decode(value: u16) -> Label {
    if value == SHORT {
        return Label::SHORT;
    }
    let exponent = value >> MANTISSA_BITS;
    let mantissa = u64::from(value) % IMPLIED;
    let rate = match exponent {
        0 => mantissa,
        _ => (IMPLIED + mantissa) << (exponent - 1),
    };
    Label::of(Rate::bit(rate))
}
