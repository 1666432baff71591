//! Encodes traces: builds, operations and ends become chunks in the format of [`format`](crate::format).

use std::io::{self, Write};

use giveway_qdisc::{Ecn, Label, Meta, NextHops, Time};

use crate::format::{
    AT, Answer, BUILD, Before, Build, Call, Close, DROPPED, ECN_SHIFT, END, ENQUEUE, FILE_END, LABELLED,
    LONGEST, MAGIC, MARKED, NO_PACKET, OPERATIONS, Operation, PACKET, RATE, RESET, Totals, VERSION, head,
    signed,
};

/// Writes a trace in pieces of tens of kilobytes, so that the output need not be buffered.
#[derive(Debug)]
pub(crate) struct Encoder<W: Write> {
    out: W,
    bytes: u64,
}

/// A section that is being written: the values that differences refer to, and operations that are not in a
/// chunk yet.
#[derive(Debug)]
pub(crate) struct Section {
    number: u32,
    before: Before,
    pub totals: Totals,
    content: Vec<u8>,
}

/// Length of operations, in bytes, at which a chunk is written.
const CHUNK: usize = 1 << 16;

impl<W: Write> Encoder<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// The error of the output.
    pub fn new(out: W, program: &str) -> io::Result<Encoder<W>> {
        let mut header = MAGIC.to_vec();
        header.extend(VERSION.to_le_bytes());
        text(&mut header, program);
        let mut encoder = Encoder { out, bytes: header.len() as u64 };
        encoder.out.write_all(&header)?;
        Ok(encoder)
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the file, and returns the output.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.chunk(FILE_END, 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    pub(crate) fn begin(&mut self, number: u32, build: &Build) -> io::Result<Section> {
        let Build { name, spec, context } = build;
        let mut content = Vec::new();
        text(&mut content, name);
        text(&mut content, spec);
        varint(&mut content, context.rate.as_bit());
        varint(&mut content, context.mtu.0);
        content.extend(context.streams.seed().to_le_bytes());
        text(&mut content, context.streams.path());
        varint(&mut content, context.downstream.neighbour.into());
        varint(&mut content, context.downstream.links().len() as u64);
        for ((from, to), rate) in context.downstream.links() {
            varint(&mut content, (*from).into());
            varint(&mut content, (*to).into());
            varint(&mut content, rate.as_bit());
        }
        self.chunk(BUILD, number, &content)?;
        content.clear();
        Ok(Section { number, before: Before::default(), totals: Totals::default(), content })
    }

    /// Adds an operation. The next [`Encoder::push`] writes it at the latest.
    pub(crate) fn operation(&mut self, section: &mut Section, operation: &Operation) -> io::Result<()> {
        section.add(operation);
        if section.content.len() >= CHUNK { self.push(section) } else { Ok(()) }
    }

    /// Writes the operations that are not written yet.
    pub(crate) fn push(&mut self, section: &mut Section) -> io::Result<()> {
        if section.content.is_empty() {
            return Ok(());
        }
        let content = std::mem::take(&mut section.content);
        self.chunk(OPERATIONS, section.number, &content)?;
        section.content = content;
        section.content.clear();
        Ok(())
    }

    pub(crate) fn end(&mut self, mut section: Section, close: Close) -> io::Result<()> {
        self.push(&mut section)?;
        let mut content = vec![close as u8];
        let Totals { operations, arrived, sent, dropped, marked } = section.totals;
        for number in [operations, arrived, sent, dropped, marked] {
            varint(&mut content, number);
        }
        self.chunk(END, section.number, &content)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn chunk(&mut self, kind: u8, section: u32, content: &[u8]) -> io::Result<()> {
        let Some(length) = u32::try_from(content.len()).ok().filter(|length| *length <= LONGEST) else {
            let message = format!(
                "a chunk of {} bytes: a call dropped more packets than a trace can record",
                content.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let head = head(kind, section, length, content);
        self.out.write_all(&head)?;
        self.out.write_all(content)?;
        self.bytes += (head.len() + content.len()) as u64;
        Ok(())
    }
}

impl Section {
    fn add(&mut self, operation: &Operation) {
        let Operation { now, call, dropped, marked } = operation;
        self.totals.count(operation);
        let flags = if dropped.is_empty() { 0 } else { DROPPED } | if marked.is_empty() { 0 } else { MARKED };
        let out = &mut self.content;
        let head = match call {
            Call::Enqueue(_) => ENQUEUE,
            Call::Reset => RESET,
            Call::Rate(_) => RESET | RATE,
            Call::Dequeue(Answer::Packet { label, ecn, .. }) => {
                PACKET | (ecn_bits(*ecn) << ECN_SHIFT) | if *label == Label::NONE { 0 } else { LABELLED }
            }
            Call::Dequeue(Answer::At(_)) => NO_PACKET | AT,
            Call::Dequeue(Answer::Empty) => NO_PACKET,
        };
        out.push(head | flags);
        varint(out, signed(self.before.now, now.as_ps()));
        self.before.now = now.as_ps();
        match call {
            Call::Enqueue(meta) => {
                metadata(out, &self.before.meta, meta, *now);
                self.before.meta = *meta;
            }
            Call::Dequeue(Answer::Packet { number, label, .. }) => {
                varint(out, signed(self.before.sent, *number));
                self.before.sent = number.wrapping_add(1);
                if *label != Label::NONE {
                    varint(out, label.bits());
                }
            }
            Call::Dequeue(Answer::At(at)) => varint(out, signed(now.as_ps(), at.as_ps())),
            Call::Rate(rate) => varint(out, rate.as_bit()),
            Call::Dequeue(Answer::Empty) | Call::Reset => {}
        }
        if !dropped.is_empty() {
            varint(out, dropped.len() as u64);
        }
        for (number, why) in dropped {
            varint(out, signed(self.before.dropped, *number));
            self.before.dropped = *number;
            out.push(*why as u8);
        }
        if !marked.is_empty() {
            varint(out, marked.len() as u64);
        }
        for mark in marked {
            varint(out, mark.bytes.into());
            out.extend(mark.flow.0.to_le_bytes());
            varint(out, signed(now.as_ps(), mark.arrived.as_ps()));
            varint(out, mark.offset.into());
        }
    }
}

fn metadata(out: &mut Vec<u8>, before: &Meta, meta: &Meta, now: Time) {
    let Meta {
        bytes,
        class,
        ecn,
        header,
        flow,
        from,
        to,
        arrived,
        label,
        offset,
        remaining,
        reserved,
        next_hops,
    } = *meta;
    let different = [
        bytes != before.bytes,
        class != before.class,
        ecn != before.ecn,
        header != before.header,
        flow != before.flow,
        from != before.from,
        to != before.to,
        label != before.label,
        offset != before.offset,
        remaining != before.remaining,
        reserved != before.reserved,
        next_hops != before.next_hops,
        arrived != now,
    ];
    let bits = different.iter().enumerate().map(|(bit, different)| u64::from(*different) << bit).sum();
    varint(out, bits);
    for (bit, _) in different.iter().enumerate().filter(|(_, different)| **different) {
        match bit {
            0 => varint(out, bytes.into()),
            1 => varint(out, class.into()),
            2 => out.push(ecn_bits(ecn)),
            3 => out.push(header.byte()),
            4 => out.extend(flow.0.to_le_bytes()),
            5 => varint(out, from.into()),
            6 => varint(out, to.into()),
            7 => varint(out, label.bits()),
            8 => varint(out, offset.into()),
            9 => varint(out, remaining.into()),
            10 => varint(out, reserved.as_bit()),
            11 => hops(out, &next_hops),
            _ => varint(out, signed(now.as_ps(), arrived.as_ps())),
        }
    }
}

fn hops(out: &mut Vec<u8>, next_hops: &NextHops) {
    out.push(next_hops.iter().count() as u8);
    next_hops.iter().for_each(|hop| varint(out, hop.into()));
}

fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Marked => 3,
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
