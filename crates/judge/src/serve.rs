//! The process of a candidate: it answers the questions of a judge.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;

use giveway_qdisc::{Bytes, Cx, Label, LinkContext, Meta, Next, Outbox, Packet, Qdisc, Rate, Streams};
use giveway_sim::Segment;

use crate::wire::{Answer, Leaves, Mistake, Question, UNCONFINED, receive, send};

/// Builds a queue for a link; the second argument is the word for its random numbers.
type Build<'a> = dyn FnMut(&LinkContext, u64) -> Result<Box<dyn Qdisc<Segment>>, Mistake> + 'a;

/// The end of a channel in the process of a candidate.
pub struct Served {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    buffer: Vec<u8>,
}

impl Served {
    /// The end of a channel.
    ///
    /// # Errors
    /// If the process has no descriptor left.
    pub fn new(stream: UnixStream) -> io::Result<Served> {
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Served { stream, reader, buffer: Vec::new() })
    }

    /// Says that the candidate cannot be set up.
    ///
    /// # Errors
    /// If the judge is gone.
    pub fn refuse(&mut self, mistake: Mistake) -> io::Result<()> {
        self.answer(&Answer::Failed(mistake))
    }

    /// Says that it is ready, and answers questions until the judge closes the channel. `failed` returns the
    /// mistake of the last call, and `is_confined` says whether [`confine`](crate::confine) had an effect.
    ///
    /// # Errors
    /// If a question is none, or the judge is gone in the middle of an answer.
    pub fn run(
        &mut self,
        is_confined: bool,
        build: &mut Build<'_>,
        failed: &mut dyn FnMut() -> Option<Mistake>,
    ) -> io::Result<()> {
        let mut queues: Vec<Box<dyn Qdisc<Segment>>> = Vec::new();
        let mut out = Outbox::default();
        let ready = if is_confined { Leaves::None } else { UNCONFINED };
        self.answer(&done(&mut out, ready))?;
        while receive(&mut self.reader, &mut self.buffer)? {
            let wrong = || io::Error::from(io::ErrorKind::InvalidData);
            let question = Question::read(&self.buffer).ok_or_else(wrong)?;
            let mut leaves = Leaves::None;
            match question {
                Question::New { rate, mtu, seed } => {
                    let context = LinkContext { mtu: Bytes(mtu), ..LinkContext::new(rate, Streams::new(0)) };
                    match build(&context, seed) {
                        Ok(queue) => queues.push(queue),
                        Err(mistake) => {
                            self.answer(&Answer::Failed(mistake))?;
                            continue;
                        }
                    }
                }
                Question::Enqueue { queue, now, number, meta } => {
                    let queue = queues.get_mut(usize::from(queue)).ok_or_else(wrong)?;
                    let packet = Packet { meta: numbered(meta, number), payload: Segment::default() };
                    queue.enqueue(packet, &mut Cx::new(now, &mut out));
                }
                Question::Dequeue { queue, now } => {
                    let queue = queues.get_mut(usize::from(queue)).ok_or_else(wrong)?;
                    leaves = match queue.dequeue(&mut Cx::new(now, &mut out)) {
                        Next::Packet(packet) => Leaves::Packet(number(&packet.meta)),
                        Next::At(time) => Leaves::At(time),
                        Next::Empty => Leaves::None,
                    };
                }
                Question::Rate { queue, now, rate } => {
                    queues.get_mut(usize::from(queue)).ok_or_else(wrong)?.rate_changed(rate, now);
                }
            }
            let answer = match failed() {
                Some(mistake) => Answer::Failed(mistake),
                None => done(&mut out, leaves),
            };
            out.dropped.clear();
            out.marked.clear();
            self.answer(&answer)?;
        }
        Ok(())
    }

    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        send(&mut self.stream, &mut self.buffer, |body| answer.write(body))
    }
}

fn done(out: &mut Outbox<Segment>, leaves: Leaves) -> Answer {
    Answer::Done {
        drops: out.dropped.iter().map(|(packet, why)| (number(&packet.meta), *why)).collect(),
        marks: out.marked.iter().map(number).collect(),
        leaves,
    }
}

/// Metadata with the number of the packet in its label, which programs do not see.
fn numbered(meta: Meta, number: u64) -> Meta {
    Meta { label: Label::of(Rate::bit(number + 1)), ..meta }
}

fn number(meta: &Meta) -> u64 {
    meta.label.rate().as_bit().saturating_sub(1)
}
