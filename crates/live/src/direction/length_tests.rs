//! Tests of frames whose IP headers state a wrong length: their throughput, and the throughput of
//! other flows.

use super::*;

const TWO_SECONDS: u64 = 2000;

/// An Ethernet frame of `length` bytes whose IP header states `stated` bytes: IPv4, or IPv6 (whose field
/// excludes the header). UDP, with the flow in the source port.
fn misstated(six: bool, length: usize, stated: u16, flow: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let [high, low] = stated.to_be_bytes();
    if six {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, high, low, 17, 64]);
        frame.extend([0xfd; 32]);
    } else {
        frame.extend([8, 0, 0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    frame.extend(flow.to_be_bytes());
    frame.extend([0, 53, 0, 8, 0, 0]);
    frame.resize(length, 0);
    frame
}

/// Runs a link of `rate` for two seconds. `offer` returns the frames that arrive in each millisecond.
fn for_two_seconds(
    spec: &'static str,
    rate: Rate,
    mut offer: impl FnMut(u64) -> Vec<Vec<u8>>,
) -> Vec<Vec<u8>> {
    let counting = Counting { overhead: 14, mpu: 0 };
    let parts = parts(build(spec), rate, LinkEmulation::none());
    let mut core = Core::new(Parts { counting, buffers: 4096, ..parts });
    let mut out = Out::default();
    for ms in 1..=TWO_SECONDS {
        let now = Time::ms(ms);
        core.catch_up(now);
        offer(ms).iter().for_each(|frame| arrive(&mut core, frame, now, now));
        core.advance(now);
        core.flush(now, &mut out);
    }
    std::mem::take(&mut *out.0.borrow_mut()).sent
}

/// Throughput in Mbit/s, with Ethernet headers.
fn throughput<'a>(frames: impl IntoIterator<Item = &'a Vec<u8>>) -> f64 {
    let bytes: usize = frames.into_iter().map(Vec::len).sum();
    bytes as f64 * 8.0 / (TWO_SECONDS as f64 / 1e3) / 1e6
}

/// Full frames whose headers state almost no data arrive at 24 Mbit/s, for a link of 1 Mbit/s.
#[test]
fn frames_with_a_stated_length_that_is_too_small_pass_no_faster_than_the_rate() {
    for (six, stated) in [(false, 20), (true, 1)] {
        let sent = for_two_seconds("fifo limit 100p", Rate::mbit(1), |ms| {
            (0..2).map(|n| misstated(six, 1514, stated, (2 * ms + n) as u16)).collect()
        });
        let passed = throughput(&sent);
        println!("IPv{}: {passed:.3} Mbit/s pass a link of 1 Mbit/s", if six { 6 } else { 4 });
        // One frame more: the link sends the first frame at once.
        assert!(passed <= 1.0 + 1514.0 * 8.0 / 2e6, "{passed} Mbit/s");
        assert!(passed > 0.98, "{passed} Mbit/s");
    }
}

/// A flow fills a link of 10 Mbit/s. Frames of 60 bytes whose headers state 65,535 bytes arrive as well: 96
/// kbit/s in 50 flows, or 19 kbit/s in one.
#[test]
fn frames_with_a_stated_length_that_is_too_large_take_only_the_time_of_their_bytes() {
    const VICTIM: u16 = 9999;
    for spec in ["fq_codel", "drr", "sfq"] {
        for (flows, every_ms) in [(50, 5), (1, 25)] {
            for six in [false, true] {
                let sent = for_two_seconds(spec, Rate::mbit(10), |ms| {
                    let mut frames = vec![misstated(false, 1514, 1500, VICTIM)];
                    if ms.is_multiple_of(every_ms) {
                        frames.push(misstated(
                            six,
                            if six { 62 } else { 60 },
                            65_535,
                            (ms / every_ms % flows) as u16,
                        ));
                    }
                    frames
                });
                let victim = throughput(sent.iter().filter(|frame| frame.len() == 1514));
                println!(
                    "{spec}, {flows} misstating flows, IPv6 {six}: the victim has {victim:.2} of 10 Mbit/s"
                );
                assert!(victim > 9.7, "{spec}, {flows} flows: {victim} Mbit/s");
            }
        }
    }
}
