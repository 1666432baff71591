//! The tins: which packets belong to each, and their shares of the rate.

use giveway_qdisc::Dscp;

use super::choices::Tins;

/// Largest number of tins.
pub const MAX: usize = 8;

/// A tin of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its threshold as a fraction of the rate, up to which it goes before the tins in front of it in the
    /// list.
    pub share: (u64, u64),
    /// Its number in lists, where `bulk` comes before `best effort`.
    pub shown: usize,
}

/// The tins of a mode, the least urgent first: tc-cake(8).
pub fn classes(tins: Tins) -> Vec<Class> {
    let class = |shown, share| Class { share, shown };
    match tins {
        Tins::Besteffort => vec![class(0, (1, 1))],
        Tins::Diffserv3 => {
            vec![class(1, (1, 1)), class(0, (1, 16)), class(2, (1, 4))]
        }
        Tins::Diffserv4 => {
            vec![class(1, (1, 1)), class(0, (1, 16)), class(2, (1, 2)), class(3, (1, 4))]
        }
        // Each tin has 7/8 of the one before.
        Tins::Precedence | Tins::Diffserv8 => {
            (0..MAX as u32).map(|tin| class(tin as usize, (7u64.pow(tin), 8u64.pow(tin)))).collect()
        }
    }
}

/// The tin of each DSCP.
pub fn tins(mode: Tins) -> [u8; Dscp::COUNT] {
    std::array::from_fn(|dscp| {
        let dscp = dscp as u8;
        match mode {
            Tins::Besteffort => 0,
            Tins::Precedence => dscp >> 3,
            Tins::Diffserv3 => three(dscp),
            Tins::Diffserv4 => four(dscp),
            Tins::Diffserv8 => eight(dscp),
        }
    })
}

fn three(dscp: u8) -> u8 {
    match dscp {
        // LE and CS1.
        1 | 8 => 1,
        // The former type of service "minimise delay", VA, EF, CS6 and CS7.
        4 | 44 | 46 | 48 | 56 => 2,
        _ => 0,
    }
}

fn four(dscp: u8) -> u8 {
    match dscp {
        1 | 8 => 1,
        // "Minimise delay", CS2, AF2x, CS3, AF3x and AF4x.
        4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
        // CS4, CS5, VA, EF, CS6 and CS7.
        32 | 40 | 44 | 46 | 48 | 56 => 3,
        _ => 0,
    }
}

fn eight(dscp: u8) -> u8 {
    match dscp {
        // Background: LE.
        1 => 0,
        // High throughput: CS1, the former "maximise throughput", and AF1x.
        2 | 8 | 10 | 12 | 14 => 1,
        // Video streaming: CS3, AF3x and AF4x.
        24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
        // Transactions: the former "minimise delay", and AF2x.
        4 | 18 | 20 | 22 => 4,
        // Interactive: CS2.
        16 => 5,
        // Minimum latency: CS4, CS5, VA and EF.
        32 | 40 | 44 | 46 => 6,
        // Network control: CS6 and CS7.
        48 | 56 => 7,
        _ => 2,
    }
}
