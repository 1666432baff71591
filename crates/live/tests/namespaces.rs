//! Tests of a bridge between real interfaces, which the tests create and remove.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, Host, NONE, frame, ip, nap, no_loss};
use giveway_live::{Command, LinkEmulation};
use giveway_qdisc::{Backlog, Cx, DropReason, LinkContext, Next, Packet, Qdisc, Rate, Span, Streams};

/// 20,000 frames of mixed lengths in both directions at once: each arrives once, in order, with the same
/// bytes.
#[test]
fn frames_pass_unchanged_once_and_in_order() {
    let Some(bed) = Bed::build("w") else { return };
    let bridge = bed.bridge("fifo limit 8000p", Rate::gbit(10), NONE());
    let ends = [("a0", "b1"), ("b1", "a0")];
    let threads: Vec<_> = ends
        .map(|(from, to)| {
            let (mut sender, mut receiver) = (Host::at(&bed, from), Host::at(&bed, to));
            thread::spawn(move || {
                let mut got = Vec::new();
                for round in 0..200 {
                    let sent: Vec<Vec<u8>> = (0..100)
                        .map(|n| {
                            frame(0x88b5, round * 100 + n, 60 + (n as usize * 977 + round as usize) % 1454)
                        })
                        .collect();
                    sender.send(&sent);
                    let received = receiver.receive(100, Duration::from_secs(5));
                    assert!(
                        received == sent,
                        "round {round}: {} of 100 frames, or other bytes",
                        received.len()
                    );
                    got.push(received.len());
                }
                got.iter().sum::<usize>()
            })
        })
        .into();
    for thread in threads {
        assert_eq!(thread.join().expect("all frames arrived"), 20_000);
    }
    no_loss(&bridge.stop(Span::s(1)));
}

/// Frames with damaged headers or VLAN tags, and frames that are not IP.
#[test]
fn unusual_frames_pass_unchanged() {
    let Some(bed) = Bed::build("o") else { return };
    let bridge = bed.bridge("fq_codel", Rate::gbit(1), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let ip = |header: &[u8]| {
        let mut bytes = frame(0x0800, 1, 14);
        bytes.extend(header);
        bytes.resize(80, 7);
        bytes
    };
    let mut tagged = frame(0x8100, 1, 100);
    tagged[14..18].copy_from_slice(&[0x20, 5, 0x08, 0x06]);
    let mut twice = frame(0x88a8, 1, 100);
    twice[14..22].copy_from_slice(&[0, 9, 0x81, 0, 0, 5, 0x08, 0]);
    // The VLAN tag does not count toward the MTU.
    let mut longest = frame(0x8100, 1, 1518);
    longest[14..18].copy_from_slice(&[0, 7, 0x88, 0xb5]);
    let odd = [
        frame(0x0806, 1, 60),
        frame(0x0806, 1, 14),
        tagged,
        twice,
        frame(0x0026, 1, 60),
        ip(&[0x45, 0, 0xff, 0xff, 0, 0, 0x20, 0, 64, 17]),
        ip(&[0x41, 0, 0, 20]),
        ip(&[0x4f, 0, 0, 3]),
        ip(&[0x45, 3, 0, 28, 0, 0, 0x1f, 0xff, 64, 6]),
        frame(0x86dd, 1, 30),
        frame(0xffff, 1, 1514),
        longest,
    ];
    for (number, frame) in odd.iter().enumerate() {
        a.send(std::slice::from_ref(frame));
        let received = b.receive(1, Duration::from_secs(2));
        assert_eq!(received, std::slice::from_ref(frame), "frame {number}");
    }
    no_loss(&bridge.stop(Span::s(1)));
}

/// 2 Mbit/s for about a second and a half. The tolerance of two per cent is ten times the deviation on an
/// idle machine, since other tests run.
#[test]
fn the_rate_is_the_configured_one() {
    let Some(bed) = Bed::build("r") else { return };
    let bridge = bed.bridge("fifo limit 2000p", Rate::mbit(2), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..376).map(|n| frame(0x88b5, n, 1000)).collect();
    a.send(&frames);
    let begin = giveway_live::clock::monotonic_ns();
    let received = b.receive(376, Duration::from_secs(10));
    let took = (giveway_live::clock::monotonic_ns() - begin) as f64 / 1e9;
    assert_eq!(received.len(), 376);
    let ended = bridge.stop(Span::s(1));
    no_loss(&ended);
    if ended[0].status.stalls == 0 {
        let expected = 375.0 * 1000.0 * 8.0 / 2e6;
        assert!((took / expected - 1.0).abs() < 0.02, "{took} s instead of {expected} s");
    }
}

/// Rate, discipline and link emulation change ten times while frames pass.
#[test]
fn changes_lose_and_reorder_no_frame() {
    let Some(bed) = Bed::build("c") else { return };
    let bridge = bed.bridge("fifo limit 8000p", Rate::mbit(50), NONE());
    let handle = bridge.handles()[0].clone();
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let mut sent = Vec::new();
    for round in 0..10 {
        let frames: Vec<Vec<u8>> = (0..100).map(|n| frame(0x88b5, round * 100 + n, 500)).collect();
        a.send(&frames);
        sent.extend(frames);
        let spec: giveway_disciplines::Spec =
            if round % 2 == 0 { "drr limit 9000p" } else { "fifo limit 9000p" }.parse().unwrap();
        handle.send(Command::Qdisc(Box::new(move |rate| {
            spec.build(&LinkContext::new(rate, Streams::new(u64::from(round)))).unwrap()
        })));
        handle.set_rate(Rate::mbit(10 + 10 * u64::from(round)));
        let delay = if round % 3 == 0 { Span::ms(3) } else { Span::ZERO };
        handle.set_emulation(LinkEmulation { delay, ..LinkEmulation::none() });
        nap(Duration::from_millis(20));
    }
    let received = b.receive(sent.len(), Duration::from_secs(10));
    assert!(received == sent, "{} of {} frames, or another order", received.len(), sent.len());
    let ended = bridge.stop(Span::s(1));
    no_loss(&ended);
    assert_eq!(ended[0].status.changes, 30);
}

#[test]
fn frames_pass_again_after_an_interface_was_down() {
    let Some(bed) = Bed::build("d") else { return };
    let bridge = bed.bridge("fifo", Rate::mbit(100), NONE());
    for end in ["a1", "b0"] {
        ip(&["link", "set", &bed.name(end), "down"]);
        nap(Duration::from_millis(100));
        ip(&["link", "set", &bed.name(end), "up"]);
        nap(Duration::from_millis(100));
        let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
        let frames = [frame(0x88b5, 1, 100)];
        a.send(&frames);
        assert_eq!(b.receive(1, Duration::from_secs(2)), frames, "after {end} was down");
        b.send(&frames);
        assert_eq!(
            a.receive(1, Duration::from_secs(2)),
            frames,
            "in the reverse direction, after {end} was down"
        );
    }
    assert!(bridge.is_whole());
    let ended = bridge.stop(Span::s(1));
    assert!(ended.iter().map(|ended| ended.status.downs).sum::<u64>() >= 2);
}

/// An interface is removed while frames are queued, and one with the same name is created. The removal is
/// reported, the backlog for the other interface is sent, and the counters of both directions are complete.
#[test]
fn an_interface_created_under_the_same_name_is_another_one() {
    for (number, removed) in ["a1", "b0"].into_iter().enumerate() {
        let Some(bed) = Bed::build(&format!("m{number}")) else { return };
        let mut bridge = bed.bridge("fifo limit 8000p", Rate::mbit(1), NONE());
        let [near, far, other] = if removed == "a1" { ["a0", "b1", "b0"] } else { ["b1", "a0", "a1"] };
        let (mut sender, mut receiver) = (Host::at(&bed, near), Host::at(&bed, far));
        let frames: Vec<Vec<u8>> = (0..30).map(|n| frame(0x88b5, n, 1000)).collect();
        // A backlog of 240 ms.
        sender.send(&frames);
        // On a busy machine several frames may have arrived.
        let mut received = receiver.receive(1, Duration::from_secs(2));
        ip(&["link", "del", &bed.name(removed)]);
        bed.pair(near, removed);
        let mut messages = Vec::new();
        for _ in 0..50 {
            nap(Duration::from_millis(50));
            messages.extend(bridge.watch());
            if !bridge.removed().is_empty() {
                break;
            }
        }
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(
            messages[0].contains(&format!("the interface {} was removed", bed.name(removed))),
            "{messages:?}"
        );
        assert!(!bridge.is_whole() && bridge.removed() == [bed.name(removed)]);
        assert!(bridge.watch().is_empty(), "the removal is reported once, and not for {other}");
        let ended = bridge.stop(Span::s(2));
        received.extend(receiver.receive(30 - received.len(), Duration::from_secs(1)));
        assert_eq!(received, frames, "the backlog is sent");
        assert!(ended.iter().all(|ended| ended.status.plain.is_none()));
        assert_eq!(ended[number].status.counters.sent.packets, 30);
    }
}

/// The incoming or the outgoing interface of a direction is removed after the direction has failed.
#[test]
fn plain_forwarding_detects_that_an_interface_was_removed() {
    for (number, removed) in ["a1", "b0"].into_iter().enumerate() {
        let Some(bed) = Bed::build(&format!("n{number}")) else { return };
        let mut bridge = bed.bridge("fifo", Rate::mbit(1), NONE());
        for handle in bridge.handles() {
            handle.send(Command::Qdisc(Box::new(|_| panic!("unknown discipline"))));
        }
        nap(Duration::from_millis(300));
        let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
        let frames = [frame(0x88b5, 1, 100)];
        a.send(&frames);
        assert_eq!(b.receive(1, Duration::from_secs(2)), frames);
        assert_eq!(bridge.watch().len(), 2, "both directions have failed");
        ip(&["link", "del", &bed.name(removed)]);
        let mut messages = Vec::new();
        for _ in 0..50 {
            nap(Duration::from_millis(50));
            messages.extend(bridge.watch());
        }
        assert!(messages.len() == 1 && messages[0].contains(&bed.name(removed)), "{messages:?}");
        bridge.stop(Span::ms(10));
    }
}

/// A TUN interface goes down and up, which is not reported, and is then removed.
#[test]
fn a_removed_tun_interface_is_reported() {
    let Some(bed) = Bed::build("t") else { return };
    let names = ["t0", "t1"].map(|end| bed.name(end));
    let open = |name: &String| giveway_live::tun::open(name).expect("root may open /dev/net/tun");
    let ends = (open(&names[0]), open(&names[1]));
    let mut bridge = bed.bridge_between(ends, Rate::mbit(10), NONE(), |_| {
        let spec: giveway_disciplines::Spec = "fifo".parse().unwrap();
        Box::new(move |rate| spec.build(&LinkContext::new(rate, Streams::new(1))).unwrap())
    });
    for state in ["down", "up"] {
        ip(&["link", "set", &names[0], state]);
        nap(Duration::from_millis(400));
        assert!(bridge.watch().is_empty() && bridge.is_whole(), "{state}");
    }
    ip(&["link", "del", &names[0]]);
    let mut messages = Vec::new();
    for _ in 0..40 {
        nap(Duration::from_millis(50));
        messages.extend(bridge.watch());
    }
    assert!(
        messages.len() == 1 && messages[0].contains(&format!("{} was removed", names[0])),
        "{messages:?}"
    );
    bridge.stop(Span::ms(10));
}

/// A discipline that never returns from `gauges`, until a flag is set.
struct Endless {
    stop: Arc<AtomicBool>,
    thread: Arc<AtomicI32>,
}

impl Qdisc<giveway_live::Frame> for Endless {
    fn enqueue(&mut self, pkt: Packet<giveway_live::Frame>, cx: &mut Cx<'_, giveway_live::Frame>) {
        cx.drop(pkt, DropReason::Overlimit);
    }
    fn dequeue(&mut self, _cx: &mut Cx<'_, giveway_live::Frame>) -> Next<giveway_live::Frame> {
        Next::Empty
    }
    fn backlog(&self) -> Backlog {
        Backlog::ZERO
    }
    fn reset(&mut self, _cx: &mut Cx<'_, giveway_live::Frame>) {}
    fn gauges(&self, _visit: &mut dyn FnMut(&'static str, f64)) {
        // SAFETY: no pointers are passed.
        self.thread.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        while !self.stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
}

fn policy(thread: i32) -> i32 {
    // SAFETY: no pointers are passed.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread) };
    i32::try_from(answer).expect("a policy is a small number")
}

/// The supervising thread has no privileges when it lowers the priority.
#[test]
fn a_spinning_thread_loses_its_real_time_priority_and_is_replaced() {
    let Some(bed) = Bed::build("p") else { return };
    let mut bridge = bed.bridge("fifo", Rate::mbit(1), NONE());
    if !bridge.handles()[0].status().scheduling.contains("SCHED_FIFO") {
        assert!(std::env::var_os("CI").is_none(), "real-time scheduling must be possible if CI is set");
        eprintln!("skipped: real-time scheduling is not permitted");
        return;
    }
    let (stop, spins) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI32::new(0)));
    let (until, number) = (Arc::clone(&stop), Arc::clone(&spins));
    bridge.handles()[0].send(Command::Qdisc(Box::new(move |_| {
        Box::new(Endless { stop: Arc::clone(&until), thread: Arc::clone(&number) })
    })));
    while spins.load(Ordering::Relaxed) == 0 {
        nap(Duration::from_millis(10));
    }
    let spins = spins.load(Ordering::Relaxed);
    let began = policy(spins);
    let watching = thread::spawn(move || {
        giveway_live::privilege::settle(giveway_live::privilege::Role::Watch)
            .expect("this system has system call filters");
        let mut messages = Vec::new();
        while messages.is_empty() {
            nap(Duration::from_millis(50));
            messages.extend(bridge.watch());
        }
        (bridge, messages)
    });
    let (bridge, messages) = watching.join().expect("the supervising thread does not panic");
    let ended = policy(spins);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames = [frame(0x88b5, 1, 100)];
    // Frames that are sent before the spare thread has taken over are lost.
    let mut received = Vec::new();
    for _ in 0..50 {
        if received.is_empty() {
            a.send(&frames);
            received = b.receive(1, Duration::from_millis(100));
        }
    }
    b.receive(usize::MAX, Duration::from_millis(300));
    let still = bridge.handles()[0].status().plain.is_some();
    stop.store(true, Ordering::Relaxed);
    assert_eq!((began, ended), (libc::SCHED_FIFO, libc::SCHED_OTHER), "{messages:?}");
    assert!(
        messages.len() == 1 && messages[0].contains("no heartbeat") && !messages[0].contains("keeps"),
        "{messages:?}"
    );
    assert_eq!(received.first(), Some(&frames[0]), "the spare thread forwards");
    assert!(still);
    nap(Duration::from_millis(100));
    // The spinning thread has ended, and does not forward the frame a second time.
    a.send(&frames);
    assert_eq!(b.receive(2, Duration::from_millis(500)), frames);
    bridge.stop(Span::ms(10));
}

/// The shaping thread still works when the direction is declared to have failed.
#[test]
fn only_one_thread_forwards_after_a_failure_on_purpose() {
    let Some(bed) = Bed::build("q") else { return };
    let bridge = bed.bridge("fifo", Rate::gbit(1), NONE());
    bridge.handles()[0].fail("requested by a test");
    nap(Duration::from_millis(400));
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames = [frame(0x88b5, 1, 100), frame(0x88b5, 2, 100)];
    a.send(&frames);
    assert_eq!(b.receive(4, Duration::from_millis(500)), frames);
    let ended = bridge.stop(Span::ms(10));
    assert_eq!(
        (ended[0].status.plain_frames, ended[0].status.plain.as_deref()),
        (2, Some("requested by a test"))
    );
}

/// A direction that fails forwards plainly, with VLAN tags, and reports this once. The other direction still
/// shapes.
#[test]
fn a_direction_forwards_plainly_after_a_panic() {
    let Some(bed) = Bed::build("f") else { return };
    let mut bridge = bed.bridge("fifo", Rate::kbit(8), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    // The thread panics: its discipline cannot be built.
    bridge.handles()[0].send(Command::Qdisc(Box::new(|_| panic!("unknown discipline"))));
    nap(Duration::from_millis(300));
    let messages = bridge.watch();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].contains("forward") && messages[0].contains("unknown discipline"), "{messages:?}");
    assert!(bridge.watch().is_empty() && !bridge.is_whole());
    let mut tagged = frame(0x8100, 1, 1000);
    tagged[14..18].copy_from_slice(&[0x20, 5, 0x88, 0xb5]);
    let frames = [frame(0x88b5, 1, 1000), tagged, frame(0x88b5, 2, 1000)];
    a.send(&frames);
    assert_eq!(b.receive(3, Duration::from_secs(2)), frames, "at 8 kbit/s they would take three seconds");
    let ended = bridge.stop(Span::ms(10));
    assert_eq!(ended[0].status.plain_frames, 3);
    assert_eq!(ended[1].status.plain, None);
}

/// The build of a discipline does not return. After five seconds without a heartbeat the spare thread
/// forwards.
#[test]
fn a_hanging_thread_is_replaced() {
    let Some(bed) = Bed::build("h") else { return };
    let mut bridge = bed.bridge("fifo", Rate::mbit(1), NONE());
    bridge.handles()[0].send(Command::Qdisc(Box::new(|_| {
        nap(Duration::from_secs(3600));
        unreachable!("the test is over by then")
    })));
    let mut messages = Vec::new();
    for _ in 0..80 {
        nap(Duration::from_millis(100));
        messages.extend(bridge.watch());
    }
    assert!(messages.len() == 1 && messages[0].contains("no heartbeat"), "{messages:?}");
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames = [frame(0x88b5, 1, 100)];
    a.send(&frames);
    assert_eq!(b.receive(1, Duration::from_secs(2)), frames);
    bridge.stop(Span::ms(10));
}
