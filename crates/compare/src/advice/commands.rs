//! The commands that set a discipline up on a target, ready to paste, and those that undo it.
//!
//! Both directions are shaped on this machine, which is the router or the only host behind the line: upstream
//! where packets leave at the WAN interface, downstream where they have come in, by an intermediate device
//! (`ifb`, tc-mirred(8)).

use giveway_disciplines::{InLinux, Spec};
use giveway_kernel_plan::plan::Plan;
use giveway_qdisc::Rate;

use super::target::Target;

/// The intermediate device of packets that come in. A name of Linux is at most 15 characters long.
const IFB: &str = "ifb-giveway";
/// Largest packet on most lines, bytes.
const MTU: u64 = 1500;

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
    /// The interface towards the provider.
    pub wan: &'a str,
    /// The shaped rate upstream.
    pub up: Rate,
    /// The shaped rate downstream.
    pub down: Rate,
}

/// True if a discipline can be set up on a target.
pub(super) fn can_have(target: Target, spec: &Spec) -> bool {
    match target {
        Target::Tc => spec.in_linux().is_some(),
        Target::Openwrt => spec.in_linux().is_some_and(|linux| linux.sqm.is_some()),
        Target::Giveway | Target::Any => true,
    }
}

/// The commands for a discipline on a target. `fallback` is a discipline for `tc` of a Linux that does not
/// have the first one.
pub(super) fn of(target: Target, spec: &Spec, fallback: Option<&Spec>, place: &Place<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let linux = spec.in_linux();
    match (target, linux) {
        (Target::Openwrt, Some(linux)) => blocks.extend(openwrt(&linux, place).into_iter().flatten()),
        (Target::Tc | Target::Any, Some(linux)) => {
            blocks.push(block("Set up, as root", tc(spec, &linux, place)));
            let other = fallback.and_then(|other| Some((other, other.in_linux()?)));
            if let Some((other, its)) = other {
                let title = format!(
                    "Instead, if tc does not know \"{}\" (\"Specified qdisc kind is unknown\")",
                    linux.qdisc
                );
                blocks.push(Block { title, lines: tc(other, &its, place) });
            }
            blocks.push(block("Watch", vec![format!("tc -s qdisc show dev {}", place.wan)]));
            blocks.push(block("Undo", tc_undo(place)));
        }
        _ => blocks.extend(giveway(spec, place)),
    }
    blocks
}

/// A rate as `tc` and OpenWrt take it, rounded down to whole kbit/s.
fn kbit(rate: Rate) -> u64 {
    (rate.as_bit() / 1000).max(1)
}

/// The commands at one interface: a discipline that shapes, or one below a shaper.
fn at(device: &str, rate: Rate, spec: &Spec, linux: &InLinux) -> Vec<String> {
    let (rate, text) = (kbit(rate), linux.text(spec));
    if linux.shapes {
        return vec![format!("tc qdisc add dev {device} root {text} bandwidth {rate}kbit")];
    }
    vec![
        format!("tc qdisc add dev {device} root handle 1: htb default 1"),
        format!("tc class add dev {device} parent 1: classid 1:1 htb rate {rate}kbit ceil {rate}kbit"),
        format!("tc qdisc add dev {device} parent 1:1 {text}"),
    ]
}

/// The rate that commands set up.
pub(super) fn whole(rate: Rate) -> Rate {
    Rate::kbit(kbit(rate))
}

fn tc(spec: &Spec, linux: &InLinux, place: &Place<'_>) -> Vec<String> {
    let wan = place.wan;
    // The commands may be pasted again, with another rate: a tree of htb cannot be replaced by another one,
    // nor a filter by itself.
    let mut lines: Vec<String> =
        tc_undo(place).into_iter().map(|line| format!("{line} 2>/dev/null || true")).collect();
    lines.extend(at(wan, place.up, spec, linux));
    lines.push(format!("ip link add {IFB} type ifb"));
    lines.push(format!("ip link set {IFB} up"));
    lines.extend(at(IFB, place.down, spec, linux));
    if linux.shapes {
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
    let wan = place.wan;
    vec![
        format!("tc qdisc del dev {wan} root"),
        format!("tc qdisc del dev {wan} ingress"),
        format!("ip link del {IFB}"),
    ]
}

/// A queue of OpenWrt's sqm-scripts (package `luci-app-sqm`). The upload is the direction away from the home.
fn openwrt(linux: &InLinux, place: &Place<'_>) -> Option<[Block; 2]> {
    let script = linux.sqm?;
    let set = |key: &str, value: String| format!("uci set sqm.giveway.{key}='{value}'");
    let lines = vec![
        "uci set sqm.giveway=queue".to_owned(),
        set("interface", place.wan.to_owned()),
        set("qdisc", linux.qdisc.to_owned()),
        set("script", script.to_owned()),
        set("upload", kbit(place.up).to_string()),
        set("download", kbit(place.down).to_string()),
        set("enabled", "1".to_owned()),
        "uci commit sqm && /etc/init.d/sqm restart".to_owned(),
    ];
    let undo = vec!["uci delete sqm.giveway && uci commit sqm && /etc/init.d/sqm restart".to_owned()];
    Some([block("Set up on the router, with the package sqm-scripts", lines), block("Undo", undo)])
}

fn giveway(spec: &Spec, place: &Place<'_>) -> Vec<Block> {
    let Place { wan, up, down } = place;
    let (up, down) = (kbit(*up), kbit(*down));
    let mut blocks = vec![block(
        "Set up as a bridge between LAN and the line; Ctrl-C ends it",
        vec![format!(
            "giveway live --in LAN --out {wan} --rate {up}kbit --rate-reverse {down}kbit --qdisc \"{spec}\" --qdisc-reverse \
             \"{spec}\" --fix-offloads"
        )],
    )];
    let bare = spec.to_string();
    if Plan::new(&bare, Some(Rate::kbit(up)), None, MTU).is_ok() {
        blocks.push(block(
            "Or in the kernel of the router, as a BPF qdisc (Linux 6.16 or later)",
            vec![
                format!("giveway kernel load \"{spec}\" --dev {wan} --rate {up}kbit"),
                format!("giveway kernel load \"{spec}\" --dev LAN --rate {down}kbit"),
            ],
        ));
        blocks.push(block(
            "Undo that",
            vec![format!("giveway kernel unload --dev {wan}"), "giveway kernel unload --dev LAN".to_owned()],
        ));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(target: Target, spec: &str, fallback: Option<&str>) -> String {
        let place = Place { wan: "eth0", up: Rate::kbit(1900), down: Rate::kbit(15_200) };
        let fallback: Option<Spec> = fallback.map(|text| text.parse().unwrap());
        let blocks = of(target, &spec.parse().unwrap(), fallback.as_ref(), &place);
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
