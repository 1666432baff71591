//! The priority of a packet in Linux, which follows from its DSCP, and the map of priorities to bands.
//!
//! tc-prio(8) has both tables. The kernel still reads the type of service of RFC 1349, of which the DSCP has
//! three bits: minimise delay, maximise throughput, maximise reliability. The upper three bits of the DSCP,
//! the former precedence, do not count. So EF and CS6 are in the band of best effort, and AF41 (video) is in
//! the band of bulk traffic.

use giveway_qdisc::{Dscp, Invalid};

/// The number of bands.
pub(crate) const BANDS: usize = 3;

/// The band of each priority, by default.
pub(crate) const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// The priority of a packet, by the table of tc-prio(8).
fn priority(dscp: Dscp) -> usize {
    const BEST_EFFORT: usize = 0;
    const BULK: usize = 2;
    const INTERACTIVE_BULK: usize = 4;
    const INTERACTIVE: usize = 6;
    // The lowest of the four bits of the type of service, minimise cost, belongs to ECN today.
    match dscp.number() & 0b111 {
        0b000 | 0b001 => BEST_EFFORT,
        0b010 | 0b011 => BULK,
        0b100 | 0b101 => INTERACTIVE,
        _ => INTERACTIVE_BULK,
    }
}

/// The band of each DSCP.
pub(crate) type Bands = [u8; Dscp::COUNT];

/// The band of each DSCP with this band of each priority, from the parameter `priomap`.
///
/// # Errors
/// If the map has not 16 entries, or one is not a band.
pub(crate) fn bands(priomap: &[u8]) -> Result<Bands, Invalid> {
    let Ok(map) = <[u8; 16]>::try_from(priomap) else {
        let message = format!(
            "{} bands, not one for each of the 16 priorities: the default is {PRIOMAP:?}",
            priomap.len()
        );
        return Err(Invalid::new("priomap", message));
    };
    if let Some(band) = map.iter().find(|band| usize::from(**band) >= BANDS) {
        return Err(Invalid::new("priomap", format!("{band} is not a band: they are 0, 1 and 2")));
    }
    Ok(std::array::from_fn(|number| {
        let dscp = Dscp::new(number as u8).expect("an index of a table of code points");
        map[priority(dscp)]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of tc-prio(8): octet of the type of service, priority, band.
    const TABLE: [(u8, usize, u8); 16] = [
        (0x0, 0, 1),
        (0x2, 1, 2),
        (0x4, 0, 1),
        (0x6, 0, 1),
        (0x8, 2, 2),
        (0xa, 2, 2),
        (0xc, 2, 2),
        (0xe, 2, 2),
        (0x10, 6, 0),
        (0x12, 6, 0),
        (0x14, 6, 0),
        (0x16, 6, 0),
        (0x18, 4, 1),
        (0x1a, 4, 1),
        (0x1c, 4, 1),
        (0x1e, 4, 1),
    ];

    /// Octets that differ only in the bit of ECN are one DSCP. Of these pairs only 0x0 and 0x2 have different
    /// priorities in the table.
    #[test]
    fn priorities_are_those_of_the_manual() {
        let bands = bands(&PRIOMAP).unwrap();
        for (octet, priority_of, band) in TABLE {
            for precedence in 0..8 {
                let dscp = Dscp::of_service(precedence << 5 | octet);
                if octet != 0x2 {
                    assert_eq!(priority(dscp), priority_of, "{dscp}");
                    assert_eq!(bands[usize::from(dscp.number())], band, "{dscp}");
                }
            }
        }
    }

    #[test]
    fn names_of_today_are_in_surprising_bands() {
        let bands = bands(&PRIOMAP).unwrap();
        let band = |name: &str| bands[usize::from(name.parse::<Dscp>().unwrap().number())];
        let names = ["CS0", "CS1", "CS6", "EF", "VA", "LE", "AF11", "AF21", "AF31", "AF41", "AF42"];
        assert_eq!(names.map(band), [1, 1, 1, 1, 0, 1, 2, 2, 2, 2, 0]);
    }

    #[test]
    fn a_map_has_a_band_for_each_priority() {
        assert_eq!(bands(&[0; 16]).unwrap(), [0; 64]);
        let wrong = |map: &[u8]| bands(map).unwrap_err().to_string();
        assert_eq!(
            wrong(&[1, 2]),
            "priomap: 2 bands, not one for each of the 16 priorities: the default is \
             [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]"
        );
        assert_eq!(wrong(&[3; 16]), "priomap: 3 is not a band: they are 0, 1 and 2");
    }
}
