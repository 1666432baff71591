//! The streams of one end, with flow control: RFC 9000, sections 2 to 4.
//!
//! # Principles
//! - Each stream is delivered in order for itself: a gap in one delays no other.
//! - Streams with data take turns, a packet each. One with lost data comes first: RFC 9000, section 13.3.
//! - The receiver takes data as soon as they are in order, and raises a limit when half of it is used.

use std::collections::VecDeque;

use super::sent::{Frame, FrameKind};
use super::spans::Spans;
use crate::tcp::Receiver;

/// The sending half of a stream.
#[derive(Debug, Default)]
pub(super) struct SendHalf {
    /// Bytes that the application has written.
    written: u64,
    /// The first byte that was never sent.
    next: u64,
    /// Bytes that are acknowledged.
    acked: Spans,
    /// Bytes that are lost and were not retransmitted.
    lost: Spans,
    /// Flow control: the first byte that must not be sent.
    limit: u64,
    closed: bool,
    end: End,
    /// It is in the list of streams with data to send.
    ready: bool,
}

/// The state of the end of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// Not sent yet, or lost.
    #[default]
    Due,
    Sent,
    Acked,
}

impl SendHalf {
    /// A half that no limit holds back: the messages of the handshake.
    pub fn without_limit() -> SendHalf {
        SendHalf { limit: u64::MAX, ..SendHalf::default() }
    }

    /// Adds data of the application.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// The offset of the next frame.
    pub fn position(&self) -> u64 {
        self.lost.first().map_or(self.next, |(from, _)| from)
    }

    /// Takes the next frame with at most `space` bytes, of which `fresh` may be new; `None` if there is none.
    pub fn take(&mut self, stream: u32, kind: FrameKind, space: u64, fresh: u64) -> Option<Frame> {
        // RFC 9000, section 13.3: lost data comes before new data. Flow control has counted it already, so
        // `fresh` does not limit it.
        let (offset, len) = match self.lost.first() {
            Some((from, to)) => (from, (to - from).min(space)),
            None => (self.next, self.unsent().min(space).min(fresh)),
        };
        let last = self.closed && self.end == End::Due && offset + len == self.written;
        if len == 0 && !last {
            return None;
        }
        self.lost.remove(offset, offset + len);
        self.next = self.next.max(offset + len);
        if last {
            self.end = End::Sent;
        }
        let kind = if last { FrameKind::Last } else { kind };
        Some(Frame { offset, stream, len: len as u32, kind })
    }

    /// New bytes that the limit of the stream allows.
    fn unsent(&self) -> u64 {
        self.written.min(self.limit) - self.next.min(self.limit)
    }

    /// True if something can be sent; `fresh` new bytes are allowed.
    pub fn can_send(&self, fresh: u64) -> bool {
        !self.lost.is_empty()
            || self.unsent().min(fresh) > 0
            || (self.closed && self.end == End::Due && self.next == self.written)
    }

    /// A frame has arrived at the other end.
    pub fn on_ack(&mut self, frame: &Frame) {
        let end = frame.offset + u64::from(frame.len);
        self.acked.insert(frame.offset, end);
        if !self.lost.is_empty() {
            self.lost.remove(frame.offset, end);
        }
        if frame.kind == FrameKind::Last {
            self.end = End::Acked;
        }
    }

    /// A frame counts as lost. What is acknowledged meanwhile is not retransmitted.
    pub fn on_loss(&mut self, frame: &Frame) {
        let end = frame.offset + u64::from(frame.len);
        self.lost.insert(frame.offset, end);
        for (from, to) in self.acked.list() {
            if *from < end && frame.offset < *to {
                self.lost.remove(*from, *to);
            }
        }
        if frame.kind == FrameKind::Last && self.end == End::Sent {
            self.end = End::Due;
        }
    }

    /// Bytes that are acknowledged, without a gap.
    fn acked_bytes(&self) -> u64 {
        self.acked.first().filter(|(from, _)| *from == 0).map_or(0, |(_, to)| to)
    }

    /// True if all that was written is acknowledged, and the end if it is closed.
    fn is_settled(&self) -> bool {
        self.acked_bytes() == self.written && (!self.closed || self.end == End::Acked)
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct ReceiveHalf {
    /// Its numbers are the bytes, from 1 on.
    data: Receiver,
    /// Flow control: the limit that the other end knows, or will know.
    granted: u64,
    /// Bytes that had arrived when the measurement interval started and ended.
    before: u64,
    after: u64,
}

impl ReceiveHalf {
    pub fn new(granted: u64) -> ReceiveHalf {
        ReceiveHalf { data: Receiver::new(1), granted, before: 0, after: u64::MAX }
    }

    /// Adds the bytes of a frame. Returns the number of bytes that are now available in order.
    pub fn on_arrival(&mut self, frame: &Frame) -> u64 {
        let last = frame.kind == FrameKind::Last;
        let len = u64::from(frame.len) + u64::from(last);
        let before = self.data.delivered();
        self.data.on_arrival(frame.offset + 1, len, last);
        self.data.delivered() - before
    }

    pub fn delivered(&self) -> u64 {
        self.data.delivered()
    }
}

/// One stream at one end.
#[derive(Debug)]
struct Stream {
    send: SendHalf,
    receive: ReceiveHalf,
}

/// Flow control of a connection at one end, bytes of all streams.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Sent for the first time, and the limit for it.
    sent: u64,
    limit: u64,
    /// Taken by the application, and the limit that the other end knows.
    taken: u64,
    granted: u64,
}

/// The limits of a receiver, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    pub connection: u64,
    pub stream: u64,
}

/// The streams of one end.
#[derive(Debug)]
pub(super) struct Streams {
    list: VecDeque<Stream>,
    /// Number of the first stream in the list; those before are over.
    first: u32,
    /// Streams with data to send, in the order of their turns.
    ready: VecDeque<u32>,
    /// Streams whose new limit is to be sent.
    raised: VecDeque<u32>,
    /// The new limit of the connection is to be sent.
    raises: bool,
    flow: Flow,
    windows: Windows,
    /// Bytes written, and acknowledged for the first time, of all streams.
    written: u64,
    /// Bytes of a new stream that count as arrived when the measurement interval starts and ends: an upper
    /// bound until then.
    counted: (u64, u64),
}

impl Streams {
    /// No stream is open. `counted` are the bytes of a new stream that count as arrived when the measurement
    /// interval starts and ends.
    pub fn new(windows: Windows, counted: (u64, u64)) -> Streams {
        let Windows { connection, .. } = windows;
        Streams {
            list: VecDeque::new(),
            first: 0,
            ready: VecDeque::new(),
            raised: VecDeque::new(),
            raises: false,
            flow: Flow { sent: 0, limit: connection, taken: 0, granted: connection },
            windows,
            written: 0,
            counted,
        }
    }

    /// The stream with this number, which is opened if it is new; `None` if it is over.
    fn get(&mut self, stream: u32) -> Option<&mut Stream> {
        let place = stream.checked_sub(self.first)? as usize;
        while self.list.len() <= place {
            let send = SendHalf { limit: self.windows.stream, ..SendHalf::default() };
            let (before, after) = self.counted;
            let receive = ReceiveHalf { before, after, ..ReceiveHalf::new(self.windows.stream) };
            self.list.push_back(Stream { send, receive });
        }
        Some(&mut self.list[place])
    }

    fn peek(&self, stream: u32) -> Option<&Stream> {
        self.list.get(stream.checked_sub(self.first)? as usize)
    }

    /// Adds a stream to those with data to send, as the next one if it is `urgent`.
    fn make_ready(&mut self, stream: u32, urgent: bool) {
        let Some(this) = self.get(stream) else { return };
        if std::mem::replace(&mut this.send.ready, true) {
            return;
        }
        if urgent { self.ready.push_front(stream) } else { self.ready.push_back(stream) }
    }

    // -- sending ------------------------------------------------------------------------------------

    /// Adds data of the application, and the end of the stream if it `closes`.
    pub fn write(&mut self, stream: u32, bytes: u64, closes: bool) {
        let Some(this) = self.get(stream) else { return };
        this.send.write(bytes);
        this.send.closed |= closes;
        self.written = self.written.saturating_add(bytes);
        self.make_ready(stream, false);
    }

    /// True if there is a frame to send.
    #[inline]
    pub fn has_frames(&mut self) -> bool {
        self.raises || !self.raised.is_empty() || self.has_data()
    }

    /// True if a stream has data to send, or its end.
    #[inline]
    pub fn has_data(&mut self) -> bool {
        let fresh = self.flow.limit - self.flow.sent;
        while let Some(stream) = self.ready.front().copied() {
            let this = self.get(stream).map(|this| &mut this.send);
            match this {
                Some(send) if send.can_send(fresh) => return true,
                Some(send) => send.ready = false,
                None => {}
            }
            self.ready.pop_front();
        }
        false
    }

    /// The number of the stream whose turn it is, and the offset of its next frame.
    #[inline]
    pub fn turn(&self) -> Option<(u32, u64)> {
        let stream = self.ready.front().copied()?;
        Some((stream, self.peek(stream)?.send.position()))
    }

    /// Takes the next frame with data, of at most `space` bytes, from the stream whose turn it is. `true` if
    /// its bytes were sent before.
    #[inline]
    pub fn take(&mut self, space: u64) -> Option<(Frame, bool)> {
        let stream = self.ready.pop_front()?;
        let fresh = self.flow.limit - self.flow.sent;
        let send = &mut self.get(stream)?.send;
        send.ready = false;
        let before = send.next;
        let frame = send.take(stream, FrameKind::Data, space, fresh)?;
        let (new, again) = (send.next - before, send.next == before && frame.len > 0);
        let more = send.can_send(fresh - new);
        self.flow.sent += new;
        if more {
            self.make_ready(stream, again);
        }
        Some((frame, again))
    }

    /// Takes a raised limit.
    pub fn take_limit(&mut self) -> Option<Frame> {
        if std::mem::take(&mut self.raises) {
            return Some(Frame { offset: self.flow.granted, stream: 0, len: 0, kind: FrameKind::Limit });
        }
        let stream = self.raised.pop_front()?;
        let granted = self.peek(stream)?.receive.granted;
        Some(Frame { offset: granted, stream, len: 0, kind: FrameKind::StreamLimit })
    }

    /// A frame has arrived at the other end.
    pub fn on_ack(&mut self, frame: &Frame) {
        if matches!(frame.kind, FrameKind::Data | FrameKind::Last)
            && let Some(this) = self.get(frame.stream)
        {
            this.send.on_ack(frame);
        }
    }

    /// A frame is lost.
    pub fn on_loss(&mut self, frame: &Frame) {
        match frame.kind {
            FrameKind::Data | FrameKind::Last => {
                if let Some(this) = self.get(frame.stream) {
                    this.send.on_loss(frame);
                    self.make_ready(frame.stream, true);
                }
            }
            // The current limit is sent in its place.
            FrameKind::Limit => self.raises = true,
            FrameKind::StreamLimit => self.raised.push_back(frame.stream),
            FrameKind::Crypto => {}
        }
    }

    /// Bytes that the application has written and that were never sent.
    pub fn unsent(&self) -> u64 {
        self.written - self.flow.sent
    }
    /// Bytes sent for the first time.
    pub fn sent(&self) -> u64 {
        self.flow.sent
    }
    /// True if all that was written is acknowledged.
    pub fn is_settled(&self) -> bool {
        self.list.iter().all(|stream| stream.send.is_settled())
    }
    /// Bytes acknowledged without a gap, of the streams that are not over.
    pub fn acked_bytes(&self) -> u64 {
        self.list.iter().map(|stream| stream.send.acked_bytes()).sum()
    }

    // -- receiving ----------------------------------------------------------------------------------

    /// A frame has arrived. Returns true if its stream has more data in order, or has ended.
    #[inline]
    pub fn on_arrival(&mut self, frame: &Frame) -> bool {
        match frame.kind {
            FrameKind::Data | FrameKind::Last => self.data(frame),
            FrameKind::Limit => {
                if frame.offset > self.flow.limit {
                    self.flow.limit = frame.offset;
                    for stream in self.first..self.first + self.list.len() as u32 {
                        self.make_ready(stream, false);
                    }
                }
                false
            }
            FrameKind::StreamLimit => {
                if let Some(this) = self.get(frame.stream) {
                    // RFC 9000, section 4.1: a limit that is not larger is late, and is ignored.
                    this.send.limit = this.send.limit.max(frame.offset);
                    self.make_ready(frame.stream, false);
                }
                false
            }
            FrameKind::Crypto => false,
        }
    }

    #[inline]
    fn data(&mut self, frame: &Frame) -> bool {
        let Windows { connection, stream: window } = self.windows;
        let Some(this) = self.get(frame.stream) else { return false };
        let receive = &mut this.receive;
        let was_finished = receive.data.finished();
        let new = receive.on_arrival(frame);
        let is_finished = receive.data.finished();
        // A stream whose end has arrived needs no more credit.
        let raises = receive.granted - receive.delivered() <= window / 2 && !is_finished;
        if raises {
            receive.granted = receive.delivered() + window;
        }
        self.flow.taken += new;
        // A limit that waits to leave is read when it does, so that one frame is enough.
        if raises && !self.raised.contains(&frame.stream) {
            self.raised.push_back(frame.stream);
        }
        if self.flow.granted - self.flow.taken <= connection / 2 {
            self.flow.granted = self.flow.taken + connection;
            self.raises = true;
        }
        new > 0 || is_finished != was_finished
    }

    /// Bytes of a stream that are available in order.
    pub fn delivered(&self, stream: u32) -> u64 {
        self.peek(stream).map_or(0, |this| this.receive.delivered())
    }

    // -- measurement --------------------------------------------------------------------------------

    /// The measurement interval starts, or ends.
    pub fn measuring(&mut self, begins: bool) {
        for stream in &mut self.list {
            let arrived = stream.receive.data.arrived_bytes();
            if begins { stream.receive.before = arrived } else { stream.receive.after = arrived }
        }
        // Of a stream that opens from now on.
        if begins { self.counted.0 = 0 } else { self.counted.1 = 0 }
    }

    /// Bytes of a part of a stream that arrived within the interval: as for TCP.
    pub fn measured(&self, stream: u32, from: u64, to: u64) -> u64 {
        let Some(this) = self.peek(stream) else { return 0 };
        let ReceiveHalf { data, before, after, .. } = &this.receive;
        data.arrived_bytes().min(*after).min(to).saturating_sub(from.max(*before))
    }

    /// Forgets the first streams if they are over, and frees memory. Nothing of the connection is in the
    /// network.
    pub fn rest(&mut self) {
        while let Some(stream) = self.list.front()
            && stream.send.closed
            && stream.send.is_settled()
            && stream.receive.data.finished()
        {
            self.list.pop_front();
            self.first += 1;
        }
        for stream in &mut self.list {
            stream.receive.data.rest();
            stream.send.lost.rest();
        }
    }

    /// Heap memory, bytes.
    pub fn heap_bytes(&self) -> usize {
        let each = |stream: &Stream| {
            stream.send.acked.heap_bytes() + stream.send.lost.heap_bytes() + stream.receive.data.heap_bytes()
        };
        self.list.capacity() * size_of::<Stream>()
            + (self.ready.capacity() + self.raised.capacity()) * size_of::<u32>()
            + self.list.iter().map(each).sum::<usize>()
    }
}
