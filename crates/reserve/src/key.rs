//! The key that routers and their users share, as text.

use giveway_qdisc::hash::SipHasher;

/// Parses a key: 32 hexadecimal digits, with optional white space around them. `None` for anything else.
pub fn key(text: &str) -> Option<SipHasher> {
    let key = text.trim();
    // A number may begin with a sign, a key may not.
    let digits = (key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(key)?;
    let number = u128::from_str_radix(digits, 16).ok()?;
    Some(SipHasher::new((number >> 64) as u64, number as u64))
}
