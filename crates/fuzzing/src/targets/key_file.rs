//! Any bytes are parsed as a key for reservations, or rejected.

use giveway_qdisc::hash::SipHasher;

/// Input: the key file.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Some(key) = giveway_reserve::key(text) else { return };
    let digits = text.trim();
    assert_eq!(digits.len(), 32, "a key has 32 digits");
    let number = u128::from_str_radix(digits, 16).expect("the digits are hexadecimal");
    let same = SipHasher::new((number >> 64) as u64, number as u64);
    assert_eq!(key.hash(b"message"), same.hash(b"message"));
}
