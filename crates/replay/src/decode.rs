//! Reads traces operation by operation. Any input is accepted or refused with the position of the mistake.

mod cursor;

use std::collections::BTreeMap;
use std::io::{self, Read};

use giveway_qdisc::Time;

use crate::format::{
    BUILD, Before, Build, Call, Close, END, FILE_END, HEAD, LONGEST, MAGIC, OPERATIONS, Operation, Totals,
    VERSION, head,
};
use cursor::{ContentError, Cursor};

/// An error in reading a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file does not start as a trace.
    #[error("is not an operation trace: it has another magic number")]
    NotATrace,
    /// The trace has another version of the format.
    #[error("is a trace of version {0}; only version {VERSION} is supported")]
    Version(u16),
    /// Reading failed.
    #[error("cannot be read beyond byte {offset}: {error}")]
    Read {
        /// Position in the file, in bytes.
        offset: u64,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// The file is damaged.
    #[error("is damaged at byte {offset}: {what}")]
    Damaged {
        /// Position of the invalid chunk or operation, in bytes.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
}

/// An item of a trace.
#[derive(Debug)]
pub enum Item<'a> {
    /// A discipline was built.
    Begin {
        /// Number of the section that starts.
        section: u32,
        /// Its configuration.
        build: Build,
    },
    /// A discipline was called.
    Operation {
        /// Number of the section.
        section: u32,
        /// The call and its results.
        operation: &'a Operation,
    },
    /// A section ends.
    End {
        /// Number of the section.
        section: u32,
        /// Reason for the end.
        close: Close,
        /// Counters of the section, which were checked.
        totals: Totals,
    },
}

/// Reads a trace with memory for one chunk, regardless of the length of the trace. The input should be
/// buffered.
#[derive(Debug)]
pub struct Reader<R: Read> {
    input: R,
    program: String,
    /// Number of bytes that were read.
    offset: u64,
    /// Sections that have started and not ended.
    sections: BTreeMap<u32, State>,
    /// Smallest number of the next section.
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

/// A chunk of operations that were not returned yet.
#[derive(Debug, Default)]
struct Chunk {
    section: u32,
    content: Vec<u8>,
    at: usize,
    /// Position of the content in the file.
    offset: u64,
    /// True if the file ends within the chunk.
    cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Whole,
    Cut,
    Failed,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the input is not a trace, or has another version.
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

    /// True if the trace was read up to its end mark. False for a truncated trace.
    pub fn whole(&self) -> bool {
        self.end == Some(Ending::Whole)
    }

    /// The next item; `None` at the end and after an error.
    ///
    /// # Errors
    /// If reading fails, or the trace is damaged.
    #[allow(clippy::should_implement_trait, reason = "an item borrows from the reader")]
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
                return Err(damaged("a chunk is longer than 16 MiB"));
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
            // All other chunks are one item each.
            let content = std::mem::take(&mut chunk.content);
            let step = self.other(kind, section, &content).map_err(|error| damaged(error.message()))?;
            self.chunk.content = content;
            self.chunk.content.clear();
            if step.is_none() {
                let mut after = [0];
                if fill(&mut self.input, &mut after, &mut self.offset)? > 0 {
                    return Err(damaged("there are more bytes after the end of the trace"));
                }
                self.end = Some(Ending::Whole);
            }
            return Ok(step);
        }
    }

    /// Decodes a build or an end; `None` for the end of the file.
    fn other(&mut self, kind: u8, section: u32, content: &[u8]) -> Result<Option<Step>, ContentError> {
        let mut cursor = Cursor::new(content, 0);
        let step = match kind {
            BUILD => {
                if u64::from(section) < self.next {
                    return Err(ContentError::Invalid("a section begins twice"));
                }
                self.next = u64::from(section) + 1;
                let build = cursor.build()?;
                self.sections.insert(section, State::default());
                Some(Step::Begin(section, Box::new(build)))
            }
            END => {
                let Some(State { totals, .. }) = self.sections.remove(&section) else {
                    return Err(ContentError::Invalid("the end of a section that did not begin"));
                };
                let close = Close::ALL.get(usize::from(cursor.byte()?));
                let close =
                    *close.ok_or(ContentError::Invalid("an unknown reason for the end of a section"))?;
                let counted = Totals {
                    operations: cursor.varint()?,
                    arrived: cursor.varint()?,
                    sent: cursor.varint()?,
                    dropped: cursor.varint()?,
                    marked: cursor.varint()?,
                };
                if counted != totals {
                    return Err(ContentError::Invalid(
                        "the counters of a section do not match its operations",
                    ));
                }
                Some(Step::End(section, close, totals))
            }
            FILE_END if section == 0 => None,
            _ => return Err(ContentError::Invalid("a chunk of an unknown kind")),
        };
        if cursor.position() < content.len() {
            Err(ContentError::Invalid("a chunk is too long"))
        } else {
            Ok(step)
        }
    }

    fn operation(&mut self) -> Result<Option<Step>, TraceError> {
        let Chunk { section, content, at, offset, cut } = &mut self.chunk;
        let state = self.sections.get_mut(section).expect("the section was checked when the chunk was read");
        let mut cursor = Cursor::new(content, *at);
        match cursor.operation(&mut state.before, &mut self.operation) {
            Ok(()) => {
                *at = cursor.position();
                state.totals.count(&self.operation);
                Ok(Some(Step::Operation(*section)))
            }
            Err(ContentError::Short) if *cut => {
                self.end = Some(Ending::Cut);
                Ok(None)
            }
            Err(error) => {
                Err(TraceError::Damaged { offset: *offset + *at as u64, what: error.message().to_owned() })
            }
        }
    }
}

enum Step {
    Begin(u32, Box<Build>),
    Operation(u32),
    End(u32, Close, Totals),
}

/// Fills `to` as far as the input goes, and returns the number of bytes.
fn fill(input: &mut impl Read, to: &mut [u8], offset: &mut u64) -> Result<usize, TraceError> {
    let mut filled = 0;
    while filled < to.len() {
        match input.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(some) => filled += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(TraceError::Read { offset: *offset, error }),
        }
    }
    *offset += filled as u64;
    Ok(filled)
}

/// The name of the program in the header.
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
    let length = Cursor::new(&length, 0).varint().unwrap_or(u64::MAX);
    if length > LONGEST_NAME {
        return Err(damaged(begins, "the name of the program is too long"));
    }
    let mut text = vec![0; length as usize];
    if fill(input, &mut text, offset)? < text.len() {
        return Err(damaged(begins, "the name of the program has no end"));
    }
    String::from_utf8(text).map_err(|_| damaged(begins, "the name of the program is not UTF-8"))
}
