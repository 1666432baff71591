//! Bridges between real interfaces whose rate varies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::bed::{Bed, Host, frame, nap};
use giveway_links::{Impairments, Profile, Quantity, Shape};
use giveway_live::LinkEmulation;
use giveway_live::clock::{monotonic_ns, wall_ns};
use giveway_qdisc::{Rate, Span, Time};

/// Length of a frame in bytes, which is also what it takes of the link.
const LENGTH: usize = 500;
/// Length of the measurement.
const SECONDS: u64 = 6;

/// 2 to 20 Mbit/s in steps, again and again.
fn steps() -> Profile {
    let mbit = [2, 20, 5, 11, 3, 17, 2];
    let points: Vec<_> =
        mbit.iter().zip(0..).map(|(mbit, n)| (Span::ms(700 * n), mbit * 1_000_000)).collect();
    Profile::points(Quantity::Rate, Shape::Steps, &points, true).unwrap()
}

/// A trace of mahimahi whose rate goes from 2 Mbit/s to 20 Mbit/s and back within four seconds, with silences
/// of up to 6 ms.
fn trace(folder: &std::path::Path) -> Profile {
    let (mut text, mut credit) = (String::new(), 0.0);
    for ms in 1..=4000u64 {
        let from_end = ms.min(4000 - ms) as f64 / 2000.0;
        credit += (2.0 + 18.0 * from_end) * 1000.0 / 8.0;
        while credit >= 1500.0 {
            credit -= 1500.0;
            text += &format!("{ms}\n");
        }
    }
    let file = folder.join("trace.mahi");
    std::fs::write(&file, text + "4000\n").unwrap();
    Profile::mahimahi(&file, true).unwrap().in_memory().unwrap()
}

/// Sends frames at 24 Mbit/s until the flag is set.
fn saturate(mut host: Host) -> (Arc<AtomicBool>, thread::JoinHandle<()>) {
    let stop = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let frames: Vec<Vec<u8>> = (0..12).map(|n| frame(0x88b5, n, LENGTH)).collect();
        let gap_ns = Rate::mbit(24).time_for((LENGTH * frames.len()) as u64).as_ps() / 1000;
        let mut next = monotonic_ns();
        while !until.load(Ordering::Relaxed) {
            host.send(&frames);
            next += gap_ns;
            nap(Duration::from_nanos(next.saturating_sub(monotonic_ns())));
        }
    });
    (stop, thread)
}

/// The arrivals at a host until a time of the monotonic clock, on the kernel's time stamps: nanoseconds from
/// `start_ns`. Then the number of frames for which its socket had no space.
fn arrivals(host: &mut Host, start_ns: u64, until_ns: u64) -> (Vec<u64>, u64) {
    let to_monotonic = monotonic_ns().wrapping_sub(wall_ns());
    let mut all = Vec::new();
    while monotonic_ns() < until_ns {
        let taken = host.ends.receiver.receive(1024, &mut |arrival| {
            all.push(arrival.wall_ns.wrapping_add(to_monotonic).wrapping_sub(start_ns));
        });
        if taken.expect("the interface can be read") == 0 {
            nap(Duration::from_micros(500));
        }
    }
    (all, host.ends.receiver.missed())
}

/// One measurement.
struct Measured {
    /// Largest difference of any second from the integral of the rate, as a part of what it offered.
    worst: f64,
    /// The difference that the lateness of the bridge explains, and 1 %.
    allowed: f64,
    /// Set if the measurement says nothing about the bridge: it or the receiver did not run for a while, and
    /// what passed then is lost.
    disturbed: Option<String>,
}

/// Sends for [`SECONDS`] over a bridge whose rate follows `profile`.
fn measure(name: &str, profile: &Profile) -> Option<Measured> {
    let bed = Bed::build(&name[..1])?;
    let impairments = Impairments { rate: Some(profile.clone()), ..Impairments::default() };
    let emulation = LinkEmulation { impairments, ..LinkEmulation::none() };
    let start_ns = monotonic_ns() + 500_000_000;
    // The queue lasts for 400 ms at 20 Mbit/s and is full before the start: the link has something to send
    // even when the thread of the sender does not run for a while.
    let bridge = bed.varying("fifo limit 2000p", emulation, start_ns);
    let (stop, sending) = saturate(Host::at(&bed, "a0"));
    let until_ns = start_ns + (SECONDS * 1000 + 200) * 1_000_000;
    let (arrived, missed) = arrivals(&mut Host::at(&bed, "b1"), start_ns, until_ns);
    stop.store(true, Ordering::Relaxed);
    sending.join().expect("the sender does not panic");
    let status = bridge.stop(Span::ZERO).swap_remove(0).status;
    let late = status.lateness[0].max;
    let (mut worst, mut allowed) = (0.0f64, 0.0);
    for window in 0..=(SECONDS - 1) * 20 {
        let (from, until) = (Time::ms(50 * window), Time::ms(50 * window + 1000));
        let inside = |ns: &&u64| (from..until).contains(&(Time::ZERO + Span::ns(**ns)));
        let bytes = (arrived.iter().filter(inside).count() * LENGTH) as f64;
        let offered = profile.integral(from, until) as f64 / 8.0;
        let error = (bytes / offered - 1.0).abs();
        if error > worst {
            // 20 Mbit/s pass in the lateness.
            (worst, allowed) = (error, 0.01 + 2.5e6 * late.as_s() / offered);
        }
    }
    let disturbed = (status.stalls > 0 || missed > 0)
        .then(|| format!("{} stalls of the bridge, {missed} frames missed by the receiver", status.stalls));
    println!(
        "{name}: {} frames; largest error in a second {:.3} %; frames late by at most {late}; {}",
        arrived.len(),
        100.0 * worst,
        disturbed.as_deref().unwrap_or("undisturbed"),
    );
    Some(Measured { worst, allowed, disturbed })
}

/// A saturating sender gets the integral of the rate, within 1 % in every second. What arrives late because
/// the thread of the bridge woke up late is added to the tolerance: the machine may be busy. A disturbed
/// measurement is repeated.
#[test]
fn what_passes_in_any_second_is_the_integral_of_the_rate() {
    const ATTEMPTS: usize = 3;
    let folder = std::env::temp_dir().join(format!("giveway-live-varying-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, profile) in [("steps", steps()), ("mahimahi", trace(&folder))] {
        for _ in 0..ATTEMPTS {
            let Some(measured) = measure(name, &profile) else { return };
            if measured.disturbed.is_none() {
                let Measured { worst, allowed, .. } = measured;
                assert!(worst <= allowed, "{name}: {worst} of what was offered, more than {allowed}");
                break;
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
