//! The machine of a measurement, without names or addresses.

use std::fs;
use std::thread;

/// The properties of a machine that are written with the results.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// Virtual or not.
    pub kind: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Number of processors.
    pub processors: usize,
    /// The load average at the start, over 1, 5 and 15 minutes.
    pub load_average: String,
}

impl Machine {
    /// This machine.
    pub fn this() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let first =
            |text: String, words: usize| text.split_whitespace().take(words).collect::<Vec<_>>().join(" ");
        // A guest has the processor flag "hypervisor" on x86, and this folder under Xen.
        let is_guest = read("/proc/cpuinfo").split_whitespace().any(|word| word == "hypervisor")
            || !read("/sys/hypervisor/type").is_empty();
        let kind = if is_guest { "virtual machine" } else { "no sign of a virtual machine" };
        Machine {
            kind: kind.to_owned(),
            kernel: format!("Linux {}", first(read("/proc/sys/kernel/osrelease"), 1)),
            processors: thread::available_parallelism().map_or(1, usize::from),
            load_average: first(read("/proc/loadavg"), 3),
        }
    }
}
