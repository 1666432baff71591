//! Fragments on real interfaces, also after a direction has failed.

use std::time::Duration;

use crate::bed::{Bed, Host, NONE, frame, nap};
use giveway_live::Command;
use giveway_qdisc::{Rate, Span};
use giveway_wire::fragment::{Cutter, ETHER_TYPE, Plan, Size};

/// A frame that starts like an IP packet, and its fragments.
fn pieces(number: u32) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut whole = frame(0x0800, number, 1514);
    whole[14] = 0x45;
    let Plan::Cut(cut) = Cutter::new(Size::PUBLISHED[0], ETHER_TYPE, number).plan(&whole) else {
        panic!("the frame is long enough to be cut")
    };
    let write = |index| {
        let mut fragment = vec![0; cut.bytes(index)];
        cut.write(&whole, index, &mut fragment);
        fragment
    };
    let fragments = (0..cut.count()).map(write).collect();
    (whole, fragments)
}

/// Hosts behind the bridge cannot join fragments, so a direction that has failed must.
#[test]
fn plain_forwarding_joins_fragments() {
    let Some(bed) = Bed::build("j") else { return };
    let bridge = bed.bridge("fifo", Rate::gbit(1), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let handle = &bridge.handles()[0];
    handle.send(Command::Join(true));
    nap(Duration::from_millis(300));
    let (whole, fragments) = pieces(1);
    a.send(&fragments);
    assert_eq!(b.receive(1, Duration::from_secs(2)), [whole]);
    // Snapshots of the counters are taken ten times a second.
    nap(Duration::from_millis(300));
    handle.send(Command::Qdisc(Box::new(|_| panic!("unknown discipline"))));
    nap(Duration::from_millis(300));
    let (whole, fragments) = pieces(2);
    let short = frame(0x0800, 3, 100);
    a.send(&fragments);
    a.send(std::slice::from_ref(&short));
    assert_eq!(b.receive(2, Duration::from_secs(2)), [whole, short]);
    let ended = bridge.stop(Span::ms(10));
    assert_eq!(ended[0].status.plain_frames, 2);
    assert_eq!((ended[0].status.fragments.joined.packets, ended[1].status.plain.as_ref()), (1, None));
}
