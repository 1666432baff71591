//! What there is to choose from by name, of every host: what `giveway list` lists and `giveway explain` explains.

use clap::ValueEnum;
use giveway_disciplines::Family;
use schemars::Schema;

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Queue disciplines
    Disciplines,
    /// TCP congestion controls
    Congestion,
    /// Sources of traffic
    Traffic,
    /// Schedulers of a switch
    Schedulers,
    /// Traffic of a switch
    SwitchTraffic,
}

/// A registry.
pub struct Registry {
    /// Which.
    pub what: What,
    /// All of it, as a heading.
    pub title: &'static str,
    /// One of it, with its article.
    pub one: &'static str,
    /// What is in it.
    pub things: Vec<Thing>,
}

/// One thing of a registry.
pub struct Thing {
    /// How it is written.
    pub name: &'static str,
    /// Group in which it is listed, if its registry has groups.
    pub family: Option<Family>,
    /// One line that describes it.
    pub summary: &'static str,
    /// Its source file, whose header explains it.
    pub source: &'static str,
    /// Its parameters, if it can have any.
    pub schema: Option<fn() -> Schema>,
}

impl Thing {
    /// The header of its source file, as Markdown.
    pub fn page(&self) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

/// All of them, those of the network first.
pub fn all() -> Vec<Registry> {
    // Entries of different registries are of different types with the same fields.
    macro_rules! things {
        ($entry:ident of $entries:expr, $family:expr, $schema:expr) => {
            $entries
                .iter()
                .map(|$entry| Thing {
                    name: $entry.name,
                    summary: $entry.summary,
                    family: $family,
                    source: $entry.source,
                    schema: $schema,
                })
                .collect()
        };
    }
    vec![
        Registry {
            what: What::Disciplines,
            title: "Queue disciplines",
            one: "a queue discipline",
            things: things!(entry of giveway_disciplines::ALL, entry.family, Some(entry.schema)),
        },
        Registry {
            what: What::Congestion,
            title: "TCP congestion controls",
            one: "a TCP congestion control",
            things: things!(entry of giveway_sim::tcp::CONTROLLERS, None),
        },
        Registry {
            what: What::Traffic,
            title: "Sources of traffic",
            one: "a source of traffic",
            things: things!(entry of giveway_sim::SOURCES, Some(entry.schema)),
        },
        Registry {
            what: What::Arbiters,
            title: "Arbiters of a switch",
            one: "an arbiter of a switch",
            things: things!(entry of giveway_switch::ALL, entry.family, Some(entry.schema)),
        },
        Registry {
            what: What::SwitchTraffic,
            title: "Traffic of a switch",
            one: "traffic of a switch",
            things: things!(entry of giveway_switch::traffic::SOURCES, Some(entry.schema)),
        },
    ]
}
