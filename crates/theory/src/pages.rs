//! Memory use of packets and flows: tables 1 and 2 of the TRR paper (Chen and Chen, about 2000).
//!
//! Its router took packets from the memory of a Linux kernel of 1999: 128 KiB in pages of 4,096 bytes, each
//! with packets of one size side by side. Both tables are arithmetic. Only the first is exact: the
//! measurements in the second have no single formula, and [`flows_with_pointers`] is a model fitted to them,
//! which is not in the paper.

/// Size of a page of memory, in bytes.
pub const PAGE: u32 = 4096;
/// Largest memory for packets in the kernel, in bytes.
pub const KERNEL: u32 = 128 * 1024;
/// Size of the structure `sk_buff` of each packet, in bytes (section 4.5).
pub const SOCKET_BUFFER: u32 = 148;
/// Size of the smallest packet, in bytes.
pub const SMALLEST: u32 = 64;

/// The MTUs of table 1.
pub const TABLE_1: [u32; 11] = [100, 300, 500, 700, 800, 900, 1000, 1100, 1200, 1400, 1500];

/// The row of an algorithm in table 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Name of the algorithm.
    pub name: &'static str,
    /// Size of its structure for a flow, in bytes.
    pub structure: u32,
    /// Measured number of flows.
    pub flows: u32,
}

/// Table 2.
pub const TABLE_2: [Capacity; 4] = [
    Capacity { name: "trr", structure: 42, flows: 445 },
    Capacity { name: "drr", structure: 40, flows: 450 },
    Capacity { name: "wfq", structure: 62, flows: 396 },
    Capacity { name: "tss", structure: 56, flows: 412 },
];

/// Number of packets of `mtu` bytes in a page, and number of bytes that remain: table 1. `None` for packets
/// of 0 bytes.
pub fn packets_in_page(mtu: u32) -> Option<(u32, u32)> {
    Some((PAGE.checked_div(mtu)?, PAGE.checked_rem(mtu)?))
}

/// The share of a page that packets of `mtu` bytes leave unused. `None` for packets of 0 bytes.
pub fn waste(mtu: u32) -> Option<f64> {
    packets_in_page(mtu).map(|(_, left)| f64::from(left) / f64::from(PAGE))
}

/// Number of flows with a packet of `packet` bytes each in `memory` bytes, without structures for flows:
/// section 4.5 has 618 in 128 KiB.
pub fn flows(memory: u32, packet: u32) -> u32 {
    memory / (SOCKET_BUFFER + packet)
}

/// Number of flows if each also has a structure of `structure` bytes, twice: floor(memory / (148 + packet +
/// 2·structure)). Within 3 % of the measurements in table 2; the reason for the factor of two is not known.
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

    /// The text names 500, 800 and 1,000 as the sizes with the least waste; 100 has the same, and the text
    /// omits it.
    #[test]
    fn sizes_with_the_least_waste() {
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
        // Without the factor of two the model would be far off.
        let once = KERNEL / (SOCKET_BUFFER + SMALLEST + 42);
        assert_eq!(once, 516);
    }
}
