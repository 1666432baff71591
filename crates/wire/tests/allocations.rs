//! Cutting and joining do not allocate per packet: after the setup, 100,000 packets cause no allocation.

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Span, Time};
use giveway_wire::fragment::{Cutter, ETHER_TYPE, Lost, Plan, Reassembly, Settings, Size, Taken};

/// Every tenth packet loses a fragment, so that packets are discarded for their age and for memory.
#[test]
fn nothing_is_allocated_per_packet() {
    let before = giveway_counting::calls();
    let settings = Settings { memory: 50_000, timeout: Span::ms(500), ..Settings::new(ETHER_TYPE, 1514) };
    let mut reassembly = Reassembly::new(settings, SipHasher::new(1, 2));
    assert!(giveway_counting::calls() > before, "the allocations of the setup are counted");

    let mut cutter = Cutter::new(Size::PUBLISHED[0], ETHER_TYPE, 0);
    let mut frame = [7; 1514];
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    let mut fragment = [0; 1514];
    let before = giveway_counting::calls();
    let mut whole = 0;
    for n in 0..100_000u64 {
        let Plan::Cut(cut) = cutter.plan(&frame) else { panic!("it is long enough") };
        for index in 0..cut.count() {
            let length = cut.write(&frame, index, &mut fragment);
            if n % 10 == 0 && index == 2 {
                continue;
            }
            // Every 1,000 packets the clock jumps by 600 ms.
            let now = Time::ms(n + 600 * (n / 1000));
            if let Taken::Whole(joined) = reassembly.take(&fragment[..length], now) {
                whole += u64::from(joined == frame);
            }
        }
    }
    assert_eq!(giveway_counting::calls() - before, 0);
    assert_eq!(whole, 90_000);
    let lost = reassembly.counts().lost;
    assert!([Lost::Expired, Lost::CrowdedOut].iter().all(|why| lost[*why as usize] > 0), "{lost:?}");
}
