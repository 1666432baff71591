//! The messages between a judge and the process of a candidate.
//!
//! A message is its length in four bytes and a body; numbers are little-endian. The judge asks, and the
//! process answers each question once. Before the first question it says whether it is ready.

use std::io::{self, Read, Write};

use giveway_qdisc::{DropReason, Ecn, FlowKey, Header, Meta, Rate, Time};
use serde::{Deserialize, Serialize};

use crate::rejected::Code;

/// The longest body. A queue of a million packets may be dropped in one call.
const LONGEST: u32 = 16 << 20;

/// A question of the judge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question {
    /// A queue for a link: its rate, its MTU, and a word for its random numbers. Queues are counted from 0.
    New {
        /// bit/s
        rate: Rate,
        /// Bytes.
        mtu: u64,
        /// The word.
        seed: u64,
    },
    /// A packet arrives at a queue.
    Enqueue {
        /// The queue.
        queue: u16,
        /// The time of the call.
        now: Time,
        /// The number of the packet.
        number: u64,
        /// Its metadata, without label and next hops.
        meta: Meta,
    },
    /// A packet may leave a queue.
    Dequeue {
        /// The queue.
        queue: u16,
        /// The time of the call.
        now: Time,
    },
    /// The link of a queue has another rate.
    Rate {
        /// The queue.
        queue: u16,
        /// The time of the call.
        now: Time,
        /// The rate.
        rate: Rate,
    },
}

/// An answer of the process.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The effects of a call.
    Done(Effects),
    /// The candidate made a mistake.
    Failed(Mistake),
}

/// The effects of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// The packets that it drops, by number.
    pub drops: Vec<(u64, DropReason)>,
    /// The packets that it marks.
    pub marks: Vec<u64>,
    /// The packet that leaves.
    pub leaves: Leaves,
}

/// The packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// None is queued.
    None,
    /// No packet may leave before this time.
    At(Time),
    /// The packet of this number.
    Packet(u64),
}

/// The first answer of a process that could not give its files and its network up.
pub const UNCONFINED: Leaves = Leaves::At(Time::ZERO);

/// A mistake of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mistake {
    /// Its kind.
    pub code: Code,
    /// A sentence about it.
    pub sentence: String,
}

impl Mistake {
    /// The message about it.
    pub fn message(self) -> Vec<u8> {
        let (mut message, mut buffer) = (Vec::new(), Vec::new());
        // A vector takes everything.
        let _ = send(&mut message, &mut buffer, |body| Answer::Failed(self).write(body));
        message
    }
}

/// Sends the body that `write` adds. `buffer` is reused.
///
/// # Errors
/// If the other end is gone.
pub fn send(to: &mut impl Write, buffer: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
    buffer.clear();
    buffer.extend([0; 4]);
    write(buffer);
    let length = (buffer.len() - 4) as u32;
    buffer[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(buffer)
}

/// Receives a body into `buffer`. Returns false if the other end is gone.
///
/// # Errors
/// If no answer arrives in time, or the body is too long.
pub fn receive(from: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        other => other?,
    }
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    buffer.clear();
    // A false length must not take memory before the bytes arrive.
    let read = from.take(u64::from(length)).read_to_end(buffer)?;
    Ok(read as u32 == length)
}

/// Reads numbers from the front of a body. `None` at its end.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Option<Time> {
        self.u64().map(Time::from_ps)
    }
}

const ECN: [Ecn; 4] = [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Marked];

impl Question {
    /// Writes it.
    pub fn write(&self, body: &mut Vec<u8>) {
        match self {
            Question::New { rate, mtu, seed } => {
                body.push(0);
                body.extend(rate.as_bit().to_le_bytes());
                body.extend(mtu.to_le_bytes());
                body.extend(seed.to_le_bytes());
            }
            Question::Enqueue { queue, now, number, meta } => {
                body.push(1);
                body.extend(queue.to_le_bytes());
                body.extend(now.as_ps().to_le_bytes());
                body.extend(number.to_le_bytes());
                body.extend(meta.bytes.to_le_bytes());
                body.extend(meta.class.to_le_bytes());
                body.push(ECN.iter().position(|ecn| *ecn == meta.ecn).unwrap_or_default() as u8);
                body.push(meta.header.byte());
                body.extend(meta.flow.0.to_le_bytes());
                body.extend(meta.from.to_le_bytes());
                body.extend(meta.to.to_le_bytes());
                body.extend(meta.arrived.as_ps().to_le_bytes());
                body.extend(meta.offset.to_le_bytes());
                body.extend(meta.remaining.to_le_bytes());
                body.extend(meta.reserved.as_bit().to_le_bytes());
            }
            Question::Dequeue { queue, now } => {
                body.push(2);
                body.extend(queue.to_le_bytes());
                body.extend(now.as_ps().to_le_bytes());
            }
            Question::Rate { queue, now, rate } => {
                body.push(3);
                body.extend(queue.to_le_bytes());
                body.extend(now.as_ps().to_le_bytes());
                body.extend(rate.as_bit().to_le_bytes());
            }
        }
    }

    /// Reads it. `None` for anything else.
    pub fn read(body: &[u8]) -> Option<Question> {
        let mut body = Body(body);
        Some(match body.u8()? {
            0 => Question::New { rate: Rate::bit(body.u64()?), mtu: body.u64()?, seed: body.u64()? },
            1 => Question::Enqueue {
                queue: body.u16()?,
                now: body.time()?,
                number: body.u64()?,
                meta: Meta {
                    bytes: body.u32()?,
                    class: body.u16()?,
                    ecn: ECN[usize::from(body.u8()?) % ECN.len()],
                    header: Header::from_byte(body.u8()?),
                    flow: FlowKey(body.u64()?),
                    from: body.u16()?,
                    to: body.u16()?,
                    arrived: body.time()?,
                    offset: body.u32()?,
                    remaining: body.u32()?,
                    reserved: Rate::bit(body.u64()?),
                    ..Meta::default()
                },
            },
            2 => Question::Dequeue { queue: body.u16()?, now: body.time()? },
            3 => Question::Rate { queue: body.u16()?, now: body.time()?, rate: Rate::bit(body.u64()?) },
            _ => return None,
        })
    }
}

impl Answer {
    /// Writes it.
    pub fn write(&self, body: &mut Vec<u8>) {
        match self {
            Answer::Done(Effects { drops, marks, leaves }) => {
                body.push(0);
                let (kind, word) = match leaves {
                    Leaves::None => (0, 0),
                    Leaves::At(time) => (1, time.as_ps()),
                    Leaves::Packet(number) => (2, *number),
                };
                body.push(kind);
                body.extend(word.to_le_bytes());
                body.extend((drops.len() as u32).to_le_bytes());
                for (number, why) in drops {
                    body.extend(number.to_le_bytes());
                    body.push(*why as u8);
                }
                for number in marks {
                    body.extend(number.to_le_bytes());
                }
            }
            Answer::Failed(mistake) => {
                body.push(1);
                // A mistake is a code and a text, which always have a form in JSON.
                body.extend(serde_json::to_vec(mistake).unwrap_or_default());
            }
        }
    }

    /// Reads it. `None` for anything else.
    pub fn read(body: &[u8]) -> Option<Answer> {
        let mut body = Body(body);
        if body.u8()? == 1 {
            return serde_json::from_slice(body.0).ok().map(Answer::Failed);
        }
        let (kind, word) = (body.u8()?, body.u64()?);
        let leaves = match kind {
            0 => Leaves::None,
            1 => Leaves::At(Time::from_ps(word)),
            _ => Leaves::Packet(word),
        };
        let count = body.u32()?;
        let mut drops = Vec::new();
        for _ in 0..count {
            drops.push((body.u64()?, *DropReason::ALL.get(usize::from(body.u8()?))?));
        }
        let mut marks = Vec::new();
        while !body.0.is_empty() {
            marks.push(body.u64()?);
        }
        Some(Answer::Done(Effects { drops, marks, leaves }))
    }
}
