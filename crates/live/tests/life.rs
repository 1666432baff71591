//! Overload, flapping interfaces, and a change of all settings each second: the bridge leaks no descriptors
//! and no memory. The test takes twenty seconds, or the number of seconds in `GIVEWAY_SECONDS`.

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
    std::fs::read_dir("/proc/self/fd").expect("Linux has this folder").count()
}

/// Resident memory of the process, in kB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux has this file");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("the file has this line");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("the field is a number")
}

#[test]
#[ignore = "it takes long: cargo xtask test --all runs it"]
fn long_nothing_leaks() {
    // Descriptors and memory are counted for the whole process, so this test needs a process without other
    // tests.
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().expect("the program has a path");
        let arguments = ["life::long_nothing_leaks", "--exact", "--ignored", "--nocapture"];
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
                // Each frame belongs to a new flow, which its source address identifies.
                let frames: Vec<Vec<u8>> = (0..32)
                    .map(|n| {
                        let mut bytes = frame(0x88b5, n, 60 + (round as usize * 7 + n as usize * 131) % 1400);
                        bytes[6..10].copy_from_slice(&(2 + 256 * round.wrapping_mul(32) + n).to_le_bytes());
                        bytes
                    })
                    .collect();
                for frame in &frames {
                    // An error is expected while the interface is down.
                    let _ = host.ends.sender.send(&[frame]);
                }
                round += 1;
                nap(Duration::from_millis(2));
            }
        })
    });
    let handles = bridge.handles();
    let mut at_half_time = 0;
    for second in 0..seconds {
        let spec = ["drr limit 1000p", "efd limit 500p", "fifo limit 800p", "fq_codel"][second as usize % 4];
        let spec: giveway_disciplines::Spec = spec.parse().expect("the spec is valid");
        for handle in &handles {
            let spec = spec.clone();
            handle.send(Command::Qdisc(Box::new(move |rate| {
                spec.build(&LinkContext::new(rate, Streams::new(u64::from(second))))
                    .expect("the spec is valid at any rate")
            })));
            handle.set_rate(Rate::mbit(10 + u64::from(second % 5) * 20));
            let loss = Share::new(f64::from(second % 2) * 0.01).expect("0 and 0.01 are shares");
            handle.set_emulation(LinkEmulation {
                delay: Span::ms(u64::from(second % 3) * 5),
                loss,
                ..LinkEmulation::none()
            });
        }
        nap(Duration::from_millis(500));
        let end = bed.name(["a1", "b0"][second as usize % 2]);
        ip(&["link", "set", &end, "down"]);
        nap(Duration::from_millis(100));
        ip(&["link", "set", &end, "up"]);
        nap(Duration::from_millis(400));
        if second == seconds / 2 {
            at_half_time = resident();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for sender in senders {
        sender.join().expect("the sender does not panic");
    }
    nap(Duration::from_millis(300));
    assert!(bridge.is_whole(), "no direction failed");
    let grown = resident().saturating_sub(at_half_time);
    let ended = bridge.stop(Span::s(5));
    for ended in &ended {
        let status = &ended.status;
        assert_eq!(status.changes, 3 * u64::from(seconds));
        assert_eq!(
            status.buffers[0] + status.in_flight as u32,
            status.buffers[2],
            "every buffer is free or in flight"
        );
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
    // Memory of the pools is counted when it is first used, and a short run may still use new buffers.
    let pools = 2 * 16_384 * 1536 / 1024;
    let most = if seconds < 120 { pools } else { 4096 };
    assert!(grown < most, "{grown} kB more than after half of the run");
    println!("{seconds} s: memory grew by {grown} kB in the second half, {} kB in total", resident());
    assert_eq!(descriptors(), before, "{running} while it ran");
}
