//! The pages, by file name.

use std::collections::BTreeMap;
use std::path::Path;

use giveway_disciplines::Family;
use giveway_sim::tcp::Preset;
use giveway_sim::{NodeOrigin, QuicConfig, TcpConfig};
use giveway_switch::options::Options;
use serde_json::Value;

use crate::crates;
use crate::parameters::table;
use crate::{cards, growth, senders, speed, step, varying};

const REFERENCE: &str = "docs/book/reference";
const SUMMARY: &str = "docs/book/SUMMARY.md";
const BEGIN: &str = "<!-- generated from here -->";
const ARBITERS: &str = "arbiters";
const OPTIONS: &str = "Parameters of every arbiter";
const TRAFFIC: &str = "traffic";
const COMMON: &str = "Keys of every source";
const TOPOLOGIES: &str = "topologies";
const SHARED: &str = "Keys of every topology";
const END: &str = "<!-- generated to here -->";

/// One entry of a registry.
struct Entry {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    schema: Option<Value>,
    /// The group of the registry that it belongs to.
    family: Option<Family>,
    /// Example of its use in a scenario.
    usage: String,
    /// Text after its parameters.
    after_parameters: String,
}

impl Entry {
    /// An entry without parameters. The name replaces `{}` in the example.
    fn new(name: &'static str, summary: &'static str, source: &'static str, usage: &str) -> Entry {
        let usage = usage.replace("{}", name);
        Entry { name, summary, source, schema: None, family: None, usage, after_parameters: String::new() }
    }

    /// An entry with its parameters and its group.
    fn with_parameters<S>(entry: &giveway_spec::Entry<S>, usage: &str) -> Entry {
        let plain = Entry::new(entry.name, entry.summary, entry.header, usage);
        Entry { schema: Some((entry.schema)().to_value()), family: entry.family, ..plain }
    }
}

/// Example of a source of traffic in a scenario.
const KIND: &str = "[[traffic]]\nkind = \"{}\"";

/// Makes a page from the tables below a folder, the root of the repository.
type MakePage = fn(&Path) -> Result<String, String>;

/// The pages about recorded measurements: the name of the file, and the function that makes it.
///
/// A page fails if its table cannot be read, or has a wrong row.
const RECORDED: [(&str, MakePage); 6] = [
    ("instructions", speed::page),
    ("growth", growth::page),
    ("step", step::page),
    ("senders", senders::page),
    ("varying", varying::page),
    ("cards", cards::page),
];

/// The contents of all generated files, by path.
pub fn all(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let parts = [
        ("disciplines", "Disciplines", disciplines()),
        ("congestion", "Congestion controls", congestion()),
        (TRAFFIC, "Sources of traffic", traffic()),
        (TOPOLOGIES, "Topologies", topologies()),
        (ARBITERS, "Arbiters of a switch", arbiters()),
        ("switch-traffic", "Traffic of a switch", switch_traffic()),
    ];
    let mut pages = BTreeMap::new();
    let mut contents = String::new();
    for (folder, title, entries) in &parts {
        contents.push_str(&format!("- [{title}](reference/{folder}.md)\n"));
        const TABLE: &str = "| name | description |\n| --- | --- |\n";
        let mut index = format!("# {title}\n\n");
        let mut family = None;
        for (at, entry) in entries.iter().enumerate() {
            let name = entry.name;
            if entry.family != family {
                family = entry.family;
                let Family { name, summary } = family.unwrap_or(Family { name: "Others", summary: "" });
                let gap = if at > 0 { "\n" } else { "" };
                index.push_str(&format!("{gap}## {name}\n\n{summary}\n\n{TABLE}"));
            } else if at == 0 {
                index.push_str(TABLE);
            }
            contents.push_str(&format!("  - [{name}](reference/{folder}/{name}.md)\n"));
            index.push_str(&format!("| [`{name}`]({folder}/{name}.md) | {} |\n", entry.summary));
            pages.insert(format!("{REFERENCE}/{folder}/{name}.md"), page(entry));
        }
        if *folder == ARBITERS {
            let options = schemars::schema_for!(Options).to_value();
            index.push_str(&format!("\n## {OPTIONS}\n\n{}", table(&options)));
        }
        if *folder == TRAFFIC {
            index.push_str(&format!("\n## {COMMON}\n\n{}", common_keys()));
        }
        if *folder == TOPOLOGIES {
            let keys = table(&giveway_scenario::topology_keys().to_value());
            index.push_str(&format!(
                "\n## {SHARED}\n\nThese keys belong to `[[topology]]`, in addition to the parameters of the kind.\n\n{keys}"
            ));
        }
        pages.insert(format!("{REFERENCE}/{folder}.md"), index);
    }
    contents.push_str(
        "- [Command line](reference/command-line.md)\n- [TCP](reference/tcp.md)\n- [QUIC](reference/quic.md)\n- [Keys of a scenario](reference/scenario.md)\n\
         - [Metrics](reference/metrics.md)\n- [Files of a run](reference/files.md)\n",
    );
    for (name, make) in RECORDED {
        let page = make(root)?;
        let title = page.lines().next().unwrap_or_default().trim_start_matches("# ");
        contents.push_str(&format!("- [{title}](reference/{name}.md)\n"));
        pages.insert(format!("{REFERENCE}/{name}.md"), page);
    }
    pages.insert(format!("{REFERENCE}/metrics.md"), giveway_measure::metrics_page());
    pages.insert(format!("{REFERENCE}/files.md"), giveway_record::tables_page());
    pages.insert(format!("{REFERENCE}/command-line.md"), giveway_cli::reference());
    let schema = giveway_scenario::schema().to_value();
    pages.insert("docs/schema/scenario.schema.json".to_owned(), in_lines(&schema));
    pages.insert(format!("{REFERENCE}/scenario.md"), keys(&schema));
    pages.insert(format!("{REFERENCE}/tcp.md"), tcp());
    pages.insert(format!("{REFERENCE}/quic.md"), quic());
    pages.insert(SUMMARY.to_owned(), summary(root, &contents)?);
    pages.insert(crates::FILE.to_owned(), crates::architecture(root)?);
    Ok(pages)
}

fn disciplines() -> Vec<Entry> {
    let usage = "disciplines = [\"{}\"]";
    giveway_disciplines::ALL.iter().map(|entry| Entry::with_parameters(entry, usage)).collect()
}

fn congestion() -> Vec<Entry> {
    let usage = "[tcp]\ncongestion = \"{}\"";
    giveway_sim::tcp::CONTROLLERS.iter().map(|entry| Entry::with_parameters(entry, usage)).collect()
}

fn traffic() -> Vec<Entry> {
    let entries = giveway_sim::SOURCES.iter().map(|source| {
        let after_parameters =
            format!("\nAnd the [keys of every source](../{TRAFFIC}.md#{}).\n", anchor(COMMON));
        Entry { after_parameters, ..Entry::with_parameters(&source.entry, KIND) }
    });
    entries.collect()
}

fn topologies() -> Vec<Entry> {
    let usage = "[[topology]]\nkind = \"{}\"";
    let entries = giveway_scenario::TOPOLOGIES.iter().map(|kind| {
        let after_parameters =
            format!("\nAnd the [keys of every topology](../{TOPOLOGIES}.md#{}).\n", anchor(SHARED));
        Entry { after_parameters, ..Entry::with_parameters(kind, usage) }
    });
    entries.collect()
}

/// The keys that every source of traffic has in addition to its parameters.
fn common_keys() -> String {
    let of = |placed: NodeOrigin| {
        let placed = giveway_sim::SOURCES.iter().filter(move |source| source.placed == placed);
        let names = placed.map(|source| format!("[`{}`]({TRAFFIC}/{0}.md)", source.entry.name));
        names.collect::<Vec<_>>().join(", ")
    };
    format!(
        "These keys belong to `[[traffic]]`, in addition to the parameters of the source. [TCP](tcp.md) and [QUIC](quic.md) list the keys of `tcp` and `quic`.\n\n{}\n\
         Leave out `from` and `to` if a file has the nodes: always with {}, and with {} if its file has nodes. \
         With {} write `hosts` instead.\n",
        table(&giveway_scenario::traffic_keys().to_value()),
        of(NodeOrigin::File),
        of(NodeOrigin::Either),
        of(NodeOrigin::Among)
    )
}

fn arbiters() -> Vec<Entry> {
    let options = schemars::schema_for!(Options).to_value();
    let entries = giveway_switch::ALL.iter().map(|entry| {
        let usage = "backend = \"switch\"\ndisciplines = [\"{}\"]";
        let mut page = Entry::with_parameters(entry, usage);
        // The parameters of every arbiter are on the index page only.
        let schema = page.schema.as_mut().and_then(|schema| schema["properties"].as_object_mut());
        if let (Some(own), Some(all)) = (schema, options["properties"].as_object()) {
            own.retain(|name, _| !all.contains_key(name));
        }
        page.after_parameters =
            format!("\nAnd the [parameters of every arbiter](../{ARBITERS}.md#{}).\n", anchor(OPTIONS));
        page
    });
    entries.collect()
}

fn switch_traffic() -> Vec<Entry> {
    giveway_switch::traffic::SOURCES.iter().map(|entry| Entry::with_parameters(entry, KIND)).collect()
}

/// The anchor of a heading, for links.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// The header of the source file below the name, then the parameters.
fn page(entry: &Entry) -> String {
    let header = giveway_spec::page(entry.source);
    let header = header.split('\n').map(|line| match line.strip_prefix("# ") {
        // The page's own title is one level above.
        Some(heading) => format!("## {heading}"),
        None => plain_links(line),
    });
    let header = header.collect::<Vec<_>>().join("\n");
    let mut page =
        format!("# {}\n\n{header}\n\n## In a scenario\n\n```toml\n{}\n```\n", entry.name, entry.usage);
    if let Some(schema) = &entry.schema {
        page.push_str(&format!("\n## Parameters\n\n{}{}", table(schema), entry.after_parameters));
    }
    page
}

/// The page of TCP: the parameters of every connection, with any congestion control.
fn tcp() -> String {
    let schema = schemars::schema_for!(TcpConfig).to_value();
    let rfc = Preset::Rfc.keys();
    let rfc: String = rfc.iter().map(|(key, value)| format!("| `{key}` | `{value}` |\n")).collect();
    format!(
        "# TCP\n\nThese keys belong to `[tcp]`, for all traffic of a scenario, or to `tcp` of one source of traffic. The defaults are \
         the ones of `preset = \"linux\"`, as most servers run it. Papers and benchmarks from before RACK and HyStart, and comparisons \
         with other simulators, need `preset = \"rfc\"`.\n\n{}\n\
         With `preset = \"rfc\"` these keys have other values:\n\n| key | value |\n| --- | --- |\n{rfc}\n\
         Some values of the preset `\"linux\"` follow from what is written. `rto_margin` is `rto_min`. `receive_window_initial` is at most \
         `receive_window`. Without `sack` or `rack` there is no `dsack`, `tail_probe`, `prr` or `frto`. `hystart` is a part of CUBIC, \
         so other controls begin without it. [`bbr`](congestion/bbr.md) version 1 paces 1 % below its estimate.\n",
        table(&schema)
    )
}

/// The page of QUIC: the parameters of every connection, with any congestion control.
fn quic() -> String {
    let schema = schemars::schema_for!(QuicConfig).to_value();
    format!(
        "# QUIC\n\nThese keys belong to `[quic]`, for all traffic of a scenario, or to `quic` of one source of traffic. They concern \
         [`quic`](traffic/quic.md), and [`web`](traffic/web.md) with `transport = \"quic\"`. The congestion controls are those of \
         [TCP](tcp.md).\n\n{}",
        table(&schema)
    )
}

/// A schema with a line for each property and definition, so that a change of one of them is a changed line.
fn in_lines(schema: &Value) -> String {
    let parts = schema.as_object().into_iter().flatten().map(|(name, part)| {
        let entries: Vec<String> = match part {
            Value::Object(entries) => entries
                .iter()
                .map(|(name, entry)| format!("    {}: {entry}", Value::from(name.as_str())))
                .collect(),
            _ => Vec::new(),
        };
        let name = Value::from(name.as_str());
        if entries.is_empty() {
            format!("  {name}: {part}")
        } else {
            format!("  {name}: {{\n{}\n  }}", entries.join(",\n"))
        }
    });
    format!("{{\n{}\n}}\n", parts.collect::<Vec<_>>().join(",\n"))
}

/// The keys of a scenario file, part by part.
fn keys(schema: &Value) -> String {
    let part = |title: &str, part: &Value| format!("## {title}\n\n{}\n", table(part));
    let properties = &schema["properties"];
    let link = &properties["link"]["items"];
    let parts = [
        part("The file", schema),
        part("`timing`, as a table", &properties["timing"]["anyOf"][1]),
        part("`[[medium]]`, on a network", &properties["medium"]["items"]),
        part("`[[link]]`, on a network", link),
        part("`[switch]`, on a switch", &properties["switch"]),
        part("`[record]`, on a network", &properties["record"]),
        part("`[short]`", &properties["short"]),
        part("`[sweep]`", &properties["sweep"]),
    ];
    format!(
        "# Keys of a scenario\n\n[Sources of traffic](traffic.md), with the keys of all of them, and [those of a switch](switch-traffic.md) \
         have separate pages, and so have [topologies](topologies.md), [TCP](tcp.md) and [QUIC](quic.md). Editors complete and check \
         scenarios with the [JSON Schema](https://json-schema.org) in `docs/schema/scenario.schema.json`.\n\n{}",
        parts.concat()
    )
}

/// The table of contents, with its generated part replaced.
fn summary(root: &Path, contents: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join(SUMMARY)).map_err(|error| format!("{SUMMARY}: {error}"))?;
    let place = |mark: &str| text.find(mark).ok_or(format!("{SUMMARY} has no line \"{mark}\""));
    let (begin, end) = (place(BEGIN)? + BEGIN.len(), place(END)?);
    Ok(format!("{}\n\n{contents}\n{}", &text[..begin], &text[end..]))
}

/// Replaces links to Rust items by their text, since only rustdoc can follow them.
fn plain_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(open) = rest.find("[`") {
        let Some(close) = rest[open..].find("`]").map(|at| open + at) else { break };
        out.push_str(&rest[..open]);
        out.push_str(&rest[open + 1..=close]);
        rest = &rest[close + 2..];
        if let Some(target) = rest.strip_prefix('(') {
            rest = target.split_once(')').map_or("", |(_, after)| after);
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_traffic_has_the_keys_of_every_source() {
        let page = common_keys();
        for key in
            ["kind", "name", "from", "to", "hosts", "every_pair", "start", "stop", "class", "reserved", "tcp"]
        {
            assert!(page.contains(&format!("| `{key}` | ")), "{key}: {page}");
        }
        assert!(page.ends_with(
            "Leave out `from` and `to` if a file has the nodes: always with [`flow_list`](traffic/flow_list.md), and with \
             [`datagram_list`](traffic/datagram_list.md) if its file has nodes. With [`permutation`](traffic/permutation.md), \
             [`all_to_all`](traffic/all_to_all.md) write `hosts` instead.\n"
        ));
        assert!(
            traffic()
                .iter()
                .all(|entry| entry.after_parameters.contains("(../traffic.md#keys-of-every-source)"))
        );
    }

    #[test]
    fn links_to_items_become_their_text() {
        assert_eq!(
            plain_links("it requested ([`Net::wake_at`]) or [`drr`](crate::drr)."),
            "it requested (`Net::wake_at`) or `drr`."
        );
        assert_eq!(plain_links("[RFC 1](https://example.org) stays"), "[RFC 1](https://example.org) stays");
    }
}
