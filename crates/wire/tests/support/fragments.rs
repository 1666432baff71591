//! Properties of reassembly for any bytes, shared by the property tests and the fuzz target.

use giveway_qdisc::hash::SipHasher;
use giveway_qdisc::{Span, Time};
use giveway_wire::fragment::{ETHER_TYPE, Reassembly, Settings, Taken, header_at};

/// The longest frame.
const LONGEST: usize = 314;

/// Takes fragments that the input describes: the first byte sets the memory. Then eight bytes each set the
/// header of a fragment and its length, or, with the highest bit, the number of following bytes that are the
/// fragment itself. Checks that every fragment is accounted for, that memory is bounded, and that joined
/// frames are valid. Returns the number of joined frames.
///
/// # Panics
/// If this does not hold.
pub fn fragments(input: &[u8]) -> u64 {
    let Some((memory, mut rest)) = input.split_first() else { return 0 };
    let memory = usize::from(memory % 4) * 512;
    let settings = Settings { memory, timeout: Span::s(1), ..Settings::new(ETHER_TYPE, LONGEST) };
    let mut reassembly = Reassembly::new(settings, SipHasher::new(1, 2));
    let most = reassembly.entries();
    assert!(most >= 1 && most <= 1 + memory / LONGEST);
    let mut now = Time::ZERO;
    while let Some((control, behind)) = rest.split_first_chunk::<8>() {
        let [kind, id, index, count, long, length, here, byte] = *control;
        now += Span::ms(u64::from(kind & 15) * 20);
        // One of two stations, with a tag or without.
        let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, kind >> 4 & 1];
        if kind & 32 != 0 {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend(ETHER_TYPE.to_be_bytes());
        rest = behind;
        if kind & 128 != 0 {
            let (raw, after) = behind.split_at(usize::from(here).min(behind.len()));
            frame.extend(raw);
            rest = after;
        } else {
            frame.extend([0, 0, 0, id & 3, index, count, long & 1, length]);
            frame.extend((0..here).map(|n| byte.wrapping_add(n / 16)));
        }
        let before = reassembly.counts().packets;
        match reassembly.take(&frame, now) {
            Taken::Other => panic!("the frame has the type of a fragment"),
            Taken::Kept => assert_eq!(reassembly.counts().packets, before),
            Taken::Whole(whole) => {
                assert!(whole.len() <= LONGEST);
                let at = header_at(&frame, ETHER_TYPE).expect("the frame has the type of a fragment") - 2;
                assert_eq!(whole[..at], frame[..at], "between the same stations");
                let kind = u16::from_be_bytes([whole[at], whole[at + 1]]);
                assert!(matches!((kind, whole[at + 2] >> 4), (0x0800, 4) | (0x86dd, 6)), "it is IP");
                assert_eq!(reassembly.counts().packets, before + 1);
            }
        }
        let counts = reassembly.counts();
        let lost: u64 = counts.lost.iter().sum();
        assert_eq!(counts.fragments, counts.joined + lost + reassembly.waiting(), "{counts:?}");
        assert!(reassembly.waiting() <= (most * giveway_wire::fragment::MAX) as u64);
    }
    reassembly.expire(now + Span::s(1));
    assert_eq!(reassembly.waiting(), 0, "no fragment waits for ever");
    reassembly.counts().packets
}
