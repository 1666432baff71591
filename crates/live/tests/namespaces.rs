//! The path of frames on real interfaces, which the tests create and remove.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, Host, NONE, frame, ip, nap, no_loss};
use giveway_live::{Command, LinkEmulation};
use giveway_qdisc::{Backlog, Cx, DropReason, LinkContext, Next, Packet, Qdisc, Rate, Share, Span, Streams};

/// 20,000 frames of mixed lengths in both directions at once: each arrives once, in order, with the same
/// bytes.
#[test]
fn frames_cross_whole_once_and_in_order() {
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
                    let came = receiver.receive(100, Duration::from_secs(5));
                    assert!(came == sent, "round {round}: {} of 100 frames, or others", came.len());
                    got.push(came.len());
                }
                got.iter().sum::<usize>()
            })
        })
        .into();
    for thread in threads {
        assert_eq!(thread.join().expect("what was sent came"), 20_000);
    }
    no_loss(&bridge.stop(Span::s(1)));
}

/// What is damaged, tagged or no IP at all crosses like anything else.
#[test]
fn odd_frames_cross_unharmed() {
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
    // A tag may come on top of the MTU.
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
        let came = b.receive(1, Duration::from_secs(2));
        assert_eq!(came, std::slice::from_ref(frame), "frame {number}");
    }
    no_loss(&bridge.stop(Span::s(1)));
}

/// 2 Mbit/s for about a second and a half: every frame is due a fixed time after the one before, and the
/// whole takes as long as it must. Two per cent is ten times what is promised, for a machine that does
/// something else.
#[test]
fn the_rate_is_the_one_that_was_asked_for() {
    let Some(bed) = Bed::build("r") else { return };
    let bridge = bed.bridge("fifo limit 2000p", Rate::mbit(2), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames: Vec<Vec<u8>> = (0..376).map(|n| frame(0x88b5, n, 1000)).collect();
    a.send(&frames);
    let begin = giveway_live::clock::monotonic_ns();
    let came = b.receive(376, Duration::from_secs(10));
    let took = (giveway_live::clock::monotonic_ns() - begin) as f64 / 1e9;
    assert_eq!(came.len(), 376);
    let ended = bridge.stop(Span::s(1));
    no_loss(&ended);
    if ended[0].status.stalls == 0 {
        let expected = 375.0 * 1000.0 * 8.0 / 2e6;
        assert!((took / expected - 1.0).abs() < 0.02, "{took} s instead of {expected} s");
    }
}

/// Rate, discipline and line change ten times while frames cross; none is lost, none overtakes.
#[test]
fn changes_lose_and_reorder_nothing() {
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
        handle.set_emulation(LinkEmulation { delay, jitter: Span::ZERO, loss: Share::new(0.0).unwrap() });
        nap(Duration::from_millis(20));
    }
    let came = b.receive(sent.len(), Duration::from_secs(10));
    assert!(came == sent, "{} of {} frames, or another order", came.len(), sent.len());
    let ended = bridge.stop(Span::s(1));
    no_loss(&ended);
    assert_eq!(ended[0].status.changes, 30);
}

/// The interface goes down and comes back: frames cross again.
#[test]
fn an_interface_may_go_down_and_come_back() {
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
        assert_eq!(a.receive(1, Duration::from_secs(2)), frames, "back, after {end} was down");
    }
    assert!(bridge.is_whole());
    let ended = bridge.stop(Span::s(1));
    assert!(ended.iter().map(|ended| ended.status.downs).sum::<u64>() >= 2);
}

/// An interface is removed while frames wait, and made again under its name. That is reported with its name
/// within a second or so, what waits for the other side is sent, and both directions end with what they
/// counted.
#[test]
fn an_interface_that_is_made_again_is_another_one() {
    for (number, removed) in ["a1", "b0"].into_iter().enumerate() {
        let Some(bed) = Bed::build(&format!("m{number}")) else { return };
        let mut bridge = bed.bridge("fifo limit 8000p", Rate::mbit(1), NONE());
        let [near, far, other] = if removed == "a1" { ["a0", "b1", "b0"] } else { ["b1", "a0", "a1"] };
        let (mut sender, mut receiver) = (Host::at(&bed, near), Host::at(&bed, far));
        let frames: Vec<Vec<u8>> = (0..30).map(|n| frame(0x88b5, n, 1000)).collect();
        // 240 ms of the link.
        sender.send(&frames);
        // On a busy machine more than one is there when this thread looks again.
        let mut came = receiver.receive(1, Duration::from_secs(2));
        ip(&["link", "del", &bed.name(removed)]);
        bed.pair(near, removed);
        let mut said = Vec::new();
        for _ in 0..50 {
            nap(Duration::from_millis(50));
            said.extend(bridge.watch());
            if !bridge.removed().is_empty() {
                break;
            }
        }
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(&format!("the interface {} was removed", bed.name(removed))), "{said:?}");
        assert!(!bridge.is_whole() && bridge.removed() == [bed.name(removed)]);
        assert!(bridge.watch().is_empty(), "it is reported once, not for {other}");
        let ended = bridge.stop(Span::s(2));
        came.extend(receiver.receive(30 - came.len(), Duration::from_secs(1)));
        assert_eq!(came, frames, "sent to the end");
        assert!(ended.iter().all(|ended| ended.status.plain.is_none()));
        assert_eq!(ended[number].status.counters.sent.packets, 30);
    }
}

/// The same when a direction only forwards: the one that frames come from is removed, or the one that they go
/// to.
#[test]
fn a_plain_direction_notices_that_an_interface_was_removed() {
    for (number, removed) in ["a1", "b0"].into_iter().enumerate() {
        let Some(bed) = Bed::build(&format!("n{number}")) else { return };
        let mut bridge = bed.bridge("fifo", Rate::mbit(1), NONE());
        for handle in bridge.handles() {
            handle.send(Command::Qdisc(Box::new(|_| panic!("there is no such discipline"))));
        }
        nap(Duration::from_millis(300));
        let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
        let frames = [frame(0x88b5, 1, 100)];
        a.send(&frames);
        assert_eq!(b.receive(1, Duration::from_secs(2)), frames);
        assert_eq!(bridge.watch().len(), 2, "both directions have failed");
        ip(&["link", "del", &bed.name(removed)]);
        let mut said = Vec::new();
        for _ in 0..50 {
            nap(Duration::from_millis(50));
            said.extend(bridge.watch());
        }
        assert!(said.len() == 1 && said[0].contains(&bed.name(removed)), "{said:?}");
        bridge.stop(Span::ms(10));
    }
}

/// A TUN interface goes down and comes up, and is then removed: only that is the end.
#[test]
fn a_removed_tun_interface_is_reported() {
    let Some(bed) = Bed::build("t") else { return };
    let names = ["t0", "t1"].map(|end| bed.name(end));
    let open = |name: &String| giveway_live::tun::open(name).expect("we are root, and there is /dev/net/tun");
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
    let mut said = Vec::new();
    for _ in 0..40 {
        nap(Duration::from_millis(50));
        said.extend(bridge.watch());
    }
    assert!(said.len() == 1 && said[0].contains(&format!("{} was removed", names[0])), "{said:?}");
    bridge.stop(Span::ms(10));
}

/// A discipline that never ends, in the middle of its work, while it is asked for its gauges.
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
    unsafe { libc::sched_getscheduler(thread) }
}

/// A thread that spins loses its real-time priority when it has failed, and the one that stands by forwards.
/// Who watches has no privileges any more.
#[test]
fn a_thread_that_spins_keeps_no_priority_and_is_replaced() {
    let Some(bed) = Bed::build("p") else { return };
    let mut bridge = bed.bridge("fifo", Rate::mbit(1), NONE());
    if !bridge.handles()[0].status().scheduling.contains("SCHED_FIFO") {
        assert!(std::env::var_os("CI").is_none(), "real-time scheduling must be possible here");
        eprintln!("skipped: real-time scheduling is not possible here");
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
            .expect("this system has filters");
        let mut said = Vec::new();
        while said.is_empty() {
            nap(Duration::from_millis(50));
            said.extend(bridge.watch());
        }
        (bridge, said)
    });
    let (bridge, said) = watching.join().expect("it watches");
    let ended = policy(spins);
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames = [frame(0x88b5, 1, 100)];
    // Whatever is sent while it takes over is lost.
    let mut came = Vec::new();
    for _ in 0..50 {
        if came.is_empty() {
            a.send(&frames);
            came = b.receive(1, Duration::from_millis(100));
        }
    }
    b.receive(usize::MAX, Duration::from_millis(300));
    let still = bridge.handles()[0].status().plain.is_some();
    stop.store(true, Ordering::Relaxed);
    assert_eq!((began, ended), (libc::SCHED_FIFO, libc::SCHED_OTHER), "{said:?}");
    assert!(said.len() == 1 && said[0].contains("no sign of life") && !said[0].contains("keeps"), "{said:?}");
    assert_eq!(came.first(), Some(&frames[0]), "the other thread forwards");
    assert!(still);
    nap(Duration::from_millis(100));
    // What spun has ended by itself now, and does not forward a second time.
    a.send(&frames);
    assert_eq!(b.receive(2, Duration::from_millis(500)), frames);
    bridge.stop(Span::ms(10));
}

/// A direction fails that could go on: one thread forwards, not two.
#[test]
fn a_direction_that_is_made_to_fail_sends_each_frame_once() {
    let Some(bed) = Bed::build("q") else { return };
    let bridge = bed.bridge("fifo", Rate::gbit(1), NONE());
    bridge.handles()[0].fail("a test wants it");
    nap(Duration::from_millis(400));
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames = [frame(0x88b5, 1, 100), frame(0x88b5, 2, 100)];
    a.send(&frames);
    assert_eq!(b.receive(4, Duration::from_millis(500)), frames);
    let ended = bridge.stop(Span::ms(10));
    assert_eq!(
        (ended[0].status.plain_frames, ended[0].status.plain.as_deref()),
        (2, Some("a test wants it"))
    );
}

/// A direction that fails forwards plainly, tags and all, and says so once. The other one goes on shaping.
#[test]
fn a_failure_ends_in_plain_forwarding() {
    let Some(bed) = Bed::build("f") else { return };
    let mut bridge = bed.bridge("fifo", Rate::kbit(8), NONE());
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    // The thread panics: its discipline cannot be built.
    bridge.handles()[0].send(Command::Qdisc(Box::new(|_| panic!("there is no such discipline"))));
    nap(Duration::from_millis(300));
    let said = bridge.watch();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("forward") && said[0].contains("there is no such discipline"), "{said:?}");
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

/// A discipline that never returns: after five seconds without a sign of life the spare thread forwards.
#[test]
fn a_thread_that_hangs_is_replaced() {
    let Some(bed) = Bed::build("h") else { return };
    let mut bridge = bed.bridge("fifo", Rate::mbit(1), NONE());
    bridge.handles()[0].send(Command::Qdisc(Box::new(|_| {
        nap(Duration::from_secs(3600));
        unreachable!("the test is over by then")
    })));
    let mut said = Vec::new();
    for _ in 0..80 {
        nap(Duration::from_millis(100));
        said.extend(bridge.watch());
    }
    assert!(said.len() == 1 && said[0].contains("no sign of life"), "{said:?}");
    let (mut a, mut b) = (Host::at(&bed, "a0"), Host::at(&bed, "b1"));
    let frames = [frame(0x88b5, 1, 100)];
    a.send(&frames);
    assert_eq!(b.receive(1, Duration::from_secs(2)), frames);
    bridge.stop(Span::ms(10));
}
