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

/// The place where a discipline runs, or the knowledge that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A qdisc of mainline Linux, too.
    Linux,
    /// Giveway only.
    Here,
    /// Giveway only, with reservations of flows.
    Reserved,
    /// Giveway only, with the knowledge that these words name.
    More {
        /// A word for programs.
        word: &'static str,
        /// The missing knowledge, in words.
        needs: &'static str,
    },
}

impl Place {
    /// All places, in the order of lists.
    pub const ORDER: [fn(&Place) -> bool; 4] = [
        |place| matches!(place, Place::Linux),
        |place| matches!(place, Place::Here),
        |place| matches!(place, Place::Reserved),
        |place| matches!(place, Place::More { .. }),
    ];

    /// One word, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Place::Linux => "tc",
            Place::Here => "here",
            Place::Reserved => "reserved",
            Place::More { word, .. } => word,
        }
    }

    /// The heading of its disciplines.
    pub fn heading(&self) -> &'static str {
        match self {
            Place::Linux => "In Linux today, as a qdisc of the kernel of kernel.org, and here",
            Place::Here => "Here only",
            Place::Reserved => "Here only, for flows that have reserved a rate",
            Place::More { .. } => "Here only, with knowledge that packets of today do not carry",
        }
    }
}

/// One entry of a registry.
pub struct Thing {
    /// Name in scenarios and on the command line.
    pub name: &'static str,
    /// Group in which it is listed, if its registry has groups.
    pub family: Option<Family>,
    /// The place where a discipline runs; `None` for all other entries.
    pub place: Option<Place>,
    /// One line that describes it.
    pub summary: &'static str,
    /// Header of its source file, which is its documentation.
    pub header: &'static str,
    /// JSON Schema of its parameters; `None` if it has none.
    pub schema: Option<fn() -> Schema>,
}

impl Thing {
    /// The thing of an entry.
    fn of<S>(entry: &Entry<S>) -> Thing {
        Thing {
            name: entry.name,
            family: entry.family,
            place: None,
            summary: entry.summary,
            header: entry.header,
            schema: Some(entry.schema),
        }
    }

    /// The thing of a discipline.
    fn discipline(entry: &giveway_disciplines::Entry) -> Thing {
        let spec = entry.default();
        let place = match spec.needs() {
            _ if spec.in_mainline() => Place::Linux,
            Needs::Nothing => Place::Here,
            Needs::Reservations => Place::Reserved,
            Needs::Sizes => Place::More { word: "future", needs: "the sizes of flows" },
            Needs::Labels => Place::More { word: "labels", needs: "labels of an edge router" },
            Needs::NextHops => Place::More { word: "hops", needs: "the hops after the next router" },
        };
        Thing { place: Some(place), ..Thing::of(entry) }
    }

    /// The header of its source file, as Markdown.
    pub fn page(&self) -> String {
        giveway_spec::page(self.header)
    }
}

/// All registries, with the registries of the network first.
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
