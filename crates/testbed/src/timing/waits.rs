//! Threads that wait for a time or for a datagram, and measure by how much they are late.

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread;

use giveway_qdisc::{Rng, Span, Streams};
use nix::errno::Errno;
use nix::poll::ppoll;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

use crate::command::run;
use crate::error::TestbedError;

/// Shortest and longest time between two wake-ups, in nanoseconds.
const BETWEEN: (u64, u64) = (500_000, 1_500_000);

/// The scheduling class of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Priority {
    Ordinary,
    RealTime,
}

impl Priority {
    /// Gives the calling thread this class. Returns the error, if there is one.
    pub fn set(self) -> Option<String> {
        match self {
            Priority::Ordinary => None,
            Priority::RealTime => {
                let thread = nix::unistd::gettid().to_string();
                run(&["chrt", "-f", "-p", "10", &thread]).err().map(|error| error.to_string())
            }
        }
    }
}

fn read(clock: ClockId) -> i64 {
    clock_gettime(clock).expect("Linux has this clock").num_nanoseconds()
}

/// The times between wake-ups. They are random, so that no timer of the kernel is in step with them.
struct Gaps(Rng);

impl Gaps {
    fn new() -> Gaps {
        Gaps(Streams::new(1).within("timing").rng())
    }
    fn next(&mut self) -> i64 {
        let (least, most) = BETWEEN;
        (least + self.0.below(most - least)) as i64
    }
}

/// A delay from a time to now.
fn late(now: i64, then: i64) -> Span {
    Span::ns((now - then).max(0) as u64)
}

/// Sleeps until times of the monotonic clock.
pub(super) fn sleep(wake_ups: u32) -> Result<Vec<Span>, TestbedError> {
    let mut gaps = Gaps::new();
    let mut delays = Vec::with_capacity(wake_ups as usize);
    while delays.len() < wake_ups as usize {
        let then = read(ClockId::CLOCK_MONOTONIC) + gaps.next();
        let until = TimeSpec::nanoseconds(then);
        match clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until) {
            Ok(_) => delays.push(late(read(ClockId::CLOCK_MONOTONIC), then)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(TestbedError::system("sleep until a time")(error)),
        }
    }
    Ok(delays)
}

/// Waits with the timeout of a poll.
pub(super) fn poll(wake_ups: u32) -> Result<Vec<Span>, TestbedError> {
    let mut gaps = Gaps::new();
    let mut delays = Vec::with_capacity(wake_ups as usize);
    while delays.len() < wake_ups as usize {
        let gap = gaps.next();
        let then = read(ClockId::CLOCK_MONOTONIC) + gap;
        match ppoll(&mut [], Some(TimeSpec::nanoseconds(gap)), None) {
            Ok(_) => delays.push(late(read(ClockId::CLOCK_MONOTONIC), then)),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(TestbedError::system("poll with a timeout")(error)),
        }
    }
    Ok(delays)
}

/// Receives datagrams that another thread sends over the loopback interface.
pub(super) fn receive(wake_ups: u32) -> Result<Vec<Span>, TestbedError> {
    let system = |doing: &'static str| move |error: std::io::Error| TestbedError::system(doing)(error);
    let receiver = UdpSocket::bind("127.0.0.1:0").map_err(system("open a socket at 127.0.0.1"))?;
    let sender = UdpSocket::bind("127.0.0.1:0").map_err(system("open a socket at 127.0.0.1"))?;
    let to = receiver.local_addr().map_err(system("read the address of a socket"))?;
    sender.connect(to).map_err(system("connect a socket"))?;
    setsockopt(&receiver, sockopt::ReceiveTimestampns, &true)
        .map_err(TestbedError::system("turn receive time stamps on"))?;
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            let mut gaps = Gaps::new();
            for _ in 0..wake_ups {
                let until = TimeSpec::nanoseconds(read(ClockId::CLOCK_MONOTONIC) + gaps.next());
                let flags = ClockNanosleepFlags::TIMER_ABSTIME;
                // An interrupted sleep is only a shorter one.
                let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &until);
                sender.send(&[0; 100])?;
            }
            Ok(())
        });
        let delays = (0..wake_ups).map(|_| stamped(&receiver)).collect::<Result<Vec<_>, _>>();
        let sent: std::io::Result<()> =
            sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.map_err(system("send a datagram over the loopback interface"))?;
        delays
    })
}

/// Waits for a datagram. Returns the time since its receive time stamp.
fn stamped(receiver: &UdpSocket) -> Result<Span, TestbedError> {
    let mut bytes = [0; 128];
    let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let got = recvmsg::<()>(receiver.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty());
        let now = read(ClockId::CLOCK_REALTIME);
        let message = match got {
            Err(Errno::EINTR) => continue,
            other => other.map_err(TestbedError::system("receive a datagram"))?,
        };
        let mut control = message.cmsgs().map_err(TestbedError::system("read a receive time stamp"))?;
        let stamp = control.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp.num_nanoseconds()),
            _ => None,
        });
        // The first datagram may have arrived before time stamps were on.
        return Ok(stamp.map_or(Span::ZERO, |stamp| late(now, stamp)));
    }
}
