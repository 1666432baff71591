//! Traces of slots, step by step, to check an arbiter by hand (`--trace-slots`).

use std::fmt;

use crate::packet::Class;

/// One step of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A packet joins a queue: input, output, cells, class.
    Arrive(u16, u16, u32, Class),
    /// The following steps match packets of this class.
    Half(Class),
    /// An iteration starts, counted from 1.
    Iteration(u32),
    /// An input requests an output: input, output.
    Request(u16, u16),
    /// An output grants an input: output, input.
    Grant(u16, u16),
    /// An input accepts the grant of an output: input, output.
    Accept(u16, u16),
    /// A cell crosses: input, output, remaining cells of its packet.
    Cross(u16, u16, u32),
    /// A connection is interrupted, and no cell crosses: input, output.
    Interrupt(u16, u16),
}

/// A recorder of steps, which may be off.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    on: bool,
    notes: Vec<Note>,
}

impl Notes {
    /// A recorder that drops all steps.
    pub fn off() -> Notes {
        Notes::default()
    }
    /// A recorder that keeps all steps.
    pub fn on() -> Notes {
        Notes { on: true, notes: Vec::new() }
    }
    /// `true` if steps are kept. Callers check this before they search for steps to record.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.on
    }
    /// Records the start of an iteration, counted from 1.
    #[inline]
    pub fn iteration(&mut self, number: u32) {
        self.note(Note::Iteration(number));
    }
    /// Records a request.
    #[inline]
    pub fn request(&mut self, input: usize, output: usize) {
        self.note(Note::Request(input as u16, output as u16));
    }
    /// Records a grant.
    #[inline]
    pub fn grant(&mut self, output: usize, input: usize) {
        self.note(Note::Grant(output as u16, input as u16));
    }
    /// Records an accept.
    #[inline]
    pub fn accept(&mut self, input: usize, output: usize) {
        self.note(Note::Accept(input as u16, output as u16));
    }
    /// Records a step.
    #[inline]
    pub fn note(&mut self, note: Note) {
        if self.on {
            self.notes.push(note);
        }
    }
    /// Removes and returns the recorded steps.
    pub fn take(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

/// The trace of one slot of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTrace {
    /// Number of the slot, from 0.
    pub slot: u64,
    /// The steps, in order.
    pub notes: Vec<Note>,
    /// Pointers after the slot: class of packets (empty with one arbiter), name, positions by port.
    pub pointers: Vec<(&'static str, &'static str, Vec<u16>)>,
}

impl fmt::Display for SlotTrace {
    /// Writes a line for each kind of step. `2>0` is from input 2 to output 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.slot)?;
        let mut before = None;
        for note in &self.notes {
            let (line, text) = match *note {
                Note::Arrive(input, output, cells, class) => {
                    let size = match (class, cells) {
                        (Class::Short, _) => "short".to_owned(),
                        (Class::Long, 1) => "1 cell".to_owned(),
                        (Class::Long, cells) => format!("{cells} cells"),
                    };
                    ("arrive", format!("{input}>{output} ({size})"))
                }
                Note::Half(class) => (class.name(), String::new()),
                Note::Iteration(number) => ("iteration", number.to_string()),
                Note::Request(input, output) => ("request", format!("{input}>{output}")),
                Note::Grant(output, input) => ("grant", format!("{input}>{output}")),
                Note::Accept(input, output) => ("accept", format!("{input}>{output}")),
                Note::Cross(input, output, 0) => ("cross", format!("{input}>{output} (last)")),
                Note::Cross(input, output, left) => ("cross", format!("{input}>{output} ({left} left)")),
                Note::Interrupt(input, output) => ("interrupted", format!("{input}>{output}")),
            };
            if before != Some(line) || matches!(note, Note::Iteration(_) | Note::Half(_)) {
                write!(f, "\n  {line:11}")?;
            }
            write!(f, " {text}")?;
            before = Some(line);
        }
        for (half, name, at) in &self.pointers {
            let name = if half.is_empty() { (*name).to_owned() } else { format!("{half} {name}") };
            let at: Vec<String> = at.iter().map(u16::to_string).collect();
            write!(f, "\n  pointers    {name}: {}", at.join(" "))?;
        }
        Ok(())
    }
}
