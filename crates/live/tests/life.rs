//! Overload, interfaces that flap, and a change of all settings once a second: resources at the end are those
//! at the beginning. It takes twenty seconds; `GIVEWAY_SECONDS=300` makes it five minutes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, Host, NONE, frame, ip, nap};
use giveway_live::{Command, LinkEmulation};
use giveway_qdisc::{LinkContext, Rate, Share, Span, Streams};

/// Set in the process that runs only this test.
const ALONE: &str = "GIVEWAY_LIFE_ALONE";

/// Number of open descriptors of the process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux has it").count()
}

/// Resident memory, kB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux has it");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("it is a number")
}

#[test]
fn nothing_leaks() {
    // Descriptors and memory are counted for the whole process, so this test needs a process without other
    // tests.
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().expect("Linux has it");
        let arguments = ["life::nothing_leaks", "--exact", "--nocapture"];
        let ended = std::process::Command::new(program).args(arguments).env(ALONE, "1").status();
        assert!(ended.expect("this program can be started").success(), "the output above has the reason");
        return;
    }
    let Some(bed) = Bed::build("k") else { return };
    let seconds = std::env::var("GIVEWAY_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20u32);
    let before = descriptors();
    let bridge = bed.bridge("fq_codel limit 2000p", Rate::mbit(50), NONE());
    let running = descriptors();
    let stop = Arc::new(AtomicBool::new(false));
    let senders = ["a0", "b1"].map(|end| {
        let (mut host, stop) = (Host::at(&bed, end), Arc::clone(&stop));
        thread::spawn(move || {
            let mut round = 0u32;
            while !stop.load(Ordering::Relaxed) {
                // New flows all the time: the source address identifies a flow.
                let frames: Vec<Vec<u8>> = (0..32)
                    .map(|n| {
                        let mut bytes = frame(0x88b5, n, 60 + (round as usize * 7 + n as usize * 131) % 1400);
                        bytes[6..10].copy_from_slice(&(2 + 256 * round.wrapping_mul(32) + n).to_le_bytes());
                        bytes
                    })
                    .collect();
                for frame in &frames {
                    // An interface that is down refuses; so it does.
                    let _ = host.ends.sender.send(&[frame]);
                }
                round += 1;
                nap(Duration::from_millis(2));
            }
        })
    });
    let handles = bridge.handles();
    let mut after_a_while = 0;
    for second in 0..seconds {
        let spec = ["drr limit 1000p", "efd limit 500p", "fifo limit 800p", "fq_codel"][second as usize % 4];
        let spec: giveway_disciplines::Spec = spec.parse().expect("it is one");
        for handle in &handles {
            let spec = spec.clone();
            handle.send(Command::Qdisc(Box::new(move |rate| {
                spec.build(&LinkContext::new(rate, Streams::new(u64::from(second))))
                    .expect("it was built before")
            })));
            handle.set_rate(Rate::mbit(10 + u64::from(second % 5) * 20));
            let loss = Share::new(f64::from(second % 2) * 0.01).expect("it is one");
            handle.set_emulation(LinkEmulation {
                delay: Span::ms(u64::from(second % 3) * 5),
                jitter: Span::ZERO,
                loss,
            });
        }
        nap(Duration::from_millis(500));
        let end = bed.name(["a1", "b0"][second as usize % 2]);
        ip(&["link", "set", &end, "down"]);
        nap(Duration::from_millis(100));
        ip(&["link", "set", &end, "up"]);
        nap(Duration::from_millis(400));
        if second == seconds / 2 {
            after_a_while = resident();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.join().expect("it sends");
    }
    nap(Duration::from_millis(300));
    assert!(bridge.is_whole(), "no direction failed");
    let grown = resident().saturating_sub(after_a_while);
    let ended = bridge.stop(Span::s(5));
    for ended in &ended {
        let status = &ended.status;
        assert_eq!(status.changes, 3 * u64::from(seconds));
        assert_eq!(status.buffers[0] + status.in_flight as u32, status.buffers[2], "all rooms are back");
        assert!(status.downs > 0 && status.counters.sent.packets > 1000, "{status:?}");
        println!(
            "{} packets sent, {} dropped, {} refused by an interface that was down; ring drops {}; down {} times",
            status.counters.sent.packets,
            status.counters.dropped.packets,
            status.losses.unsent,
            status.losses.ring,
            status.downs
        );
    }
    // Rooms of the pools are touched when they are first used, which a short life has not done with.
    let pools = 2 * 16_384 * 1536 / 1024;
    let most = if seconds < 120 { pools } else { 4096 };
    assert!(grown < most, "{grown} kB more than after half of the time");
    println!("{seconds} s: memory grew by {grown} kB in the second half, {} kB in all", resident());
    assert_eq!(descriptors(), before, "{running} while it ran");
}
