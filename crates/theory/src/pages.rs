//! Memory in pages and in all: tables 1 and 2 of the TRR paper (Chen and Chen, about 2000).
//!
//! Its router took packets from the memory of a Linux kernel of 1999: pages of 4,096 bytes, into which packets of one size were laid side by side, and
//! 128 KiB in all. Both tables are arithmetic, and only the first is exact: what was measured for the second has no single formula, and
//! [`flows_with_pointers`] is a model of it, fitted by who wrote the specification, not the paper's.

/// A page of memory, in bytes.
pub const PAGE: u32 = 4096;
/// What the kernel gave at most, in bytes.
pub const KERNEL: u32 = 128 * 1024;
/// What a packet had beside its data: the structure `sk_buff`, in bytes (section 4.5).
pub const SOCKET_BUFFER: u32 = 148;
/// The smallest packet, in bytes.
pub const SMALLEST: u32 = 64;

/// The MTUs of table 1.
pub const TABLE_1: [u32; 11] = [100, 300, 500, 700, 800, 900, 1000, 1100, 1200, 1400, 1500];

/// What table 2 has of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Its name.
    pub name: &'static str,
    /// The size of its structure for a flow, in bytes.
    pub structure: u32,
    /// How many flows were measured.
    pub flows: u32,
}

/// Table 2.
pub const TABLE_2: [Capacity; 4] = [
    Capacity { name: "trr", structure: 42, flows: 445 },
    Capacity { name: "drr", structure: 40, flows: 450 },
    Capacity { name: "wfq", structure: 62, flows: 396 },
    Capacity { name: "tss", structure: 56, flows: 412 },
];

/// How many packets of `mtu` bytes there are in a page, and how many bytes remain: table 1. `None` for packets without bytes.
pub fn packets_in_page(mtu: u32) -> Option<(u32, u32)> {
    Some((PAGE.checked_div(mtu)?, PAGE.checked_rem(mtu)?))
}

/// The share of a page that packets of `mtu` bytes leave unused. `None` for packets without bytes.
pub fn waste(mtu: u32) -> Option<f64> {
    packets_in_page(mtu).map(|(_, left)| f64::from(left) / f64::from(PAGE))
}

/// How many flows with a packet of `packet` bytes each there are in `memory` bytes, when only packets count: section 4.5 has 618 in 128 KiB.
pub fn flows(memory: u32, packet: u32) -> u32 {
    memory / (SOCKET_BUFFER + packet)
}

/// The same when a flow has a structure of `structure` bytes, twice: floor(memory / (148 + packet + 2·structure)). Within 3 % of what table 2
/// has as measured; why twice is not known.
pub fn flows_with_pointers(memory: u32, packet: u32, structure: u32) -> u32 {
    memory / (SOCKET_BUFFER + packet + 2 * structure)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All eleven pairs of the paper's table.
    #[test]
    fn table_1() {
        let expected = [
            (40, 96),
            (13, 196),
            (8, 96),
            (5, 596),
            (5, 96),
            (4, 496),
            (4, 96),
            (3, 796),
            (3, 496),
            (2, 1296),
            (2, 1096),
        ];
        for (mtu, pair) in TABLE_1.into_iter().zip(expected) {
            assert_eq!(packets_in_page(mtu), Some(pair), "{mtu}");
        }
        assert_eq!((packets_in_page(0), packets_in_page(5000)), (None, Some((0, 4096))));
    }

    /// The text names 500, 800 and 1,000 as those that leave least; 100 leaves as little, and the text omits it.
    #[test]
    fn who_leaves_least() {
        let least = TABLE_1.into_iter().map(|mtu| packets_in_page(mtu).unwrap().1).min();
        let those: Vec<u32> =
            TABLE_1.into_iter().filter(|mtu| packets_in_page(*mtu).map(|(_, left)| left) == least).collect();
        assert_eq!(those, [100, 500, 800, 1000]);
        assert_eq!(waste(800), Some(96.0 / 4096.0));
    }

    #[test]
    fn table_2() {
        assert_eq!(flows(KERNEL, SMALLEST), 618, "the number of the text");
        let modelled = TABLE_2.map(|of| flows_with_pointers(KERNEL, SMALLEST, of.structure));
        assert_eq!(modelled, [442, 448, 390, 404]);
        for (of, flows) in TABLE_2.into_iter().zip(modelled) {
            let off = f64::from(flows) / f64::from(of.flows) - 1.0;
            assert!(off.abs() < 0.03, "{}: {flows} instead of {}, {:.1} %", of.name, of.flows, 100.0 * off);
        }
        // Once would be far off: so the factor is not a matter of taste.
        let once = KERNEL / (SOCKET_BUFFER + SMALLEST + 42);
        assert_eq!(once, 516);
    }
}
