//! Decoding of values in the content of a chunk.

use giveway_qdisc::{
    Bytes, Downstream, DropReason, Ecn, FlowKey, Header, Hosts, Label, LinkContext, Meta, NextHops, Rate,
    Streams, Time,
};

use crate::format::{
    AT, Answer, Before, Build, Call, DROPPED, ECN_SHIFT, ENQUEUE, LABELLED, MARKED, Mark, NO_PACKET,
    Operation, PACKET, RATE, RESET, unsigned,
};

/// An error in the content of a chunk.
pub(super) enum ContentError {
    /// The content ends too early.
    Short,
    /// A value is invalid.
    Invalid(&'static str),
}

impl ContentError {
    /// Description of the damage.
    pub(super) fn message(&self) -> &'static str {
        match self {
            ContentError::Short => "a chunk is too short",
            ContentError::Invalid(what) => what,
        }
    }
}

/// Decodes values from the content of a chunk.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at position `at` of these bytes.
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    /// Position of the next value.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ContentError> {
        let taken = self.bytes[self.at..].get(..count).ok_or(ContentError::Short)?;
        self.at += count;
        Ok(taken)
    }
    /// A byte.
    pub(super) fn byte(&mut self) -> Result<u8, ContentError> {
        Ok(self.take(1)?[0])
    }
    fn word(&mut self) -> Result<u64, ContentError> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }
    /// A varint.
    pub(super) fn varint(&mut self) -> Result<u64, ContentError> {
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
        Err(ContentError::Invalid("a number does not fit 64 bits"))
    }
    /// A varint that must fit a smaller type.
    pub(super) fn number<T: TryFrom<u64>>(&mut self) -> Result<T, ContentError> {
        T::try_from(self.varint()?).map_err(|_| ContentError::Invalid("a number is too large for its field"))
    }
    /// A signed varint, relative to `to`.
    fn relative(&mut self, to: u64) -> Result<u64, ContentError> {
        Ok(unsigned(to, self.varint()?))
    }
    fn text(&mut self) -> Result<String, ContentError> {
        let length = self.number()?;
        let text = std::str::from_utf8(self.take(length)?);
        Ok(text.map_err(|_| ContentError::Invalid("a text is not UTF-8"))?.to_owned())
    }
    fn label(&mut self) -> Result<Label, ContentError> {
        self.varint().map(Label::from_bits)
    }
    fn ecn(bits: u8) -> Result<Ecn, ContentError> {
        [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Marked]
            .get(usize::from(bits))
            .copied()
            .ok_or(ContentError::Invalid("an unknown ECN field"))
    }

    /// Decodes the build of a section.
    pub(super) fn build(&mut self) -> Result<Build, ContentError> {
        let (name, spec) = (self.text()?, self.text()?);
        let (rate, mtu, seed, path) =
            (Rate::bit(self.varint()?), Bytes(self.varint()?), self.word()?, self.text()?);
        if rate.as_bit() == 0 || mtu.0 == 0 {
            return Err(ContentError::Invalid("a link without a rate or an MTU"));
        }
        let root = Streams::new(seed);
        let streams = match path.strip_prefix('/') {
            Some(name) => root.within(name),
            None if path.is_empty() => root,
            None => return Err(ContentError::Invalid("the path of random streams does not begin with /")),
        };
        let neighbour = self.number()?;
        let count: usize = self.number()?;
        let mut links = Vec::new();
        for _ in 0..count {
            links.push(((self.number()?, self.number()?), Rate::bit(self.varint()?)));
        }
        let downstream = Downstream::new(neighbour, links);
        Ok(Build {
            name,
            spec,
            context: LinkContext { rate, mtu, streams, downstream, hosts: Hosts::default() },
        })
    }

    /// Decodes an operation into `operation`.
    pub(super) fn operation(
        &mut self,
        before: &mut Before,
        operation: &mut Operation,
    ) -> Result<(), ContentError> {
        let head = self.byte()?;
        let kind = head & 3;
        let allowed = match kind {
            PACKET => 3 << ECN_SHIFT | LABELLED,
            NO_PACKET => AT,
            RESET => RATE,
            _ => 0,
        };
        if head & !(3 | DROPPED | MARKED | allowed) != 0 {
            return Err(ContentError::Invalid("an operation of an unknown kind"));
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
            RESET if head & RATE != 0 => match self.varint()? {
                0 => return Err(ContentError::Invalid("a link without a rate")),
                rate => Call::Rate(Rate::bit(rate)),
            },
            RESET => Call::Reset,
            _ => unreachable!("two bits have four values"),
        };
        operation.dropped.clear();
        for _ in 0..self.count(head & DROPPED)? {
            let number = self.relative(before.dropped)?;
            before.dropped = number;
            let why = DropReason::ALL.get(usize::from(self.byte()?));
            operation
                .dropped
                .push((number, *why.ok_or(ContentError::Invalid("an unknown reason of a drop"))?));
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

    /// Number of drops or marks that follow.
    fn count(&mut self, some: u8) -> Result<u64, ContentError> {
        match some {
            0 => Ok(0),
            _ => match self.varint()? {
                0 => Err(ContentError::Invalid("a flag for drops or marks, but their count is 0")),
                count => Ok(count),
            },
        }
    }

    fn metadata(&mut self, meta: &mut Meta, now: u64) -> Result<(), ContentError> {
        let different = self.varint()?;
        if different >> 13 != 0 {
            return Err(ContentError::Invalid("an unknown field of a packet"));
        }
        meta.arrived = Time::from_ps(now);
        for bit in (0..13).filter(|bit| different >> bit & 1 == 1) {
            match bit {
                0 => meta.bytes = self.number()?,
                1 => meta.class = self.number()?,
                2 => meta.ecn = Cursor::ecn(self.byte()?)?,
                3 => meta.header = Header::from_byte(self.byte()?),
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

    fn hops(&mut self) -> Result<NextHops, ContentError> {
        let count = usize::from(self.byte()?);
        if count > NextHops::MAX {
            return Err(ContentError::Invalid("more next hops than a packet can have"));
        }
        let mut hops = [0; NextHops::MAX];
        for hop in &mut hops[..count] {
            *hop = self.number()?;
            if *hop == u16::MAX {
                return Err(ContentError::Invalid("a next hop has an invalid node number"));
            }
        }
        Ok(NextHops::new(hops[..count].iter().copied()))
    }
}
