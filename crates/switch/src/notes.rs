//! What an arbiter did in a slot, for who wants to check it by hand (`--trace-slots`).

/// One step of an arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// An iteration begins, counted from 1.
    Iteration(u32),
    /// An input asks for an output.
    Request(u16, u16),
    /// An output grants an input.
    Grant(u16, u16),
    /// An input accepts an output.
    Accept(u16, u16),
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
    #[inline]
    fn note(&mut self, note: Note) {
        if self.on {
            self.notes.push(note);
        }
    }
    /// What was noted since the last time.
    pub fn take(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}
