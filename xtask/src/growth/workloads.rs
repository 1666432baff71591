//! The workloads of the curves: scenarios of a kind in several sizes, each with the same number of packets.

/// A kind of network in several sizes.
pub struct Curve {
    /// Name in the table.
    pub name: &'static str,
    pub sizes: &'static [u32],
    /// The largest size of which instructions are counted.
    pub counted: u32,
    /// The number of data packets of the applications, if the scenario sets it. Otherwise the packets at the
    /// bottleneck are counted.
    pub packets: Option<f64>,
    /// The scenario of a size. The second argument is the part of the packets, 0 to 1.
    text: fn(u32, f64) -> String,
}

impl Curve {
    /// The scenario of a size, with a part of its packets: `amount` is from 0 to 1.
    pub fn scenario(&self, size: u32, amount: f64) -> String {
        let text = (self.text)(size, amount);
        format!("title = \"Growth: {} {size}\"\nseeds = 1\n{text}", self.name)
    }
}

/// Every curve.
pub const CURVES: &[Curve] = &[
    Curve {
        name: "flows",
        sizes: &[10, 100, 1_000, 10_000, 100_000, 1_000_000],
        counted: 10_000,
        packets: None,
        text: flows,
    },
    Curve { name: "hops", sizes: &[1, 2, 4, 8, 16], counted: 16, packets: None, text: hops },
    Curve {
        name: "nodes",
        sizes: &[10, 100, 1_000, 4_096],
        counted: 1_000,
        packets: Some(PACKETS),
        text: nodes,
    },
    Curve {
        name: "buffer",
        sizes: &[10, 100, 1_000, 10_000, 100_000],
        counted: 100_000,
        packets: None,
        text: buffer,
    },
];

/// Endless transfers over one link, which all start in the first 1 / 1.2 of the run.
fn flows(size: u32, amount: f64) -> String {
    format!(
        "phase = \"exact\"\nduration = \"{} us\"\ndisciplines = [\"fifo limit 1000p\"]\n\n{RFC}{}\n{}flows = {size}\nspread = \"{} us\"\n",
        (1_200_000.0 * amount) as u64,
        link("1 ms"),
        bulk("a", "b"),
        (1_000_000.0 * amount) as u64,
    )
}

/// Ten endless transfers over a chain.
fn hops(size: u32, amount: f64) -> String {
    format!(
        "phase = \"exact\"\nduration = \"{} us\"\ndisciplines = [\"fifo limit 1000p\"]\n\n{TIMEOUT}[[topology]]\nkind = \"parking_lot\"\nhops = {size}\n\
         host_rate = \"100 Gbit/s\"\nhost_delay = \"1 us\"\nrate = \"10 Gbit/s\"\ndelay = \"20 us\"\nqdisc = \"compare\"\n\n\
         {}flows = 10\nspread = \"1 ms\"\n\n[record]\nport = \"s1->s2\"\n",
        (500_000.0 * amount) as u64,
        bulk("h1", &format!("h{}", size + 1)),
    )
}

/// Data packets of [`nodes`].
const PACKETS: f64 = 480_000.0;

/// Transfers between the two halves of the hosts of a leaf-spine network. The fewer hosts, the longer are the
/// transfers.
fn nodes(size: u32, amount: f64) -> String {
    // The number of nodes is leaves * (hosts + 1) + spines.
    let (leaves, spines, hosts): (u64, u64, u64) = match size {
        10 => (2, 2, 3),
        100 => (6, 4, 15),
        1_000 => (30, 10, 32),
        _ => (64, 64, 62),
    };
    let pairs = leaves * hosts / 2;
    format!(
        "phase = \"exact\"\nduration = \"1 s\"\ndisciplines = [\"fifo limit 1000p\"]\nroutes = \"flow\"\n\n{TIMEOUT}\
         [[topology]]\nkind = \"leaf_spine\"\nleaves = {leaves}\nspines = {spines}\nhosts = {hosts}\nrate = \"10 Gbit/s\"\n\
         delay = \"2 us\"\nqdisc = \"compare\"\n\n{}size = \"{} b\"\nspread = \"10 ms\"\n\n[record]\nport = \"leaf1->spine1\"\n",
        bulk(&format!("h[1-{pairs}]"), &format!("h[{}-{}]", pairs + 1, 2 * pairs)),
        (PACKETS * amount * 1460.0) as u64 / pairs,
    )
}

/// A hundred endless transfers over a link with a buffer of `size` packets.
fn buffer(size: u32, amount: f64) -> String {
    format!(
        "phase = \"exact\"\nduration = \"{} us\"\ndisciplines = [\"fifo limit {size}p\"]\n\n{TIMEOUT}{}\n{}flows = 100\nspread = \"1 ms\"\n",
        (1_000_000.0 * amount) as u64,
        link("1 ms"),
        bulk("a", "b"),
    )
}

/// Counts of different versions stay comparable with exact phases and the TCP of the RFCs.
const RFC: &str = "[tcp]\npreset = \"rfc\"\n\n";
/// Without it a timeout lasts longer than a run.
const TIMEOUT: &str = "[tcp]\npreset = \"rfc\"\nrto_min = \"10 ms\"\n\n";

fn link(delay: &str) -> String {
    format!(
        "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Gbit/s\"\ndelay = \"{delay}\"\nqdisc = \"compare\"\n"
    )
}

fn bulk(from: &str, to: &str) -> String {
    format!("[[traffic]]\nkind = \"bulk\"\nname = \"bulk\"\nfrom = \"{from}\"\nto = \"{to}\"\n")
}
