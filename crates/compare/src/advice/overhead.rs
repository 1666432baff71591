//! The bytes that a line adds to packets, in the words of tc-cake(8).
//!
//! A shaper that does not count them sends more than the line takes if packets are small, and the queue forms
//! in the modem. `cake` takes the word itself. For `htb` a size table (tc-stab(8)) adds the bytes: there a
//! packet has its Ethernet header already. A size table knows no PTM, so the rate is lower by its share.

use std::fmt;
use std::str::FromStr;

use giveway_disciplines::cake::{Framing, LinkLayer};
use giveway_qdisc::Rate;
use serde_json::Value;

/// Bytes of the Ethernet header, which the kernel counts.
const ETHERNET: i32 = 14;

/// The bytes that a line adds to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead(LinkLayer);

impl Overhead {
    /// Words with the lines that they stand for.
    pub const EXAMPLES: [(&'static str, &'static str); 4] = [
        ("docsis", "cable"),
        ("pppoe-ptm", "VDSL with PPPoE"),
        ("bridged-ptm", "VDSL without"),
        ("ethernet", "fibre"),
    ];

    /// Bytes for each packet in addition to its IP packet, and the smallest length, bytes.
    pub(super) fn parts(self) -> (i32, u32, Framing) {
        self.0.parts()
    }

    /// The size table for a shaper of Linux.
    pub(super) fn stab(self) -> String {
        let (overhead, mpu, framing) = self.parts();
        let layer = if framing == Framing::Atm { "atm" } else { "ethernet" };
        let mpu = if mpu > 0 { format!(" mpu {mpu}") } else { String::new() };
        format!("stab overhead {}{mpu} linklayer {layer}", overhead - ETHERNET)
    }

    /// The rate for a shaper that does not know the framing.
    pub(super) fn without_framing(self, rate: Rate) -> Rate {
        // PTM has 64 bytes in each 65 (tc-cake(8)).
        if self.parts().2 == Framing::Ptm { Rate::bit(rate.as_bit() / 65 * 64) } else { rate }
    }
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(serde_json::to_value(self.0).ok().as_ref().and_then(Value::as_str).unwrap_or_default())
    }
}

impl FromStr for Overhead {
    type Err = String;

    fn from_str(text: &str) -> Result<Overhead, String> {
        let words = Overhead::EXAMPLES.map(|(word, line)| format!("{word} ({line})")).join(", ");
        serde_json::from_value(Value::from(text)).map(Overhead).map_err(|_| {
            format!("\"{text}\" is not a kind of line; write one of tc-cake(8), such as {words}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_tc_become_size_tables() {
        let stab = |word: &str| word.parse::<Overhead>().map(Overhead::stab);
        assert_eq!(stab("docsis").as_deref(), Ok("stab overhead 4 mpu 64 linklayer ethernet"));
        assert_eq!(stab("pppoe-vcmux").as_deref(), Ok("stab overhead 18 linklayer atm"));
        let ptm: Overhead = "pppoe-ptm".parse().unwrap();
        assert_eq!(
            (ptm.to_string().as_str(), ptm.without_framing(Rate::mbit(65))),
            ("pppoe-ptm", Rate::mbit(64))
        );
        let wrong = stab("dsl").unwrap_err();
        assert!(
            wrong.starts_with(
                "\"dsl\" is not a kind of line; write one of tc-cake(8), such as docsis (cable)"
            )
        );
    }
}
