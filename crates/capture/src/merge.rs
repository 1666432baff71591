//! Several captures as one, in the order of time.
//!
//! Rotated files follow each other; files of two interfaces overlap. A file is opened when its first packet
//! is due, so that hundreds of rotated files need no more memory than those that overlap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use giveway_qdisc::hash::SipHasher;

use crate::error::CaptureError;
use crate::file::{Frame, Frames};
use crate::link;
use crate::reader::Packet;

/// Opens a file of a merge. It is called twice: for the time of the first packet, and for all packets.
pub type Open = Box<dyn Fn() -> Result<Frames, CaptureError> + Send>;

/// A capture to merge with others.
pub enum MergeInput {
    /// A file.
    File(Open),
    /// A stream, which can be read once.
    Stream(Box<Frames>),
}

/// The packets of several captures in the order of time. The order within each capture is kept.
pub struct Merged {
    parts: Vec<State>,
    /// The next packet of each part: its time, and the number of the part.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    /// The part of the current packet.
    current: Option<usize>,
    /// The times of the first packet and of the last one so far, of each part.
    spans: Vec<(u64, u64)>,
    twins: Twins,
    errors: Vec<(usize, CaptureError)>,
}

enum State {
    Waiting(Open),
    Open(Box<Frames>),
    Over,
}

impl Merged {
    /// Merges captures. The first packet of each is read here.
    ///
    /// # Errors
    /// If a part is not a capture: its number and the error.
    pub fn new(parts: Vec<MergeInput>) -> Result<Merged, (usize, CaptureError)> {
        let mut merged = Merged {
            parts: Vec::new(),
            due: BinaryHeap::new(),
            current: None,
            spans: Vec::new(),
            twins: Twins::default(),
            errors: Vec::new(),
        };
        let alone = parts.len() == 1;
        for (number, part) in parts.into_iter().enumerate() {
            let (mut frames, file) = match part {
                MergeInput::File(open) => (Box::new(open().map_err(|error| (number, error))?), Some(open)),
                MergeInput::Stream(frames) => (frames, None),
            };
            let is_begun = merged.begin(number, &mut frames);
            merged.parts.push(match file {
                _ if !is_begun => State::Over,
                Some(open) if !alone => State::Waiting(open),
                _ => State::Open(frames),
            });
        }
        Ok(merged)
    }

    /// The next packet and its frame, or none at the end. A packet that is in two captures at once is
    /// returned once.
    pub fn next_packet(&mut self) -> Option<(Packet, Frame<'_>)> {
        let number = loop {
            if let Some(last) = self.current.take() {
                self.advance(last);
            }
            let Reverse((_, number)) = self.due.pop()?;
            if !self.enter(number) {
                continue;
            }
            self.current = Some(number);
            let State::Open(frames) = &self.parts[number] else { unreachable!("a due part is open") };
            let frame = frames.current().expect("a due part has a packet");
            self.spans[number].1 = self.spans[number].1.max(frame.time);
            if self.parts.len() == 1 {
                break number;
            }
            // Equal packets of captures that follow each other are two packets.
            let first = self.spans[number].0;
            let overlaps =
                |other: usize| matches!(self.parts[other], State::Open(_)) || self.spans[other].1 >= first;
            if !self.twins.is_second(number, &frame, overlaps) {
                break number;
            }
        };
        let State::Open(frames) = &self.parts[number] else { unreachable!("the part was found above") };
        let frame = frames.current().expect("the packet was found above");
        Some((Packet::of(&frame), frame))
    }

    /// Parts that ended early: their numbers, and the damage.
    pub fn errors(&self) -> &[(usize, CaptureError)] {
        &self.errors
    }

    /// Number of packets that were in two captures at once, and were left out the second time.
    pub fn doubled(&self) -> u64 {
        self.twins.count
    }

    /// Moves to the first packet of a part.
    fn begin(&mut self, number: usize, frames: &mut Frames) -> bool {
        match frames.next().map(|frame| frame.map(|frame| frame.time)) {
            Ok(Some(time)) => {
                self.due.push(Reverse((time, number)));
                self.spans.push((time, time));
                return true;
            }
            Ok(None) => {}
            Err(error) => self.errors.push((number, error)),
        }
        self.spans.push((0, 0));
        false
    }

    /// Opens a part whose first packet is due. Returns false if that is no longer possible.
    fn enter(&mut self, number: usize) -> bool {
        let State::Waiting(open) = &self.parts[number] else { return true };
        let opened = open().and_then(|mut frames| Ok(frames.next()?.is_some().then_some(frames)));
        match opened {
            Ok(Some(frames)) => {
                self.parts[number] = State::Open(Box::new(frames));
                return true;
            }
            Ok(None) => {}
            Err(error) => self.errors.push((number, error)),
        }
        self.parts[number] = State::Over;
        false
    }

    /// Moves a part to its next packet, or closes it.
    fn advance(&mut self, number: usize) {
        let State::Open(frames) = &mut self.parts[number] else { return };
        match frames.next().map(|frame| frame.map(|frame| frame.time)) {
            Ok(Some(time)) => return self.due.push(Reverse((time, number))),
            Ok(None) => {}
            Err(error) => self.errors.push((number, error)),
        }
        self.parts[number] = State::Over;
    }
}

impl std::fmt::Debug for Merged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merged").field("parts", &self.parts.len()).field("spans", &self.spans).finish()
    }
}

/// Recent packets, to find those that another capture has as well.
#[derive(Default)]
struct Twins {
    /// Empty until captures overlap or follow each other.
    slots: Vec<Slot>,
    count: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    print: u64,
    time: u64,
    /// The first part that had the packet.
    part: u32,
    /// A bit for each part that has had it; parts whose numbers differ by 64 share one.
    parts: u64,
}

/// Number of packets that are remembered.
const SLOTS: usize = 1 << 14;
/// Longest time between two captures of the same packet, ns: a router holds it back for so long.
const APART: u64 = 1_000_000_000;
/// Bytes of a packet that are compared.
const COMPARED: usize = 64;

const HASHER: SipHasher = SipHasher::new(0x6d65_7267_6564_2121, 0x7477_696e_7061_636b);

impl Twins {
    /// True if another part has had the same packet, and this one has not. `overlaps` is true for parts that
    /// have packets of the same time as this one.
    fn is_second(&mut self, part: usize, frame: &Frame<'_>, overlaps: impl Fn(usize) -> bool) -> bool {
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, Slot::default());
        }
        let print = fingerprint(frame);
        let bit = 1 << (part % 64);
        let slot = &mut self.slots[print as usize % SLOTS];
        let known = slot.print == print && frame.time.abs_diff(slot.time) <= APART;
        if known && slot.parts & bit == 0 && overlaps(slot.part as usize) {
            slot.parts |= bit;
            self.count += 1;
            return true;
        }
        // A packet that this part has had already was sent twice.
        *slot = Slot { print, time: frame.time, part: part as u32, parts: bit };
        false
    }
}

/// A hash of a packet without what a router changes: the link header, the hop limit and the checksum.
fn fingerprint(frame: &Frame<'_>) -> u64 {
    let (above, _) = link::strip(frame.link, frame.data, frame.wire_bytes);
    let data = above.unwrap_or(frame.data);
    let mut bytes = [0; COMPARED];
    let length = data.len().min(COMPARED);
    bytes[..length].copy_from_slice(&data[..length]);
    if above.is_some() {
        match bytes[0] >> 4 {
            4 => (bytes[8], bytes[10], bytes[11]) = (0, 0, 0),
            _ => bytes[7] = 0,
        }
    }
    HASHER.hash(&bytes)
}
