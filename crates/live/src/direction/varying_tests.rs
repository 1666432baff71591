//! Tests of a direction whose rate varies, and of its wire.

use giveway_links::{Impairments, Profile, Quantity, Shape};

use super::*;

/// A rate in steps: times in milliseconds, and Mbit/s.
fn steps(points: &[(u64, u64)]) -> Profile {
    let points: Vec<_> = points.iter().map(|(ms, mbit)| (Span::ms(*ms), mbit * 1_000_000)).collect();
    Profile::points(Quantity::Rate, Shape::Steps, &points, false).unwrap()
}

fn varying(profile: Profile) -> LinkEmulation {
    let impairments = Impairments { rate: Some(profile), ..Impairments::default() };
    LinkEmulation { impairments, ..LinkEmulation::none() }
}

/// The times at which the frames leave a direction, by name.
fn departures(core: &mut Core, out: &mut Out) -> Vec<(char, Time)> {
    let mut left: Vec<(char, Time)> = Vec::new();
    while let Some(next) = core.next().filter(|next| *next < Time::s(1)) {
        core.advance(next);
        core.flush(next, out);
        let sent = out.names();
        left.extend(sent.chars().skip(left.len()).map(|name| (name, next)));
    }
    left
}

/// 1,000 bytes take a millisecond at 8 Mbit/s. The rate is 8 Mbit/s until 3.5 ms, zero until 8 ms, and then
/// 16 Mbit/s: the second half of the third frame waits for 4.5 ms and takes a quarter of a millisecond.
#[test]
fn frames_leave_when_the_integral_of_the_rate_says_so() {
    let profile = Profile::points(
        Quantity::Rate,
        Shape::Steps,
        &[(Span::ZERO, 8_000_000), (Span::us(3500), 0), (Span::ms(8), 16_000_000)],
        false,
    );
    let (mut core, mut out) = (core(build("fifo"), RATE, varying(profile.unwrap())), Out::default());
    for name in "ABCD".chars() {
        arrive(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    assert!(core.busy(Time::us(1500)));
    assert_eq!(
        departures(&mut core, &mut out),
        [('A', Time::ms(2)), ('B', Time::ms(3)), ('C', Time::us(8250)), ('D', Time::us(8750))]
    );
    assert_eq!((core.port.rate(), core.backlog()), (Rate::mbit(16), 0), "the port was informed");
}

/// Arrivals during the silence wait, and are no sign of a discipline that is stuck.
#[test]
fn a_link_that_stands_still_is_not_stuck() {
    let (mut core, mut out) =
        (core(build("fifo"), RATE, varying(steps(&[(0, 8), (5, 0), (9000, 8)]))), Out::default());
    for (name, at) in "AB".chars().zip([Time::ms(6), Time::ms(7)]) {
        arrive(&mut core, &frame(1, name), at, at);
    }
    assert!(core.busy(Time::ms(7)) && core.next() == Some(Time::s(9)));
    for second in 1..9 {
        core.catch_up(Time::s(second));
        core.advance(Time::s(second));
    }
    core.catch_up(Time::ms(9001));
    core.advance(Time::ms(9001));
    core.flush(Time::ms(9001), &mut out);
    assert_eq!((out.names().as_str(), core.statistics().stalls), ("A", 0));
}

/// A frame is half sent when the rate falls to zero for ever. With another rate it leaves, and the link goes
/// on.
#[test]
fn another_rate_frees_a_link_that_had_stopped_for_ever() {
    let (mut core, mut out) = (core(build("fifo"), RATE, varying(steps(&[(0, 4), (2, 0)]))), Out::default());
    for name in "AB".chars() {
        arrive(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.advance(Time::ms(900));
    core.flush(Time::ms(900), &mut out);
    assert_eq!((out.names().as_str(), core.backlog()), ("", 2));
    core.at = Time::ms(900);
    core.apply(Command::VaryingRate(RATE, steps(&[(0, 16)])));
    assert_eq!(departures(&mut core, &mut out), [('A', Time::ms(900)), ('B', Time::us(900_500))]);
    core.apply(Command::Rate(RATE));
    arrive(&mut core, &frame(1, 'C'), Time::ms(950), Time::ms(950));
    core.flush(Time::ms(950), &mut out);
    assert_eq!(out.names(), "ABC", "at a constant rate it leaves with its first bit");
}

/// Bytes that nobody uses are lost: an opportunity of mahimahi is there at its time only, also after the
/// thread has slept.
#[test]
fn unused_opportunities_are_lost() {
    let file = std::env::temp_dir().join(format!("giveway-live-{}.mahi", std::process::id()));
    std::fs::write(&file, "3\n3\n10\n30\n30\n100\n").unwrap();
    let profile = Profile::mahimahi(&file, true).unwrap().in_memory().unwrap();
    std::fs::remove_file(&file).unwrap();
    let (mut core, mut out) = (core(build("fifo"), RATE, varying(profile)), Out::default());
    core.catch_up(Time::ms(25));
    for name in "ABCD".chars() {
        arrive(&mut core, &frame(1, name), Time::ms(20), Time::ms(25));
    }
    // Two opportunities of 1,500 bytes have room for three frames of 1,000 bytes.
    assert_eq!(
        departures(&mut core, &mut out),
        [('A', Time::ms(30)), ('B', Time::ms(30)), ('C', Time::ms(30)), ('D', Time::ms(100))]
    );
}

#[test]
fn a_frame_arrives_twice_if_a_buffer_is_free_for_its_copy() {
    let duplicate = Share::new(1.0).unwrap();
    let impairments = Impairments { duplicate, ..Impairments::default() };
    let emulation = LinkEmulation { impairments, ..LinkEmulation::none() };
    let parts = Parts { buffers: 3, ..parts(build("fifo"), RATE, emulation) };
    let (mut core, mut out) = (Core::new(parts), Out::default());
    for name in "AB".chars() {
        arrive(&mut core, &frame(1, name), Time::ms(1), Time::ms(1));
    }
    core.advance(Time::ms(9));
    core.flush(Time::ms(9), &mut out);
    assert_eq!(out.names(), "AAB", "A, its copy and B have all buffers");
    assert_eq!((core.pool.free(), core.statistics().losses.no_buffer), (3, 1));
    assert_eq!(out.0.borrow().sent[0], out.0.borrow().sent[1]);
}
