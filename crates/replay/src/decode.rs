//! Reads traces, operation by operation, whatever is in the file: a mistake is told with its place.

use std::collections::BTreeMap;
use std::io::{self, Read};

use giveway_qdisc::{
    Bytes, Downstream, DropReason, Ecn, FlowKey, Label, LinkContext, Meta, NextHops, Rate, Streams, Time,
};

use crate::format::{
    AT, Answer, BUILD, Before, Build, Call, Close, DROPPED, ECN_SHIFT, END, ENQUEUE, FILE_END, HEAD,
    LABELLED, LONGEST, MAGIC, MARKED, Mark, NO_PACKET, OPERATIONS, Operation, PACKET, RESET, Totals, VERSION,
    head, unsigned,
};

/// Why a trace cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It begins like something else.
    #[error("is no trace of operations: it does not begin as one")]
    NotATrace,
    /// It is of another version of the format.
    #[error("is a trace of version {0}, and only version {VERSION} is known here")]
    Version(u16),
    /// The system could not read on.
    #[error("cannot be read beyond byte {offset}: {error}")]
    Read {
        /// Where.
        offset: u64,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// It makes no sense.
    #[error("is damaged at byte {offset}: {what}")]
    Damaged {
        /// Where the chunk or the operation begins that makes no sense.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// What is next in a trace.
#[derive(Debug)]
pub enum Item<'a> {
    /// A discipline was built.
    Begin {
        /// Number of the section that begins.
        section: u32,
        /// How.
        build: Build,
    },
    /// It was called.
    Operation {
        /// Number of the section.
        section: u32,
        /// The call, and what came of it.
        operation: &'a Operation,
    },
    /// Its part of the trace ends.
    End {
        /// Number of the section.
        section: u32,
        /// Why.
        close: Close,
        /// What the section has: checked.
        totals: Totals,
    },
}

/// Reads a trace. It holds a chunk at a time, however long the trace is. What it reads from should be buffered.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: R,
    program: String,
    /// Bytes read.
    offset: u64,
    /// The sections that have begun and not ended.
    sections: BTreeMap<u32, State>,
    /// The least number that a section may have.
    next: u64,
    chunk: Chunk,
    operation: Operation,
    end: Option<Ending>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    before: Before,
    totals: Totals,
}

/// Operations that were read and not told yet.
#[derive(Debug, Default)]
struct Chunk {
    section: u32,
    content: Vec<u8>,
    at: usize,
    /// Where the content begins in the file.
    offset: u64,
    /// The file ends in it.
    cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Whole,
    Cut,
    Failed,
}

impl<R: Read> Reader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// When it is no trace, or one of another version.
    pub fn new(mut input: R) -> Result<Reader<R>, TraceError> {
        let mut offset = 0;
        let mut front = [0; MAGIC.len() + 2];
        if fill(&mut input, &mut front, &mut offset)? < front.len() || front[..MAGIC.len()] != MAGIC {
            return Err(TraceError::NotATrace);
        }
        let version = u16::from_le_bytes([front[MAGIC.len()], front[MAGIC.len() + 1]]);
        if version != VERSION {
            return Err(TraceError::Version(version));
        }
        let program = program(&mut input, &mut offset)?;
        Ok(Reader {
            input,
            program,
            offset,
            sections: BTreeMap::new(),
            next: 0,
            chunk: Chunk::default(),
            operation: Operation {
                now: Time::ZERO,
                call: Call::Reset,
                dropped: Vec::new(),
                marked: Vec::new(),
            },
            end: None,
        })
    }

    /// The program that wrote it.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Whether the trace was read to its end mark. False for one that was cut off.
    pub fn whole(&self) -> bool {
        self.end == Some(Ending::Whole)
    }

    /// What is next; nothing at the end, and after an error.
    ///
    /// # Errors
    /// When it cannot be read on, or makes no sense.
    #[allow(clippy::should_implement_trait)] // an item borrows from the reader
    pub fn next(&mut self) -> Result<Option<Item<'_>>, TraceError> {
        if self.end.is_some() {
            return Ok(None);
        }
        match self.step() {
            Ok(Some(Step::Operation(section))) => {
                Ok(Some(Item::Operation { section, operation: &self.operation }))
            }
            Ok(Some(Step::Begin(section, build))) => Ok(Some(Item::Begin { section, build: *build })),
            Ok(Some(Step::End(section, close, totals))) => Ok(Some(Item::End { section, close, totals })),
            Ok(None) => Ok(None),
            Err(error) => {
                self.end = Some(Ending::Failed);
                Err(error)
            }
        }
    }

    fn step(&mut self) -> Result<Option<Step>, TraceError> {
        loop {
            if self.chunk.at < self.chunk.content.len() {
                return self.operation();
            }
            if self.chunk.cut {
                self.end = Some(Ending::Cut);
                return Ok(None);
            }
            let begins = self.offset;
            let mut front = [0; HEAD];
            if fill(&mut self.input, &mut front, &mut self.offset)? < HEAD {
                self.end = Some(Ending::Cut);
                return Ok(None);
            }
            let damaged = |what: &str| TraceError::Damaged { offset: begins, what: what.to_owned() };
            let [kind, s0, s1, s2, s3, l0, l1, l2, l3, ..] = front;
            let section = u32::from_le_bytes([s0, s1, s2, s3]);
            let length = u32::from_le_bytes([l0, l1, l2, l3]);
            if length > LONGEST {
                return Err(damaged("a chunk is longer than any may be"));
            }
            let chunk = &mut self.chunk;
            (chunk.section, chunk.at, chunk.offset) = (section, 0, self.offset);
            chunk.content.clear();
            let read = self.input.by_ref().take(length.into()).read_to_end(&mut chunk.content);
            self.offset += chunk.content.len() as u64;
            read.map_err(|error| TraceError::Read { offset: self.offset, error })?;
            chunk.cut = chunk.content.len() < length as usize;
            if chunk.cut && kind != OPERATIONS {
                self.end = Some(Ending::Cut);
                return Ok(None);
            }
            if !chunk.cut && head(kind, section, length, &chunk.content) != front {
                return Err(damaged("the check of a chunk is wrong"));
            }
            if kind == OPERATIONS {
                if !self.sections.contains_key(&section) {
                    return Err(damaged("operations of a section that did not begin"));
                }
                continue;
            }
            // What is not operations is told at once.
            let content = std::mem::take(&mut chunk.content);
            let step = self.other(kind, section, &content).map_err(|wrong| damaged(wrong.said()))?;
            self.chunk.content = content;
            self.chunk.content.clear();
            if step.is_none() {
                let mut after = [0];
                if fill(&mut self.input, &mut after, &mut self.offset)? > 0 {
                    return Err(damaged("something follows the end of the trace"));
                }
                self.end = Some(Ending::Whole);
            }
            return Ok(step);
        }
    }

    /// A build or an end; nothing for the end of the file.
    fn other(&mut self, kind: u8, section: u32, content: &[u8]) -> Result<Option<Step>, Wrong> {
        let mut cursor = Cursor { bytes: content, at: 0 };
        let step = match kind {
            BUILD => {
                if u64::from(section) < self.next {
                    return Err(Wrong::Nonsense("a section begins twice"));
                }
                self.next = u64::from(section) + 1;
                let build = cursor.build()?;
                self.sections.insert(section, State::default());
                Some(Step::Begin(section, Box::new(build)))
            }
            END => {
                let Some(State { totals, .. }) = self.sections.remove(&section) else {
                    return Err(Wrong::Nonsense("the end of a section that did not begin"));
                };
                let close = Close::ALL.get(usize::from(cursor.byte()?));
                let close = *close.ok_or(Wrong::Nonsense("a section ends in an unknown way"))?;
                let said = Totals {
                    operations: cursor.varint()?,
                    arrived: cursor.varint()?,
                    sent: cursor.varint()?,
                    dropped: cursor.varint()?,
                    marked: cursor.varint()?,
                };
                if said != totals {
                    return Err(Wrong::Nonsense(
                        "a section says that it has more or less than what is there",
                    ));
                }
                Some(Step::End(section, close, totals))
            }
            FILE_END if section == 0 => None,
            _ => return Err(Wrong::Nonsense("a chunk of an unknown kind")),
        };
        if cursor.at < content.len() { Err(Wrong::Nonsense("a chunk is too long")) } else { Ok(step) }
    }

    fn operation(&mut self) -> Result<Option<Step>, TraceError> {
        let Chunk { section, content, at, offset, cut } = &mut self.chunk;
        let state = self.sections.get_mut(section).expect("it was looked up when the chunk was read");
        let mut cursor = Cursor { bytes: content, at: *at };
        match cursor.operation(&mut state.before, &mut self.operation) {
            Ok(()) => {
                *at = cursor.at;
                state.totals.count(&self.operation);
                Ok(Some(Step::Operation(*section)))
            }
            Err(Wrong::Short) if *cut => {
                self.end = Some(Ending::Cut);
                Ok(None)
            }
            Err(wrong) => {
                Err(TraceError::Damaged { offset: *offset + *at as u64, what: wrong.said().to_owned() })
            }
        }
    }
}

enum Step {
    Begin(u32, Box<Build>),
    Operation(u32),
    End(u32, Close, Totals),
}

/// Reads as much as there is, up to the length of `to`.
fn fill(input: &mut impl Read, to: &mut [u8], offset: &mut u64) -> Result<usize, TraceError> {
    let mut there = 0;
    while there < to.len() {
        match input.read(&mut to[there..]) {
            Ok(0) => break,
            Ok(some) => there += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(TraceError::Read { offset: *offset, error }),
        }
        // Counted at once, so that an error has its place.
    }
    *offset += there as u64;
    Ok(there)
}

/// The text of the header.
fn program(input: &mut impl Read, offset: &mut u64) -> Result<String, TraceError> {
    const LONGEST_NAME: u64 = 1 << 12;
    let damaged = |offset: u64, what: &str| TraceError::Damaged { offset, what: what.to_owned() };
    let begins = *offset;
    let mut length = Vec::new();
    while length.last().is_none_or(|byte| byte & 0x80 != 0) {
        let mut byte = [0];
        if fill(input, &mut byte, offset)? == 0 || length.len() == 10 {
            return Err(damaged(begins, "the name of the program has no end"));
        }
        length.extend(byte);
    }
    let length = Cursor { bytes: &length, at: 0 }.varint().unwrap_or(u64::MAX);
    if length > LONGEST_NAME {
        return Err(damaged(begins, "the name of the program is too long"));
    }
    let mut text = vec![0; length as usize];
    if fill(input, &mut text, offset)? < text.len() {
        return Err(damaged(begins, "the name of the program has no end"));
    }
    String::from_utf8(text).map_err(|_| damaged(begins, "the name of the program is not UTF-8"))
}

/// Why bytes do not give what they should.
enum Wrong {
    /// They end too early.
    Short,
    /// They make no sense.
    Nonsense(&'static str),
}

impl Wrong {
    fn said(&self) -> &'static str {
        match self {
            Wrong::Short => "a chunk is too short",
            Wrong::Nonsense(what) => what,
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let taken = self.bytes[self.at..].get(..count).ok_or(Wrong::Short)?;
        self.at += count;
        Ok(taken)
    }
    fn byte(&mut self) -> Result<u8, Wrong> {
        Ok(self.take(1)?[0])
    }
    fn word(&mut self) -> Result<u64, Wrong> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }
    fn varint(&mut self) -> Result<u64, Wrong> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Wrong::Nonsense("a number does not fit 64 bits"))
    }
    /// A varint that must fit a smaller type.
    fn number<T: TryFrom<u64>>(&mut self) -> Result<T, Wrong> {
        T::try_from(self.varint()?).map_err(|_| Wrong::Nonsense("a number is too large for its field"))
    }
    fn relative(&mut self, to: u64) -> Result<u64, Wrong> {
        Ok(unsigned(to, self.varint()?))
    }
    fn text(&mut self) -> Result<String, Wrong> {
        let length = self.number()?;
        let text = std::str::from_utf8(self.take(length)?);
        Ok(text.map_err(|_| Wrong::Nonsense("a text is not UTF-8"))?.to_owned())
    }
    fn label(&mut self) -> Result<Label, Wrong> {
        Ok(match self.varint()? {
            0 => Label::NONE,
            1 => Label::SHORT,
            number => Label::of(Rate::bit(number - 1)),
        })
    }
    fn ecn(bits: u8) -> Result<Ecn, Wrong> {
        [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Marked]
            .get(usize::from(bits))
            .copied()
            .ok_or(Wrong::Nonsense("an unknown ECN field"))
    }

    fn build(&mut self) -> Result<Build, Wrong> {
        let (name, spelling) = (self.text()?, self.text()?);
        let (rate, mtu, seed, path) =
            (Rate::bit(self.varint()?), Bytes(self.varint()?), self.word()?, self.text()?);
        if rate.as_bit() == 0 || mtu.0 == 0 {
            return Err(Wrong::Nonsense("a link without a rate, or without an MTU"));
        }
        let root = Streams::new(seed);
        let streams = match path.strip_prefix('/') {
            Some(place) => root.within(place),
            None if path.is_empty() => root,
            None => return Err(Wrong::Nonsense("the place of random streams begins without a /")),
        };
        let neighbour = self.number()?;
        let count: usize = self.number()?;
        let mut links = Vec::new();
        for _ in 0..count {
            links.push(((self.number()?, self.number()?), Rate::bit(self.varint()?)));
        }
        let downstream = Downstream::new(neighbour, links);
        Ok(Build { name, spelling, context: LinkContext { rate, mtu, streams, downstream } })
    }

    fn operation(&mut self, before: &mut Before, operation: &mut Operation) -> Result<(), Wrong> {
        let head = self.byte()?;
        let kind = head & 3;
        let allowed = match kind {
            PACKET => 3 << ECN_SHIFT | LABELLED,
            NO_PACKET => AT,
            _ => 0,
        };
        if head & !(3 | DROPPED | MARKED | allowed) != 0 {
            return Err(Wrong::Nonsense("an operation of an unknown kind"));
        }
        let now = self.relative(before.now)?;
        before.now = now;
        operation.now = Time::from_ps(now);
        operation.call = match kind {
            ENQUEUE => {
                self.metadata(&mut before.meta, now)?;
                Call::Enqueue(before.meta)
            }
            PACKET => {
                let number = self.relative(before.sent)?;
                before.sent = number.wrapping_add(1);
                let label = if head & LABELLED == 0 { Label::NONE } else { self.label()? };
                let ecn = Cursor::ecn(head >> ECN_SHIFT & 3)?;
                Call::Dequeue(Answer::Packet { number, label, ecn })
            }
            NO_PACKET if head & AT != 0 => Call::Dequeue(Answer::At(Time::from_ps(self.relative(now)?))),
            NO_PACKET => Call::Dequeue(Answer::Empty),
            RESET => Call::Reset,
            _ => unreachable!("two bits have four values"),
        };
        operation.dropped.clear();
        for _ in 0..self.count(head & DROPPED)? {
            let number = self.relative(before.dropped)?;
            before.dropped = number;
            let why = DropReason::ALL.get(usize::from(self.byte()?));
            operation.dropped.push((number, *why.ok_or(Wrong::Nonsense("an unknown reason of a drop"))?));
        }
        operation.marked.clear();
        for _ in 0..self.count(head & MARKED)? {
            operation.marked.push(Mark {
                bytes: self.number()?,
                flow: FlowKey(self.word()?),
                arrived: Time::from_ps(self.relative(now)?),
                offset: self.number()?,
            });
        }
        Ok(())
    }

    /// How many drops or marks follow.
    fn count(&mut self, some: u8) -> Result<u64, Wrong> {
        match some {
            0 => Ok(0),
            _ => match self.varint()? {
                0 => Err(Wrong::Nonsense("drops or marks are announced, and there are none")),
                count => Ok(count),
            },
        }
    }

    fn metadata(&mut self, meta: &mut Meta, now: u64) -> Result<(), Wrong> {
        let different = self.varint()?;
        if different >> 13 != 0 {
            return Err(Wrong::Nonsense("an unknown field of a packet"));
        }
        meta.arrived = Time::from_ps(now);
        for bit in (0..13).filter(|bit| different >> bit & 1 == 1) {
            match bit {
                0 => meta.bytes = self.number()?,
                1 => meta.class = self.number()?,
                2 => meta.ecn = Cursor::ecn(self.byte()?)?,
                3 => {
                    meta.short = match self.byte()? {
                        0 => false,
                        1 => true,
                        _ => return Err(Wrong::Nonsense("a packet is neither short nor not short")),
                    }
                }
                4 => meta.flow = FlowKey(self.word()?),
                5 => meta.from = self.number()?,
                6 => meta.to = self.number()?,
                7 => meta.label = self.label()?,
                8 => meta.offset = self.number()?,
                9 => meta.remaining = self.number()?,
                10 => meta.reserved = Rate::bit(self.varint()?),
                11 => meta.next_hops = self.hops()?,
                _ => meta.arrived = Time::from_ps(self.relative(now)?),
            }
        }
        Ok(())
    }

    fn hops(&mut self) -> Result<NextHops, Wrong> {
        let count = usize::from(self.byte()?);
        if count > NextHops::MOST {
            return Err(Wrong::Nonsense("more hops ahead than a packet has room for"));
        }
        let mut hops = [0; NextHops::MOST];
        for hop in &mut hops[..count] {
            *hop = self.number()?;
            if *hop == u16::MAX {
                return Err(Wrong::Nonsense("a hop ahead has a number that no node has"));
            }
        }
        Ok(NextHops::new(hops[..count].iter().copied()))
    }
}
