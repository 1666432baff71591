//! Sentences on the kind of traffic of a capture: encapsulations, and captures at the wrong place.

use ::giveway_capture::Tunnel;
use giveway_workload::CaptureStatistics;

/// The message for a capture of the loopback interface.
pub(super) fn loopback(path: &str, seen: &CaptureStatistics) -> String {
    let share = 100 * seen.loopback / (seen.packets - seen.foreign).max(1);
    format!(
        "{path} is a capture of the loopback interface: {share} % of its packets are between addresses of one host \
         (127.0.0.1, ::1) and cross no link. Capture on the interface of the link, for example with tcpdump -i eth0 \
         -s 96 -w out.pcap; to replay these packets all the same, write the local side, for example --link 127.0.0.1"
    )
}

/// The message for a capture of one direction.
pub(super) fn one_way(seen: &CaptureStatistics) -> String {
    format!(
        "this capture has one direction only: {:.0} % of the bytes of TCP belong to connections of which no answer is \
         seen. Capture at a place that both directions pass, such as the router or the host itself; on a switch, \
         mirror both directions of the port (`both`, not `rx`); if each direction is a file of its own, name both \
         files. The packets can be replayed as they are with --mode replay",
        seen.one_way() * 100.0
    )
}

/// Sentences on encapsulations, and on a part of the traffic that has one direction.
pub(super) fn notes(seen: &CaptureStatistics) -> Vec<String> {
    let counted = || Tunnel::ALL.into_iter().zip(seen.tunnels);
    let mut notes = Vec::new();
    let unpacked: Vec<String> = counted()
        .filter(|(tunnel, (packets, _))| !tunnel.is_encrypted() && *packets > 0)
        .map(|(tunnel, (packets, _))| format!("{packets} of {}", tunnel.name()))
        .collect();
    if !unpacked.is_empty() {
        notes.push(format!(
            "packets that were unpacked: {}; addresses and ports come from the inner packets, lengths from the outer \
             ones{}",
            unpacked.join(", "),
            if seen.tunnels[Tunnel::Erspan as usize].0 > 0 { " (of ERSPAN, which mirrors, the inner ones)" } else { "" }
        ));
    }
    for (tunnel, (_, bytes)) in counted().filter(|(tunnel, _)| tunnel.is_encrypted()) {
        // Below one percent it does not matter.
        if bytes * 100 >= seen.bytes.max(1) {
            let share = bytes * 100 / seen.bytes.max(1);
            notes.push(format!(
                "{share} % of the bytes are in tunnels of {}: connections inside are not visible, so their packets are \
                 sent as captured; capture in front of the tunnel to see them",
                tunnel.name()
            ));
        }
    }
    if seen.one_way() >= 0.1 && !seen.is_one_way() {
        notes.push(format!(
            "{:.0} % of the bytes of TCP belong to connections of which one direction is missing; capture at a place that \
             both directions pass",
            seen.one_way() * 100.0
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(tunnel: Tunnel, packets: u64, bytes: u64) -> CaptureStatistics {
        let mut seen =
            CaptureStatistics { packets: 100, bytes: 1000, tcp_bytes: 500, ..CaptureStatistics::default() };
        seen.tunnels[tunnel as usize] = (packets, bytes);
        seen
    }

    #[test]
    fn what_was_unpacked_is_named_with_its_number_of_packets() {
        let notes = notes(&seen(Tunnel::Vxlan, 40, 400));
        assert_eq!(notes.len(), 1);
        assert!(
            notes[0].starts_with("packets that were unpacked: 40 of VXLAN; addresses and ports"),
            "{notes:?}"
        );
        assert!(
            super::notes(&seen(Tunnel::Erspan, 1, 10))[0]
                .ends_with("(of ERSPAN, which mirrors, the inner ones)")
        );
        assert!(super::notes(&CaptureStatistics::default()).is_empty());
    }

    #[test]
    fn encrypted_tunnels_are_named_with_their_share() {
        let notes = notes(&seen(Tunnel::WireGuard, 90, 870));
        assert!(
            notes[0].starts_with("87 % of the bytes are in tunnels of WireGuard: connections inside"),
            "{notes:?}"
        );
        assert!(super::notes(&seen(Tunnel::Ipsec, 1, 9)).is_empty(), "less than one percent");
    }

    #[test]
    fn missing_directions_are_named_with_their_share() {
        let half = CaptureStatistics { one_way_bytes: 250, ..seen(Tunnel::Gre, 0, 0) };
        assert!(notes(&half)[0].starts_with("50 % of the bytes of TCP belong to connections of which one"));
        assert!(
            one_way(&CaptureStatistics { one_way_bytes: 500, ..half })
                .contains("one direction only: 100 % of the bytes")
        );
    }
}
