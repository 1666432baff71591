//! The table of targets.

/// A fuzz target: a function of arbitrary bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target, of its file, of its folder of seeds, and of libFuzzer's program.
    pub name: &'static str,
    /// The function. It passes if it returns, and panics if the code under test is wrong.
    pub run: fn(&[u8]),
    /// Kind of the input, for lists.
    pub reads: &'static str,
    /// Number of mutated inputs in the gate; they take about two seconds in the dev profile.
    pub smoke: u32,
}

macro_rules! targets {
    ($($name:ident, $smoke:literal, $reads:literal;)*) => {
        $(pub mod $name;)*

        /// All targets, sorted by name.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $name::run,
            reads: $reads,
            smoke: $smoke,
        }),*];
    };
}

targets! {
    admission, 30_000, "frames with control packets of reservations, and the tables of a bridge";
    capture, 15_000, "pcap and pcapng files, and the workload that is extracted from them";
    contract, 60_000, "operations on every discipline, which must keep the contract";
    control_line, 6_000, "lines of the control socket";
    datagram_list, 15_000, "the CSV file of the traffic source datagram_list, and a run of it";
    edges, 5_000, "the CSV file of the topology edges, and a run of it";
    flow_list, 30_000, "the CSV file of the traffic source flow_list, and a run of it";
    folder, 400, "run folders: manifest.json, summary.json, and truncated Parquet tables";
    fragment, 200_000, "fragments of frames";
    frames, 20_000, "live frames through the header parser, a discipline and the writer";
    http, 300_000, "HTTP requests for metrics";
    journal, 20_000, "journals of disciplines in the kernel";
    key_file, 500_000, "the key file of reservations";
    label, 500_000, "the label option of IPv4 and IPv6 packets";
    leftovers, 500_000, "the state file of a bridge that was killed";
    link_trace, 4_000, "traces of the rate or the delay of a link, and a run over it";
    qdisc, 60_000, "disciplines as text, built and driven with packets";
    recording, 100_000, "rows of a recording between a bridge and the process that writes them";
    reserve, 300_000, "control packets of reservations";
    scenario, 6_000, "scenario files with --set changes, and a short run of them";
    set, 4_000, "--set changes of a valid scenario";
    settings, 80_000, "the settings file of a live bridge";
    spec, 200_000, "disciplines as text";
    sweep, 60, "folders of sweeps: manifest.json, and truncated Parquet tables";
    switch_trace, 20_000, "the capture of the switch's traffic source trace, and a run of it";
    take_over, 300_000, "lines between a bridge and the process that takes it over";
    timing, 3_000, "measured timings of machines, and a run with them";
    tools, 300_000, "the output of bpftool, tc and ip";
    trace, 50_000, "operation traces";
    trials, 500, "trials that cards and judgements keep: lists, lines, and truncated Parquet tables";
    wasm, 3_000, "WebAssembly modules as disciplines";
    workload, 30_000, "workload files, and a run of them";
}
