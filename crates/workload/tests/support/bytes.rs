//! The interpretation of fuzzed bytes, shared by the fuzz target and by tests without a fuzzer.

use giveway_capture::Packet;
use giveway_workload::{Connection, Extraction, Side, Workload};

/// Extracts a workload from any packets. Checks that it has no more data than they have, and that it can be
/// written and read back.
///
/// # Panics
/// If this does not hold.
pub fn extract(packets: &[Packet]) -> Workload {
    let mut extraction = Extraction::default();
    for packet in packets {
        extraction.packet(packet);
    }
    let local =
        extraction.guess().map_or_else(|| "192.168.0.0/16".parse().expect("a prefix"), |(local, _)| local);
    let again: giveway_workload::Local =
        local.to_string().parse().expect("the text of a local side can be parsed");
    assert_eq!(again, local);
    let (workload, seen) = extraction.finish(&local);
    assert_eq!(seen.packets, packets.len() as u64);

    let adus: usize = workload.connections.iter().map(|connection| connection.adus.len()).sum();
    let datagrams: usize = workload.trains.iter().map(|train| train.packets.len()).sum();
    // A packet has data of its own, and its acknowledgement may show missed data of the other side.
    assert!(
        workload.connections.len() + datagrams <= packets.len(),
        "at most one connection or datagram per packet"
    );
    assert!(adus <= 2 * packets.len(), "{adus} adus in {} packets", packets.len());
    for connection in &workload.connections {
        whole(connection, workload.span);
    }

    if workload.span > Workload::LONGEST {
        return workload;
    }
    let mut file = Vec::new();
    workload.write(&mut file).expect("memory is not full");
    assert_eq!(Workload::read(&file[..]).expect("a written workload can be read"), workload);
    workload
}

fn whole(connection: &Connection, span: u64) {
    assert!(connection.start <= span);
    let parts: usize = connection.epochs_with_adus().map(|(_, adus)| adus.len()).sum();
    assert_eq!(parts, connection.adus.len());
    assert!(connection.epochs.iter().all(|epoch| epoch.took <= span));
    // No ADU waits for bytes that are never sent: its replay would stop.
    let (mut client, mut server) = (0, 0);
    for adu in &connection.adus {
        assert!(adu.bytes > 0 && adu.think_time <= span);
        let (mine, theirs) =
            if adu.side == Side::Client { (&mut client, server) } else { (&mut server, client) };
        *mine += adu.bytes;
        if let giveway_workload::Trigger::Peer(bytes) = adu.trigger {
            assert!(bytes <= theirs, "{connection:?}");
        }
    }
}
