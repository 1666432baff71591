//! What happened in a slot, step by step, for who wants to check it by hand (`--trace-slots`).

use std::fmt;

use crate::packet::Class;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A packet may be sent from now on: input, output, cells.
    Arrive(u16, u16, u32, Class),
    /// What follows is about packets of this class alone.
    Half(Class),
    /// An iteration begins, counted from 1.
    Iteration(u32),
    /// An input asks for an output.
    Request(u16, u16),
    /// An output grants an input.
    Grant(u16, u16),
    /// An input accepts an output.
    Accept(u16, u16),
    /// A cell crosses: input, output, cells of its packet that are left after it.
    Cross(u16, u16, u32),
    /// A connection stays, and no cell crosses: input, output.
    Interrupt(u16, u16),
}

/// Steps that are written down, when anybody wants them.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    on: bool,
    notes: Vec<Note>,
}

impl Notes {
    /// Nobody wants them.
    pub fn off() -> Notes {
        Notes::default()
    }
    /// Somebody does.
    pub fn on() -> Notes {
        Notes { on: true, notes: Vec::new() }
    }
    /// Whether anybody wants them: who has to search for what to note asks first.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.on
    }
    /// An iteration begins, counted from 1.
    #[inline]
    pub fn iteration(&mut self, number: u32) {
        self.note(Note::Iteration(number));
    }
    /// An input asks for an output.
    #[inline]
    pub fn request(&mut self, input: usize, output: usize) {
        self.note(Note::Request(input as u16, output as u16));
    }
    /// An output grants an input.
    #[inline]
    pub fn grant(&mut self, output: usize, input: usize) {
        self.note(Note::Grant(output as u16, input as u16));
    }
    /// An input accepts an output.
    #[inline]
    pub fn accept(&mut self, input: usize, output: usize) {
        self.note(Note::Accept(input as u16, output as u16));
    }
    /// Anything else.
    #[inline]
    pub fn note(&mut self, note: Note) {
        if self.on {
            self.notes.push(note);
        }
    }
    /// What was noted since the last time.
    pub fn take(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

/// One slot of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTrace {
    /// Its number, from 0.
    pub slot: u64,
    /// What happened, in order.
    pub notes: Vec<Note>,
    /// Where pointers stand afterwards: of which class (empty where there is only one), name, by port.
    pub pointers: Vec<(&'static str, &'static str, Vec<u16>)>,
}

impl fmt::Display for SlotTrace {
    /// A line for each kind of step. `2>0` is from input 2 to output 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.slot)?;
        let mut before = None;
        for note in &self.notes {
            let (line, text) = match *note {
                Note::Arrive(input, output, cells, class) => {
                    let what = match (class, cells) {
                        (Class::Short, _) => "short".to_owned(),
                        (Class::Long, 1) => "1 cell".to_owned(),
                        (Class::Long, cells) => format!("{cells} cells"),
                    };
                    ("arrive", format!("{input}>{output} ({what})"))
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
