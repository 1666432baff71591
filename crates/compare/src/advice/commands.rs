//! The commands that set a discipline up on a target, ready to paste, those that undo it, and those that
//! check whether it helped.
//!
//! Both directions are shaped on this machine, which is the router or the only host behind the line: upstream
//! where packets leave at the WAN interface, downstream where they have come in, by an intermediate device
//! (`ifb`, tc-mirred(8)). A direction without a rate is left alone.

use giveway_disciplines::{InLinux, Spec};
use giveway_kernel_plan::plan::Plan;
use giveway_qdisc::Rate;
use giveway_workload::Direction;

use super::super::pair::{Pair, needs_bandwidth};
use super::overhead::Overhead;
use super::target::Target;

/// The intermediate device of packets that come in. A name of Linux is at most 15 characters long.
const IFB: &str = "ifb-giveway";
/// Largest packet on most lines, bytes.
const MTU: u64 = 1500;
/// The word for the interface towards the provider, if it is not known.
const WAN: &str = "WAN";

/// Commands with a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The title, without a colon.
    pub title: String,
    /// The commands.
    pub lines: Vec<String>,
}

fn block(title: &str, lines: Vec<String>) -> Block {
    Block { title: title.to_owned(), lines }
}

/// The place where the discipline is set up.
pub(super) struct Place<'a> {
    /// The interface towards the provider; `None` if it is not known.
    pub wan: Option<&'a str>,
    /// The shaped rates upstream and downstream; `None` for a direction that stays as it is.
    pub rates: [Option<Rate>; 2],
    /// The bytes that the line adds to packets.
    pub overhead: Option<Overhead>,
}

impl<'a> Place<'a> {
    fn interface(&self) -> &'a str {
        self.wan.unwrap_or(WAN)
    }

    /// The rate of a direction.
    fn rate(&self, direction: Direction) -> Option<Rate> {
        self.rates[direction as usize]
    }
}

/// True if disciplines can be set up on a target. A section of sqm has one discipline for both directions.
pub(super) fn can_have(target: Target, pair: &Pair) -> bool {
    match target {
        Target::Tc => pair.iter().all(|spec| spec.in_linux().is_some()),
        Target::Openwrt => {
            pair.up == pair.down && pair.up.in_linux().is_some_and(|linux| linux.sqm.is_some())
        }
        Target::Giveway | Target::Any => true,
    }
}

/// The commands for a discipline on a target. `fallback` is a discipline for `tc` of a Linux that does not
/// have the first one.
pub(super) fn of(target: Target, pair: &Pair, fallback: Option<&Pair>, place: &Place<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    match target {
        Target::Openwrt => blocks.extend(openwrt(pair, place).into_iter().flatten()),
        Target::Tc | Target::Any if can_have(Target::Tc, pair) => {
            blocks.push(block("Set up, as root", tc(pair, place)));
            if let Some(other) = fallback {
                let name = pair.up.in_linux().map_or("it", |linux| linux.qdisc);
                let title =
                    format!("Instead, if tc does not know \"{name}\" (\"Specified qdisc kind is unknown\")");
                blocks.push(Block { title, lines: tc(other, place) });
            }
            blocks.push(block("Watch", vec![format!("tc -s qdisc show dev {}", place.interface())]));
            blocks.push(block("Undo", tc_undo(place)));
        }
        _ => blocks.extend(giveway(pair, place)),
    }
    blocks
}

/// The commands that show whether the setup helped, with the rates of the shaper.
pub(super) fn check(target: Target, wan: Option<&str>, [up, down]: [Option<Rate>; 2]) -> Block {
    let busy = match (up, down) {
        (Some(_), Some(_)) => "an upload, then a download,",
        (Some(_), None) => "an upload",
        _ => "a download",
    };
    let mut lines = vec![
        "ping -c 20 HOST                 # the idle line; HOST is any near server that answers".to_owned(),
        format!(
            "ping -c 100 -i 0.2 HOST         # while {busy} fills the line, before the setup and after it"
        ),
    ];
    if target == Target::Giveway {
        let at = wan.map_or("--in LAN --out WAN".to_owned(), |wan| format!("--wan {wan}"));
        lines.push(format!("giveway live {at} --qdisc \"fifo limit 1000p\" --for 5m --record before"));
        lines.push("giveway live ... --for 5m --record after   # with the flags of the setup".to_owned());
        lines.push("giveway report before after".to_owned());
    }
    block("Check that it helped", lines)
}

/// A rate as `tc` and OpenWrt take it, rounded down to whole kbit/s.
fn kbit(rate: Rate) -> u64 {
    (rate.as_bit() / 1000).max(1)
}

/// The rate that commands set up.
pub(super) fn whole(rate: Rate) -> Rate {
    Rate::kbit(kbit(rate))
}

/// The commands at one interface: a discipline that shapes, or one below a shaper.
fn at(device: &str, rate: Rate, spec: &Spec, overhead: Option<Overhead>) -> Vec<String> {
    let linux = spec.in_linux().unwrap_or(InLinux::named(spec.name()));
    let text = linux.text(spec);
    if linux.shapes {
        let rate =
            if needs_bandwidth(spec) { format!(" bandwidth {}kbit", kbit(rate)) } else { String::new() };
        let overhead = overhead.map_or(String::new(), |overhead| format!(" {overhead}"));
        return vec![format!("tc qdisc add dev {device} root {text}{rate}{overhead}")];
    }
    let rate = kbit(overhead.map_or(rate, |overhead| overhead.without_framing(rate)));
    let stab = overhead.map_or(String::new(), |overhead| format!("{} ", overhead.stab()));
    vec![
        format!("tc qdisc add dev {device} root handle 1: {stab}htb default 1"),
        format!("tc class add dev {device} parent 1: classid 1:1 htb rate {rate}kbit ceil {rate}kbit"),
        format!("tc qdisc add dev {device} parent 1:1 {text}"),
    ]
}

fn tc(pair: &Pair, place: &Place<'_>) -> Vec<String> {
    let wan = place.interface();
    // The commands may be pasted again, with another rate: a tree of htb cannot be replaced by another one,
    // nor a filter by itself.
    let mut lines: Vec<String> =
        tc_undo(place).into_iter().map(|line| format!("{line} 2>/dev/null || true")).collect();
    if let Some(up) = place.rate(Direction::Up) {
        lines.extend(at(wan, up, &pair.up, place.overhead));
    }
    let Some(down) = place.rate(Direction::Down) else { return lines };
    lines.push(format!("ip link add {IFB} type ifb"));
    lines.push(format!("ip link set {IFB} up"));
    lines.extend(at(IFB, down, &pair.down, place.overhead));
    if needs_bandwidth(&pair.down) {
        let last = lines.last_mut().expect("it was added above");
        // Packets that come in have already crossed the line: those that are dropped here count there.
        last.push_str(" ingress");
    }
    lines.push(format!("tc qdisc add dev {wan} handle ffff: ingress"));
    lines.push(format!(
        "tc filter add dev {wan} parent ffff: protocol all matchall action mirred egress redirect dev {IFB}"
    ));
    lines
}

fn tc_undo(place: &Place<'_>) -> Vec<String> {
    let wan = place.interface();
    let up = place.rate(Direction::Up).map(|_| format!("tc qdisc del dev {wan} root"));
    let down = place
        .rate(Direction::Down)
        .map(|_| [format!("tc qdisc del dev {wan} ingress"), format!("ip link del {IFB}")]);
    up.into_iter().chain(down.into_iter().flatten()).collect()
}

/// A queue of OpenWrt's sqm-scripts (package `luci-app-sqm`). The upload is the direction away from the home.
/// A rate of 0 leaves a direction as it is.
fn openwrt(pair: &Pair, place: &Place<'_>) -> Option<[Block; 2]> {
    let linux = pair.up.in_linux()?;
    let script = linux.sqm?;
    let set = |key: &str, value: String| format!("uci set sqm.giveway.{key}='{value}'");
    let rate = |way: Direction| place.rate(way).map_or(0, kbit).to_string();
    let mut lines = vec![
        "uci set sqm.giveway=queue".to_owned(),
        set("interface", place.interface().to_owned()),
        set("qdisc", linux.qdisc.to_owned()),
        set("script", script.to_owned()),
        set("upload", rate(Direction::Up)),
        set("download", rate(Direction::Down)),
    ];
    if let Some(overhead) = place.overhead {
        let (bytes, _, framing) = overhead.parts();
        let layer = if framing == giveway_disciplines::cake::Framing::Atm { "atm" } else { "ethernet" };
        lines.extend([set("linklayer", layer.to_owned()), set("overhead", bytes.to_string())]);
    }
    lines.push(set("enabled", "1".to_owned()));
    lines.push("uci commit sqm && /etc/init.d/sqm restart".to_owned());
    let undo = vec!["uci delete sqm.giveway && uci commit sqm && /etc/init.d/sqm restart".to_owned()];
    Some([block("Set up on the router, with the package sqm-scripts", lines), block("Undo", undo)])
}

fn giveway(pair: &Pair, place: &Place<'_>) -> Vec<Block> {
    let (up, down) = (place.rate(Direction::Up), place.rate(Direction::Down));
    let side = |rate: Option<Rate>, spec: &Spec, suffix: &str| match rate {
        Some(rate) => format!(" --rate{suffix} {}kbit --qdisc{suffix} \"{spec}\"", kbit(rate)),
        // Without a rate the queue stays in the line.
        None => format!(" --qdisc{suffix} \"fifo limit 1000p\""),
    };
    let overhead = place.overhead.map_or(String::new(), |overhead| {
        let (bytes, mpu, _) = overhead.parts();
        format!(" --overhead {} --mpu {mpu}", bytes.max(0))
    });
    let flags =
        format!("{}{}{overhead} --fix-offloads", side(up, &pair.up, ""), side(down, &pair.down, "-reverse"));
    let mut blocks = vec![match place.wan {
        Some(wan) => block(
            "Set up on the router, as root; Ctrl-C ends it",
            vec![format!("giveway live --wan {wan}{flags}")],
        ),
        None => block(
            "Set up as a bridge between LAN and the line, as root; Ctrl-C ends it",
            vec![format!("giveway live --in LAN --out {WAN}{flags}")],
        ),
    }];
    let wan = place.interface();
    let in_kernel = |spec: &Spec, rate: Option<Rate>, device: &str| {
        let rate = rate.filter(|rate| Plan::new(&spec.to_string(), Some(*rate), None, MTU).is_ok())?;
        Some(format!("giveway kernel load \"{spec}\" --dev {device} --rate {}kbit", kbit(rate)))
    };
    let loads: Vec<String> =
        [in_kernel(&pair.up, up, wan), in_kernel(&pair.down, down, "LAN")].into_iter().flatten().collect();
    if loads.len() == place.rates.iter().flatten().count() {
        let unload = |(rate, device): (Option<Rate>, &str)| {
            rate.map(|_| format!("giveway kernel unload --dev {device}"))
        };
        let unloads = [(up, wan), (down, "LAN")].into_iter().filter_map(unload).collect();
        blocks.push(block("Or in the kernel of the router, as a BPF qdisc (Linux 6.16 or later)", loads));
        blocks.push(block("Undo that", unloads));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(target: Target, spec: &str, fallback: Option<&str>) -> String {
        let rates = [Some(Rate::kbit(1900)), Some(Rate::kbit(15_200))];
        at_place(target, spec, fallback, &Place { wan: Some("eth0"), rates, overhead: None })
    }

    fn at_place(target: Target, spec: &str, fallback: Option<&str>, place: &Place<'_>) -> String {
        let pair = |text: &str| Pair::same(text.parse().unwrap());
        let blocks = of(target, &pair(spec), fallback.map(pair).as_ref(), place);
        let text = |block: Block| format!("{}:\n{}\n", block.title, block.lines.join("\n"));
        blocks.into_iter().map(text).collect()
    }

    #[test]
    fn cake_shapes_by_itself() {
        insta::assert_snapshot!(written(Target::Tc, "cake diffserv4", Some("fq_codel limit 1000p noecn")));
    }

    #[test]
    fn openwrt_has_a_section_of_sqm() {
        insta::assert_snapshot!(written(Target::Openwrt, "cake", None));
    }

    #[test]
    fn a_discipline_of_giveway_runs_as_a_bridge_or_in_the_kernel() {
        insta::assert_snapshot!(written(Target::Giveway, "efd limit 100p", None));
    }

    #[test]
    fn fifos_have_two_names_in_linux() {
        let tc = |text: &str| {
            let spec: Spec = text.parse().unwrap();
            spec.in_linux().map(|linux| linux.text(&spec))
        };
        assert_eq!(tc("fifo limit 100p").as_deref(), Some("pfifo limit 100"));
        assert_eq!(tc("fifo limit 64kb").as_deref(), Some("bfifo limit 64kb"));
        // The name of a spec leaves the default out, and that of Linux is another one.
        assert_eq!(tc("fifo limit 1000p").as_deref(), Some("pfifo limit 1000"));
        assert_eq!(tc("pfifo").as_deref(), Some("pfifo limit 1000"));
        assert_eq!(tc("fifo limit 64kb drop head"), None);
        assert_eq!(tc("efd"), None);
    }
}
