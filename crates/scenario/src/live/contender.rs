//! The disciplines that a test bed compares, from Giveway and from the kernel.

use std::fmt;
use std::ops::Range;

use giveway_disciplines::Spec;
use giveway_kernel_plan::plan::Plan;
use giveway_qdisc::{Bytes, Rate};

use crate::diagnostic::Diagnostic;
use crate::fields::Reading;
use crate::tree::{Node, Table, Value};

/// A compared discipline of a test bed.
#[derive(Clone, Debug, PartialEq)]
pub enum Contender {
    /// A discipline of Giveway in user space: its index among the network's disciplines.
    Ours(usize),
    /// A discipline of the kernel.
    Kernel(KernelQueue),
    /// A discipline of Giveway in the kernel (BPF), which also limits the rate.
    Bpf(Box<BpfQueue>),
}

/// A discipline of Giveway in the kernel (BPF).
#[derive(Clone, Debug, PartialEq)]
pub struct BpfQueue {
    /// The parameters of the BPF program.
    pub plan: Plan,
    /// The place of the spec in the scenario.
    pub place: Range<usize>,
}

/// A discipline of the kernel, in the notation of `tc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelQueue {
    /// The kind, as in `tc qdisc add ... KIND`.
    pub kind: String,
    /// The arguments that follow the kind.
    pub arguments: Vec<String>,
}

/// The discipline of the network if all compared ones are in the kernel.
const PLACEHOLDER: &str = "fifo limit 1000p";

/// The prefix of a discipline of the kernel.
const PREFIX: &str = "kernel:";

/// The prefix of a discipline of Giveway in the kernel.
const BPF_PREFIX: &str = "bpf:";

impl Contender {
    /// Its name in results; `ours` are the compared disciplines of the network.
    pub(crate) fn name(&self, ours: &[Spec]) -> String {
        match self {
            Contender::Ours(at) => ours[*at].to_string(),
            Contender::Kernel(queue) => queue.to_string(),
            Contender::Bpf(queue) => format!("{BPF_PREFIX}{}", queue.plan.text()),
        }
    }
}

/// The error of a discipline of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum KernelQueueError {
    #[error("invalid character {0:?} in a tc qdisc specification")]
    Character(char),
    #[error("kernel: needs the name of a discipline")]
    Empty,
    #[error("htb needs a discipline inside, as in htb+bfifo")]
    Shaper,
}

impl KernelQueue {
    /// Parses the text after `kernel:`.
    fn read(text: &str) -> Result<KernelQueue, KernelQueueError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-+".contains(c);
        if let Some(odd) = text.chars().find(|c| !plain(*c) && *c != ' ') {
            return Err(KernelQueueError::Character(odd));
        }
        let mut words = text.split_whitespace().map(str::to_owned);
        let kind = words.next().ok_or(KernelQueueError::Empty)?;
        // A discipline that does not shape becomes the child of an htb.
        let kind = kind.strip_prefix("htb+").unwrap_or(&kind).to_owned();
        if kind == "htb" || kind.is_empty() || kind.contains('+') {
            return Err(KernelQueueError::Shaper);
        }
        Ok(KernelQueue { kind, arguments: words.collect() })
    }

    /// A discipline in the notation of `tc`.
    pub(crate) fn plain(text: &str) -> KernelQueue {
        let mut words = text.split(' ').map(str::to_owned);
        KernelQueue { kind: words.next().unwrap_or_default(), arguments: words.collect() }
    }

    /// True if the discipline limits the rate without htb.
    pub fn shapes(&self) -> bool {
        self.kind == "tbf"
    }
}

impl fmt::Display for KernelQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        if !self.shapes() {
            f.write_str("htb+")?;
        }
        f.write_str(&self.kind)?;
        self.arguments.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

/// A discipline in the kernel, as the scenario has it.
pub(crate) enum Taken {
    /// A discipline of the kernel.
    Kernel(KernelQueue),
    /// A discipline of Giveway in the kernel: its spec.
    Bpf(String),
}

/// Removes the disciplines in the kernel from `disciplines`, and returns them with their indices there.
pub(crate) fn take_kernel(reading: &mut Reading, root: &mut Table) -> Vec<(usize, Taken)> {
    let Some(node) = root.get("disciplines").cloned() else { return Vec::new() };
    let mut taken = Vec::new();
    let mut others = Vec::new();
    for (at, item) in node.items().iter().enumerate() {
        let text = item.text().map(str::trim).unwrap_or_default();
        if let Some(text) = text.strip_prefix(BPF_PREFIX) {
            taken.push((at, Taken::Bpf(text.to_owned())));
            continue;
        }
        let Some(text) = text.strip_prefix(PREFIX) else {
            others.push(item.clone());
            continue;
        };
        match KernelQueue::read(text) {
            Ok(queue) => taken.push((at, Taken::Kernel(queue))),
            Err(why) => {
                let wrong = Diagnostic::error(item.span.clone(), why.to_string());
                reading.report(wrong.help("write for example \"kernel:fq_codel\", as in tc's manual"));
            }
        }
    }
    if others.len() == node.items().len() {
        return taken;
    }
    if others.is_empty() {
        others.push(Node { span: node.span.clone(), value: Value::Text(PLACEHOLDER.to_owned()) });
    }
    let span = node.span.clone();
    let key = root.place("disciplines");
    root.set("disciplines", key, Node { span, value: Value::List(others) });
    taken
}

/// The disciplines in the order of `written`, for a bottleneck with this rate and MTU. `ours` is the number
/// of Giveway's disciplines in user space.
pub(crate) fn order(
    reading: &mut Reading,
    written: &[Node],
    ours: usize,
    taken: &[(usize, Taken)],
    rate: Rate,
    mtu: Bytes,
) -> Vec<Contender> {
    let mut ours = 0..ours;
    let mut taken = taken.iter().peekable();
    let one = |at: usize| match taken.next_if(|(place, _)| *place == at) {
        Some((_, Taken::Kernel(queue))) => Some(Contender::Kernel(queue.clone())),
        // Lengths are IP lengths, without Ethernet headers, as in the whole scenario.
        Some((_, Taken::Bpf(text))) => match Plan::new(text, Some(rate), None, mtu.0) {
            Ok(plan) => Some(Contender::Bpf(Box::new(BpfQueue { plan, place: written[at].span.clone() }))),
            Err(why) => {
                reading.report(Diagnostic::error(written[at].span.clone(), why.to_string()));
                None
            }
        },
        None => ours.next().map(Contender::Ours),
    };
    (0..written.len().max(1)).filter_map(one).collect()
}
