//! Everything that is chosen by name: the registries that `giveway list` lists and `giveway explain`
//! explains.

use clap::ValueEnum;
use giveway_disciplines::Family;
use schemars::Schema;

/// The registries, as arguments of `giveway list`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RegistryKind {
    /// Queue disciplines
    Disciplines,
    /// TCP congestion controls
    Congestion,
    /// Sources of traffic
    Traffic,
    /// Arbiters of a switch
    #[value(alias = "schedulers")]
    Arbiters,
    /// Traffic of a switch
    SwitchTraffic,
}

/// A registry.
pub struct Registry {
    /// The argument of `giveway list` for it.
    pub kind: RegistryKind,
    /// Heading of its list.
    pub title: &'static str,
    /// Name of an entry's kind, with its article.
    pub one: &'static str,
    /// Its entries, in the order of the registry.
    pub things: Vec<Thing>,
}

/// One entry of a registry.
pub struct Thing {
    /// Name in scenarios and on the command line.
    pub name: &'static str,
    /// Group in which it is listed, if its registry has groups.
    pub family: Option<Family>,
    /// One line that describes it.
    pub summary: &'static str,
    /// Text of its source file, whose header is its documentation.
    pub source: &'static str,
    /// JSON Schema of its parameters; `None` if it has none.
    pub schema: Option<fn() -> Schema>,
}

impl Thing {
    /// The header of its source file, as Markdown.
    pub fn page(&self) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }
}

/// All registries, those of the network first.
pub fn all() -> Vec<Registry> {
    // Entries of different registries are of different types with the same fields.
    macro_rules! things {
        ($entry:ident of $entries:expr, $family:expr, $schema:expr) => {
            $entries
                .iter()
                .map(|$entry| Thing {
                    name: $entry.name,
                    family: $family,
                    summary: $entry.summary,
                    source: $entry.source,
                    schema: $schema,
                })
                .collect()
        };
    }
    vec![
        Registry {
            kind: RegistryKind::Disciplines,
            title: "Queue disciplines",
            one: "a queue discipline",
            things: things!(entry of giveway_disciplines::ALL, entry.family, Some(entry.schema)),
        },
        Registry {
            kind: RegistryKind::Congestion,
            title: "TCP congestion controls",
            one: "a TCP congestion control",
            things: things!(entry of giveway_sim::tcp::CONTROLLERS, None, None),
        },
        Registry {
            kind: RegistryKind::Traffic,
            title: "Sources of traffic",
            one: "a source of traffic",
            things: things!(entry of giveway_sim::SOURCES, None, Some(entry.schema)),
        },
        Registry {
            kind: RegistryKind::Arbiters,
            title: "Arbiters of a switch",
            one: "an arbiter of a switch",
            things: things!(entry of giveway_switch::ALL, entry.family, Some(entry.schema)),
        },
        Registry {
            kind: RegistryKind::SwitchTraffic,
            title: "Traffic of a switch",
            one: "traffic of a switch",
            things: things!(entry of giveway_switch::traffic::SOURCES, None, Some(entry.schema)),
        },
    ]
}
