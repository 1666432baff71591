//! What a fuzzer's bytes mean: shared by the fuzz target and by tests that run without a fuzzer.

use giveway_capture::Packet;
use giveway_workload::{Connection, Extraction, Side, Workload};

/// A workload is taken out of any packets, holds no more than they do, and can be written and read again.
///
/// # Panics
/// When this does not hold.
pub fn extract(packets: &[Packet]) -> Workload {
    let mut extraction = Extraction::default();
    for packet in packets {
        extraction.packet(packet);
    }
    let local =
        extraction.guess().map_or_else(|| "192.168.0.0/16".parse().expect("a prefix"), |(local, _)| local);
    let again: giveway_workload::Local = local.to_string().parse().expect("what is told can be written");
    assert_eq!(again, local);
    let (workload, seen) = extraction.finish(&local);
    assert_eq!(seen.packets, packets.len() as u64);

    let writes: usize = workload.connections.iter().map(|connection| connection.adus.len()).sum();
    let datagrams: usize = workload.trains.iter().map(|train| train.packets.len()).sum();
    // A packet brings data of its own, and tells of data of the other side that were missed.
    assert!(workload.connections.len() + datagrams <= packets.len(), "no more than there were packets");
    assert!(writes <= 2 * packets.len(), "{writes} writes in {} packets", packets.len());
    for connection in &workload.connections {
        whole(connection, workload.span);
    }

    if workload.span > Workload::LONGEST {
        return workload;
    }
    let mut file = Vec::new();
    workload.write(&mut file).expect("memory takes it");
    assert_eq!(Workload::read(&file[..]).expect("it was just written"), workload);
    workload
}

fn whole(connection: &Connection, span: u64) {
    assert!(connection.start <= span);
    let parts: usize = connection.epochs_with_adus().map(|(_, writes)| writes.len()).sum();
    assert_eq!(parts, connection.adus.len());
    assert!(connection.epochs.iter().all(|exchange| exchange.took <= span));
    // Nobody waits for what never comes, or everything stops when it is done again.
    let (mut client, mut server) = (0, 0);
    for write in &connection.adus {
        assert!(write.bytes > 0 && write.think_time <= span);
        let (mine, theirs) =
            if write.side == Side::Client { (&mut client, server) } else { (&mut server, client) };
        *mine += write.bytes;
        if let giveway_workload::Trigger::Peer(bytes) = write.trigger {
            assert!(bytes <= theirs, "{connection:?}");
        }
    }
}
