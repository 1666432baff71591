//! Disciplines behind functions of C.
//!
//! A program in C, or in any language that calls C, asks a queue which packet leaves next. The packets stay
//! with the program: the queue knows each by a number and by the fields of [`Packet`]. These are the calls of
//! [`Qdisc`], so each host of a discipline gets the same decisions, bit by bit; `docs/book/hosts.md` has all
//! hosts side by side.
//!
//! The contract of a discipline leaves open what a caller may do wrong. Here no call ends the program:
//! - A pointer to a queue that is null does nothing. Any other pointer that is not a queue is undefined
//!   behaviour, as everywhere in C.
//! - A clock that goes back counts as standing still.
//! - A packet with a field out of its range is refused, and the queue is as before.
//!
//! Unsafe: pointers come from C. Each function says what it takes for granted.
//!
//! `include/giveway.h` is made from this file; a test compares them.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

use giveway_disciplines::Spec;
use giveway_qdisc::{
    Backlog, Bytes, Cx, DropReason, LinkContext, Next, Outbox, Packet as Numbered, Qdisc, Rate, Streams, Time,
};

mod packet;

pub use packet::Packet;

/// A discipline with its packets.
pub struct Queue {
    qdisc: Box<dyn Qdisc<u64>>,
    /// Replaced disciplines that still have packets, the oldest first.
    leaving: VecDeque<Box<dyn Qdisc<u64>>>,
    link: LinkContext,
    out: Outbox<u64>,
    /// Dropped packets that the caller has not asked for yet.
    dropped: VecDeque<(Numbered<u64>, DropReason)>,
    now: Time,
}

impl Queue {
    fn new(text: &str, link: LinkContext) -> Result<Queue, String> {
        Ok(Queue {
            qdisc: built(text, &link)?,
            leaving: VecDeque::new(),
            link,
            out: Outbox::default(),
            dropped: VecDeque::new(),
            now: Time::ZERO,
        })
    }

    /// Sets the clock, and returns the context of a call.
    fn at(&mut self, now_ns: u64) -> (&mut Box<dyn Qdisc<u64>>, Cx<'_, u64>) {
        self.now = self.now.max(Time::from_ps(now_ns.saturating_mul(PS)));
        (&mut self.qdisc, Cx::new(self.now, &mut self.out))
    }

    /// Keeps the drops of a call until the caller asks for them.
    fn settle(&mut self) {
        self.out.marked.clear();
        self.dropped.extend(self.out.dropped.drain(..));
    }

    fn arrive(&mut self, now_ns: u64, packet: Numbered<u64>) {
        let (qdisc, mut cx) = self.at(now_ns);
        let mut packet = packet;
        packet.meta.arrived = cx.now();
        qdisc.enqueue(packet, &mut cx);
        self.settle();
    }

    fn leave(&mut self, now_ns: u64) -> Next<u64> {
        self.at(now_ns);
        let next = loop {
            let Some(oldest) = self.leaving.front_mut() else {
                break self.qdisc.dequeue(&mut Cx::new(self.now, &mut self.out));
            };
            match oldest.dequeue(&mut Cx::new(self.now, &mut self.out)) {
                Next::Empty => drop(self.leaving.pop_front()),
                next => break next,
            }
        };
        self.settle();
        next
    }

    fn change(&mut self, now_ns: u64, text: &str) -> Result<(), String> {
        let mut old = std::mem::replace(&mut self.qdisc, built(text, &self.link)?);
        let (qdisc, mut cx) = self.at(now_ns);
        qdisc.take_over(&mut *old, &mut cx);
        self.settle();
        if old.backlog() != Backlog::ZERO {
            self.leaving.push_back(old);
        }
        Ok(())
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Box<dyn Qdisc<u64>>> {
        self.leaving.iter_mut().chain([&mut self.qdisc])
    }
}

/// Picoseconds of a nanosecond.
const PS: u64 = 1000;

/// Builds a discipline from its text.
fn built(text: &str, link: &LinkContext) -> Result<Box<dyn Qdisc<u64>>, String> {
    let spec: Spec = text.parse().map_err(|error| format!("{error}"))?;
    spec.build_numbered(link).map_err(|error| error.to_string())
}

/// The text behind a pointer.
///
/// # Safety
/// The pointer is null or points to a text that ends with a zero byte.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, String> {
    if text.is_null() {
        return Err("the text is a null pointer: write a discipline, for example \"fq_codel\"".to_owned());
    }
    // SAFETY: the caller promises a text that ends with a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| "the text is not UTF-8".to_owned())
}

/// Copies as much of a message as there is room for, and a zero byte.
///
/// # Safety
/// `message` is null or points to `size` bytes that may be written.
unsafe fn tell(why: &str, message: *mut c_char, size: usize) {
    if message.is_null() || size == 0 {
        return;
    }
    // A character of several bytes is not cut.
    let length = why.floor_char_boundary(size - 1);
    // SAFETY: the caller promises `size` bytes, and `length` is smaller.
    unsafe {
        std::ptr::copy_nonoverlapping(why.as_ptr().cast(), message, length);
        *message.add(length) = 0;
    }
}

/// Makes a queue with a discipline, such as "fq_codel limit 1000p", for a link.
///
/// `rate` is the rate of the link in bit/s, and `mtu` its largest IP length in bytes; 0 stands for 1,500.
/// Random decisions follow from `seed`. If the text is wrong, the result is null, and `message` has a
/// sentence of at most `size` bytes that says what to write instead; it may be null.
///
/// All times of a queue are nanoseconds since it was made, on any clock that does not go back, of at most 213
/// days.
///
/// # Safety
/// `discipline` is null or ends with a zero byte; `message` is null or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_make(
    discipline: *const c_char,
    rate: u64,
    mtu: u32,
    seed: u64,
    message: *mut c_char,
    size: usize,
) -> *mut Queue {
    let made = || {
        // SAFETY: as the caller promises.
        let text = unsafe { text(discipline) }?;
        if rate == 0 {
            return Err("the rate is 0: write the rate of the link in bit/s".to_owned());
        }
        let link = LinkContext::new(Rate::bit(rate), Streams::new(seed));
        let mtu = if mtu == 0 { link.mtu } else { Bytes(u64::from(mtu)) };
        Queue::new(text, LinkContext { mtu, ..link })
    };
    match made() {
        Ok(queue) => Box::into_raw(Box::new(queue)),
        Err(why) => {
            // SAFETY: as the caller promises.
            unsafe { tell(&why, message, size) };
            std::ptr::null_mut()
        }
    }
}

/// A packet arrives at `now`. The queue keeps it, or drops it or others: ask `giveway_dropped` next.
///
/// Returns 1, or 0 if a field of the packet is out of its range; then the packet is not in the queue.
///
/// # Safety
/// `queue` is null or a queue; `packet` is null or a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_arrive(queue: *mut Queue, now: u64, packet: *const Packet) -> c_int {
    // SAFETY: as the caller promises.
    let (Some(queue), Some(packet)) = (unsafe { queue.as_mut() }, unsafe { packet.as_ref() }) else {
        return 0;
    };
    let Some(packet) = packet.numbered() else { return 0 };
    queue.arrive(now, packet);
    1
}

/// The packet that leaves at `now`.
///
/// Returns 1, and writes the packet; its `ecn` is 3 if it was marked. Returns 0 if no packet is queued.
/// Returns 2 if the discipline holds its packets back, and writes to `again` when to ask again; an arrival
/// may change that time. Packets may be dropped meanwhile: ask `giveway_dropped` next.
///
/// # Safety
/// `queue` is null or a queue; `packet` and `again` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_leave(
    queue: *mut Queue,
    now: u64,
    packet: *mut Packet,
    again: *mut u64,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(queue) = (unsafe { queue.as_mut() }) else { return 0 };
    match queue.leave(now) {
        Next::Packet(leaving) => {
            // SAFETY: as the caller promises.
            if let Some(packet) = unsafe { packet.as_mut() } {
                *packet = Packet::of(&leaving);
            }
            1
        }
        Next::At(time) => {
            // SAFETY: as the caller promises.
            if let Some(again) = unsafe { again.as_mut() } {
                // Not before it: a discipline that is asked too early names the same time again.
                *again = time.as_ps().div_ceil(PS);
            }
            2
        }
        Next::Empty => 0,
    }
}

/// The next packet that the discipline dropped, in order. Ask after each call, until it returns 0: a packet
/// that is dropped is in the queue no longer.
///
/// Returns 1, and writes the packet, and to `reason` the reason of the drop: 0 overlimit, 1 pushout, 2 early,
/// 3 congested, 4 flow_limit, 5 too_large, 6 no_class, 7 policy, 8 reset.
///
/// # Safety
/// `queue` is null or a queue; `packet` and `reason` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_dropped(
    queue: *mut Queue,
    packet: *mut Packet,
    reason: *mut c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(queue) = (unsafe { queue.as_mut() }) else { return 0 };
    let Some((dropped, why)) = queue.dropped.pop_front() else { return 0 };
    // SAFETY: as the caller promises.
    if let Some(packet) = unsafe { packet.as_mut() } {
        *packet = Packet::of(&dropped);
    }
    // SAFETY: as the caller promises.
    if let Some(reason) = unsafe { reason.as_mut() } {
        *reason = why as c_int;
    }
    1
}

/// Replaces the discipline at `now`. Its packets stay, and leave before those that arrive from now on.
///
/// Returns 1, or 0 with a message as `giveway_make` has it; then the queue is as before.
///
/// # Safety
/// `queue` is null or a queue; `discipline` is null or ends with a zero byte; `message` is null or has room
/// for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_change(
    queue: *mut Queue,
    now: u64,
    discipline: *const c_char,
    message: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: as the caller promises.
    let Some(queue) = (unsafe { queue.as_mut() }) else { return 0 };
    // SAFETY: as the caller promises.
    match unsafe { text(discipline) }.and_then(|text| queue.change(now, text)) {
        Ok(()) => 1,
        Err(why) => {
            // SAFETY: as the caller promises.
            unsafe { tell(&why, message, size) };
            0
        }
    }
}

/// The link has this rate from `now` on, bit/s. A rate of 0 is ignored: a link that stands still keeps its
/// rate.
///
/// # Safety
/// `queue` is null or a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_rate(queue: *mut Queue, now: u64, rate: u64) {
    // SAFETY: as the caller promises.
    let Some(queue) = (unsafe { queue.as_mut() }) else { return };
    if rate == 0 {
        return;
    }
    queue.at(now);
    queue.link.rate = Rate::bit(rate);
    let (rate, now) = (queue.link.rate, queue.now);
    queue.all().for_each(|qdisc| qdisc.rate_changed(rate, now));
}

/// The packets and their bytes in the queue.
///
/// # Safety
/// `queue` is null or a queue; `packets` and `bytes` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_backlog(queue: *const Queue, packets: *mut u64, bytes: *mut u64) {
    // SAFETY: as the caller promises.
    let Some(queue) = (unsafe { queue.as_ref() }) else { return };
    let all = queue.leaving.iter().chain([&queue.qdisc]).map(|qdisc| qdisc.backlog());
    let (sum_packets, sum_bytes) = all.fold((0, 0), |sum, each| (sum.0 + each.packets, sum.1 + each.bytes));
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(packets) = packets.as_mut() {
            *packets = sum_packets;
        }
        if let Some(bytes) = bytes.as_mut() {
            *bytes = sum_bytes;
        }
    }
}

/// Calls `visit` with the name and the value of each internal quantity of the discipline, and with `context`.
///
/// # Safety
/// `queue` is null or a queue; `visit` may be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_gauges(
    queue: *const Queue,
    visit: Option<unsafe extern "C" fn(name: *const c_char, value: f64, context: *mut c_void)>,
    context: *mut c_void,
) {
    // SAFETY: as the caller promises.
    let (Some(queue), Some(visit)) = (unsafe { queue.as_ref() }, visit) else { return };
    let tell = |name: &str, value: f64| {
        let Ok(name) = CString::new(name) else { return };
        // SAFETY: as the caller promises.
        unsafe { visit(name.as_ptr(), value, context) };
    };
    queue.qdisc.gauges(&mut |name, value| tell(name, value));
    queue.qdisc.flow_table().named().into_iter().for_each(|(name, value)| tell(name, value));
}

/// Drops all packets, and returns to the initial state of the discipline. Ask `giveway_dropped` next.
///
/// # Safety
/// `queue` is null or a queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_reset(queue: *mut Queue, now: u64) {
    // SAFETY: as the caller promises.
    let Some(queue) = (unsafe { queue.as_mut() }) else { return };
    queue.at(now);
    for mut oldest in queue.leaving.drain(..) {
        oldest.reset(&mut Cx::new(queue.now, &mut queue.out));
    }
    queue.qdisc.reset(&mut Cx::new(queue.now, &mut queue.out));
    queue.settle();
}

/// Frees a queue. Its packets are the caller's.
///
/// # Safety
/// `queue` is null or a queue, which is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn giveway_free(queue: *mut Queue) {
    if !queue.is_null() {
        // SAFETY: it came from `giveway_make`, and the caller does not use it again.
        drop(unsafe { Box::from_raw(queue) });
    }
}
