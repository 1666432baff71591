//! Packets in cells, their classes, and distributions of their sizes.

use std::fmt;

use giveway_qdisc::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of cells of a packet.
pub const MAX_CELLS: u32 = 65_535;

/// The class of a packet (P-SPF, section 2.2). Some modes give priority to short packets. The class is
/// independent of the size in cells: a packet of one cell may be long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// At most 64 bytes, and UDP, or TCP without data. Has one cell.
    Short,
    /// Any other packet.
    Long,
}

impl Class {
    /// Both classes.
    pub const ALL: [Class; 2] = [Class::Short, Class::Long];

    /// Name in tables and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Class::Short => "short",
            Class::Long => "long",
        }
    }
}

/// A kind of packets. Statistics are kept for each kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketKind {
    /// Size, in cells.
    pub cells: u32,
    /// Class.
    pub class: Class,
}

impl fmt::Debug for PacketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The fingerprint of a run is taken of this text, so it keeps the words with which runs are stored.
        f.debug_struct("Kind").field("cells", &self.cells).field("class", &self.class).finish()
    }
}

/// A packet in the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Time of arrival, in ticks.
    pub arrived: u64,
    /// Cells that have not crossed yet.
    pub cells: u32,
    /// Number of its kind.
    pub kind: u16,
    /// Output.
    pub to: u16,
}

/// A distribution of packet sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    /// All packets have this number of cells. Packets of one cell are short.
    Fixed(u32),
    /// TRIMODEL(a, b, c, P_a, P_b): `a` cells with probability `pa`, `b` with `pb`, otherwise `c`. Packets of
    /// one cell are short (P-SPF, section 5).
    Trimodel {
        /// Size of the smallest, in cells.
        a: u32,
        /// Size of the middle ones, in cells.
        b: u32,
        /// Size of the largest, in cells.
        c: u32,
        /// Probability of the smallest.
        pa: f64,
        /// Probability of the middle ones.
        pb: f64,
    },
    /// Any mix, with one entry per size.
    Mix(Vec<MixPart>),
}

/// One entry of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixPart {
    /// Size, in cells.
    pub cells: u32,
    /// Share of the packets, relative to the sum of all shares.
    pub share: f64,
    /// Class. Default: packets of one cell are short.
    #[serde(default)]
    pub class: Option<Class>,
}

impl Default for Sizes {
    /// The paper's TRIMODEL(1, 9, 24, 0.559, 0.200): 64, 576 and 1,536 bytes.
    fn default() -> Sizes {
        Sizes::Trimodel { a: 1, b: 9, c: 24, pa: 0.559, pb: 0.2 }
    }
}

impl Sizes {
    /// The kinds of packets with their shares, which sum to 1.
    ///
    /// # Errors
    /// A size of 0 or above [`MAX_CELLS`], a share that is negative or not finite, probabilities with a sum
    /// above 1, a short packet of several cells.
    pub fn parts(&self) -> Result<Vec<(PacketKind, f64)>, Invalid> {
        let wrong = |message: String| Err(Invalid::new("sizes", message));
        let class = |cells: u32| if cells == 1 { Class::Short } else { Class::Long };
        let parts: Vec<(PacketKind, f64)> = match self {
            Sizes::Fixed(cells) => vec![(PacketKind { cells: *cells, class: class(*cells) }, 1.0)],
            Sizes::Trimodel { a, b, c, pa, pb } => {
                if !(*pa >= 0.0 && *pb >= 0.0 && pa + pb <= 1.0 + 1e-12) {
                    return wrong(format!(
                        "pa = {pa} and pb = {pb}: shares are not negative, and together at most 1; the rest has c cells"
                    ));
                }
                let kind = |cells: u32| PacketKind { cells, class: class(cells) };
                vec![(kind(*a), *pa), (kind(*b), *pb), (kind(*c), (1.0 - pa - pb).max(0.0))]
            }
            Sizes::Mix(parts) => {
                if parts.is_empty() {
                    return wrong("a mix needs parts, such as { cells = 1, share = 0.5 }".into());
                }
                let kind = |part: &MixPart| PacketKind {
                    cells: part.cells,
                    class: part.class.unwrap_or_else(|| class(part.cells)),
                };
                parts.iter().map(|part| (kind(part), part.share)).collect()
            }
        };
        if let Some((kind, _)) = parts.iter().find(|(kind, _)| kind.cells == 0 || kind.cells > MAX_CELLS) {
            return wrong(format!("a packet has 1 to {MAX_CELLS} cells, not {}", kind.cells));
        }
        if let Some((kind, _)) = parts.iter().find(|(kind, _)| kind.class == Class::Short && kind.cells != 1)
        {
            return wrong(format!("a short packet has one cell, not {}", kind.cells));
        }
        if let Some((_, share)) = parts.iter().find(|(_, share)| !(share.is_finite() && *share >= 0.0)) {
            return wrong(format!("{share} is not a share"));
        }
        let sum: f64 = parts.iter().map(|(_, share)| share).sum();
        if sum <= 0.0 {
            return wrong("all shares are zero".into());
        }
        Ok(parts.into_iter().map(|(kind, share)| (kind, share / sum)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_mix() {
        let parts = Sizes::default().parts().unwrap();
        let mean: f64 = parts.iter().map(|(kind, share)| f64::from(kind.cells) * share).sum();
        assert!((mean - 8.143).abs() < 1e-9);
        assert_eq!(parts[0].0, PacketKind { cells: 1, class: Class::Short });
        assert_eq!(parts[2].0, PacketKind { cells: 24, class: Class::Long });
    }

    #[test]
    fn invalid_sizes_are_refused_with_a_reason() {
        let refused = |sizes: Sizes| sizes.parts().unwrap_err().to_string();
        let three = |pa, pb| Sizes::Trimodel { a: 1, b: 9, c: 24, pa, pb };
        assert!(refused(three(0.8, 0.3)).contains("together at most 1"));
        assert!(refused(three(-0.1, 0.3)).contains("not negative"));
        assert!(refused(three(f64::NAN, 0.3)).contains("not negative"));
        assert!(refused(Sizes::Fixed(0)).contains("1 to 65535 cells, not 0"));
        assert!(refused(Sizes::Mix(vec![])).contains("needs parts"));
        let part = |cells, share, class| Sizes::Mix(vec![MixPart { cells, share, class }]);
        assert!(refused(part(3, 1.0, Some(Class::Short))).contains("a short packet has one cell"));
        assert!(refused(part(3, 0.0, None)).contains("all shares are zero"));
        assert!(refused(part(3, f64::INFINITY, None)).contains("is not a share"));
    }
}
