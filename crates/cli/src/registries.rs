//! Everything that is chosen by name: the registries that `giveway list` lists and `giveway explain`
//! explains.

use clap::ValueEnum;
use giveway_disciplines::Needs;
use giveway_spec::{Entry, Family};
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
    /// The place where a discipline runs, or the knowledge that it needs; empty for all other entries.
    pub place: &'static str,
    /// One line that describes it.
    pub summary: &'static str,
    /// Text of its source file, whose header is its documentation.
    pub source: &'static str,
    /// JSON Schema of its parameters; `None` if it has none.
    pub schema: Option<fn() -> Schema>,
}

impl Thing {
    /// The thing of an entry.
    fn of<S>(entry: &Entry<S>) -> Thing {
        Thing {
            name: entry.name,
            family: entry.family,
            place: "",
            summary: entry.summary,
            source: entry.source,
            schema: Some(entry.schema),
        }
    }

    /// The thing of a discipline.
    fn discipline(entry: &giveway_disciplines::Entry) -> Thing {
        let spec = entry.default();
        let place = match spec.needs() {
            _ if spec.in_mainline() => "tc",
            Needs::Nothing => "here",
            Needs::Reservations => "reserved",
            Needs::Sizes => "future",
            Needs::Labels => "labels",
            Needs::NextHops => "hops",
        };
        Thing { place, ..Thing::of(entry) }
    }

    /// The header of its source file, as Markdown.
    pub fn page(&self) -> String {
        giveway_spec::page(self.source)
    }
}

/// All registries, those of the network first.
pub fn all() -> Vec<Registry> {
    vec![
        Registry {
            kind: RegistryKind::Disciplines,
            title: "Queue disciplines",
            one: "a queue discipline",
            things: giveway_disciplines::ALL.iter().map(Thing::discipline).collect(),
        },
        Registry {
            kind: RegistryKind::Congestion,
            title: "TCP congestion controls",
            one: "a TCP congestion control",
            things: giveway_sim::tcp::CONTROLLERS.iter().map(Thing::of).collect(),
        },
        Registry {
            kind: RegistryKind::Traffic,
            title: "Sources of traffic",
            one: "a source of traffic",
            things: giveway_sim::SOURCES.iter().map(|source| Thing::of(&source.entry)).collect(),
        },
        Registry {
            kind: RegistryKind::Arbiters,
            title: "Arbiters of a switch",
            one: "an arbiter of a switch",
            things: giveway_switch::ALL.iter().map(Thing::of).collect(),
        },
        Registry {
            kind: RegistryKind::SwitchTraffic,
            title: "Traffic of a switch",
            one: "traffic of a switch",
            things: giveway_switch::traffic::SOURCES.iter().map(Thing::of).collect(),
        },
    ]
}
