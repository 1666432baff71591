//! The commands of the book that are shortened, and those that are not run. An entry that fits no command is
//! an error.

/// Beginnings of commands, and the flags that make them short. Of several that fit, the longest counts.
pub const SHORTER: &[(&str, &str)] = &[
    ("giveway run ", "--short --seeds 1"),
    // Their fingerprints are compared.
    ("giveway run scenarios/quickstart.toml    ", ""),
    ("giveway run scenarios/quickstart.toml --jobs 1", ""),
    ("giveway run scenarios/bench/chain-16.toml --short", ""),
    ("giveway run scenarios/quickstart.toml --set link.0.delay=5001us", ""),
    ("giveway run scenarios/quickstart.toml --seeds 1 --set 'disciplines=[\"efd\"]' --out", ""),
    ("giveway compare ", "--seeds 1"),
    ("giveway evaluate ", "--short --seeds 2 --no-timing --no-sensitivity --tune 0 --cells rrul/tcp-1-down"),
    ("giveway plan capacity ", "--short"),
    ("giveway sweep ", "--short --seeds 1"),
    ("giveway sweep scenarios/sweeps/efd-threshold.toml", "--dry-run"),
    ("giveway reproduce p-spf --figure 6", "--quick"),
];

/// Parts of commands that are not run, and the reason.
pub const NOT_RUN: &[(&str, &str)] = &[
    ("sudo ", "it needs root, and interfaces or a kernel of its own"),
    ("tcpdump ", "it captures the traffic of an interface or of another machine"),
    (
        "giveway kernel ",
        "it needs a compiler for BPF; the virtual machine of `cargo xtask test-kernel` runs it",
    ),
    ("giveway replay-check real.trace", "the trace is that of a test bed, which needs root"),
    ("giveway sweep query ", "it is a part of the Python package"),
    ("--shard ", "it is the script of a cluster"),
    ("giveway compare home.pcapng", "the capture is that of a test bed, which needs root"),
    ("giveway report before after", "the recordings are those of a test bed, which needs root"),
    ("giveway compare day.pcap0 ", "a capture of a whole day is not in the repository"),
    (
        "giveway evaluate judge ",
        "its verdict depends on a secret that is drawn; the tests `judge` judge the same module",
    ),
    ("giveway reproduce efd --quick", "the step `papers, quick run` of the gate runs it"),
    ("giveway reproduce efd  ", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce fpip", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce bsq", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce trr", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce p-spf  ", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce dctcp", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce bbr", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce l4s-tests", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce stratum-ns3", "the step `papers, quick run` of the gate runs it in its short form"),
    ("giveway reproduce my-copy-of-efd", "the copy is that of the reader"),
];

/// Files that the reader of a chapter has: the chapter, the name, and what it is here.
pub const FILES: &[(&str, &str, &str)] = &[
    ("docs/book/compare.md", "evening.pcap", "examples/home-uplink.pcapng"),
    ("docs/book/label.md", "scenario.toml", "scenarios/disciplines/csfq.toml"),
];
