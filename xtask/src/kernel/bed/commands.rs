//! The commands that `giveway compare` recommends, run in the virtual machine: each succeeds, the
//! disciplines are those that were asked for, and the last block restores the state before.

use serde_json::Value;

use crate::repository::Repository;

/// Candidates compared with a long `fifo`, which is so bad that each of them is recommended. With several the
/// first is recommended, and the next is its replacement where Linux does not have it.
const CANDIDATES: [&[&str]; 3] =
    [&["cake", "fq_codel"], &["fq_codel limit 1000p"], &["cake diffserv4", "pie"]];
/// The interface towards the provider in the commands.
const WAN: &str = "wan0";

/// The script of the machine, for the functions of `kernel/test/testbed.sh`.
pub fn script(repository: &Repository) -> Result<String, String> {
    let mut script =
        format!("ip link add {WAN} type veth peer name lan0\nip link set {WAN} up\nip link set lan0 up\n");
    for candidates in CANDIDATES {
        let blocks = recommended(repository, candidates)?;
        let undo = blocks.iter().find(|(title, _)| title == "Undo");
        let (_, undo) = undo.ok_or_else(|| format!("{}: nothing undoes the commands", candidates[0]))?;
        let setups =
            blocks.iter().filter(|(title, _)| title.starts_with("Set up") || title.starts_with("Instead"));
        for (_, lines) in setups {
            script.push_str(&format!("before {WAN}\n"));
            // Pasted twice, as when the rate was wrong the first time.
            for line in lines.iter().chain(lines).chain([&format!("tc -s qdisc show dev {WAN}")]) {
                script.push_str(&format!("try '{line}'\n"));
            }
            for line in
                lines.iter().filter(|line| line.starts_with("tc qdisc add") && !line.contains("handle ffff:"))
            {
                script.push_str(&shown(line));
            }
            undo.iter().for_each(|line| script.push_str(&format!("try '{line}'\n")));
            script.push_str(&format!("restored {WAN}\n"));
        }
    }
    Ok(script)
}

/// The line of the script that looks for the discipline and the rate of a command, as in
/// `tc qdisc add dev wan0 root cake bandwidth 1900kbit`.
fn shown(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let device = words[4];
    let kind = words[5..].iter().skip(1).find(|word| !matches!(**word, "handle" | "1:" | "1:1" | "root"));
    let rate = words.iter().position(|word| *word == "bandwidth").map_or("", |at| words[at + 1]);
    // tc writes 1900kbit as 1900Kbit.
    format!("shows {device} {} {}\n", kind.unwrap_or(&"?"), rate.replace("kbit", "Kbit"))
}

/// Titles and commands of the recommendation.
fn recommended(repository: &Repository, candidates: &[&str]) -> Result<Vec<(String, Vec<String>)>, String> {
    let mut words =
        vec!["compare", "examples/home-uplink.pcapng", "--rate-up", "2mbit", "--rate-down", "16mbit"];
    words.extend(["--wan", WAN, "--seeds", "1", "--json", "--quiet", "--qdisc", "fifo limit 1000p"]);
    candidates.iter().for_each(|candidate| words.extend(["--qdisc", candidate]));
    let program = repository.built("debug", "giveway")?.to_string_lossy().into_owned();
    let output: Value =
        serde_json::from_str(&repository.output(&program, &words)?).map_err(|error| error.to_string())?;
    let commands = output["links"][0]["recommendation"]["commands"].as_array();
    let commands = commands.filter(|blocks| !blocks.is_empty());
    let commands = commands.ok_or_else(|| format!("{}: compare recommends no commands", candidates[0]))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = |block: &Value| block["lines"].as_array().into_iter().flatten().map(text).collect();
    Ok(commands.iter().map(|block| (text(&block["title"]), lines(block))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_tells_what_tc_shows_after_it() {
        let cake = shown("tc qdisc replace dev wan0 root cake bandwidth 1900kbit");
        assert_eq!(cake, "shows wan0 cake 1900Kbit\n");
        assert_eq!(shown("tc qdisc replace dev wan0 root handle 1: htb default 1"), "shows wan0 htb \n");
        assert_eq!(
            shown("tc qdisc replace dev ifb-giveway parent 1:1 fq_codel limit 1000"),
            "shows ifb-giveway fq_codel \n"
        );
    }
}
