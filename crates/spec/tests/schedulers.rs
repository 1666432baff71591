//! A registry of another kind than disciplines, whose specs cannot contain other specs.

use giveway_spec::{About, Catalogue, Entry, page};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Random {}

/// Rule for ties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Ties {
    #[default]
    First,
    Turns,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Rounds {
    iterations: u32,
    weights: Vec<u32>,
    speedup: f64,
    ties: Ties,
    slip: bool,
}
impl Default for Rounds {
    fn default() -> Rounds {
        Rounds { iterations: 1, weights: Vec::new(), speedup: 1.0, ties: Ties::First, slip: true }
    }
}

giveway_spec::named_enum! {
    enum Spec {
        random(Random),
        rounds(Rounds),
    }
}

const ALL: &[Entry<Spec>] = &[
    Entry::of::<Random>("random", "any matching", "//! Draws."),
    Entry::of::<Rounds>("rounds", "requests and grants", "//! Asks."),
];

static CATALOGUE: Catalogue<Spec> = Catalogue::new(
    About {
        noun: "scheduler",
        definition: "Scheduler",
        description: "A scheduler with its parameters",
        example: "rounds iterations 4 ties turns",
        inside: None,
    },
    ALL,
);

giveway_spec::spec_type!(Spec, CATALOGUE);

fn read(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn specs_are_written_and_read_again() {
    for text in [
        "random",
        "rounds",
        "rounds iterations 4",
        "rounds weights [3 1]",
        "rounds speedup 1.5 ties turns noslip",
    ] {
        assert_eq!(read(text).to_string(), text);
    }
    assert_eq!(read("rounds iterations 1 ties first slip on").to_string(), "rounds", "defaults are left out");
    assert_eq!(read("rounds").parameters()["speedup"], json!(1.0));
}

#[test]
fn messages_have_the_noun_and_the_position() {
    let cases = [
        ("", "", "expected a scheduler; such as random, rounds"),
        ("rouns", "rouns", "unknown scheduler \"rouns\"; did you mean \"rounds\"?"),
        ("fifo", "fifo", "unknown scheduler \"fifo\"; there are random, rounds"),
        ("random ties", "ties", "unknown parameter \"ties\" of random; random has no parameters"),
        (
            "rounds iterations many",
            "many",
            "iterations: \"many\" is not a whole number; write for example \"iterations 1024\"",
        ),
        (
            "rounds iterations",
            "iterations",
            "\"iterations\" needs a value; write for example \"rounds iterations 1\"",
        ),
        ("rounds ties trns", "trns", "ties: unknown choice \"trns\"; did you mean \"turns\"?"),
        ("rounds weights 3", "3", "weights: expected a list; write it in brackets: \"weights [... ...]\""),
        // A spec cannot contain others, so the message has no help for that.
        ("rounds weights [3", "", "expected \"]\" after the list"),
        (
            "rounds weights [(rounds)]",
            "(",
            "weights: \"(\" is not a whole number; write for example \"weights 1024\"",
        ),
    ];
    for (text, at, message) in cases {
        let error = text.parse::<Spec>().unwrap_err();
        assert_eq!((&text[error.span.clone()], error.to_string().as_str()), (at, message), "{text}");
    }
}

#[test]
fn an_entry_has_a_default_and_its_enum_has_names_and_parameters() {
    let defaults: Vec<Spec> = ALL.iter().map(Entry::default).collect();
    assert_eq!(defaults, [Spec::from(Random {}), Spec::from(Rounds::default())]);
    assert_eq!(defaults[1].name(), "rounds");
    assert_eq!(defaults[0].parameters(), json!({}));
}

#[test]
fn tables_have_a_kind() {
    let from = |json: Value| serde_json::from_value::<Spec>(json).map_err(|error| error.to_string());
    let wrong = |json: Value| from(json).unwrap_err();
    assert_eq!(from(json!({ "kind": "rounds", "iterations": 4 })), Ok(read("rounds iterations 4")));
    assert_eq!(from(json!("rounds iterations 4")), Ok(read("rounds iterations 4")));
    assert_eq!(serde_json::to_value(read("rounds iterations 4")).unwrap(), json!("rounds iterations 4"));
    assert_eq!(wrong(json!({})), "a scheduler needs a kind, such as kind = \"rounds\"");
    assert_eq!(wrong(json!({ "kind": "rouns" })), "unknown scheduler \"rouns\"; did you mean \"rounds\"?");
    assert_eq!(
        wrong(json!({ "kind": "rounds", "tie": "turns" })),
        "unknown parameter \"tie\" of rounds; did you mean \"ties\"?"
    );
    assert_eq!(
        wrong(json!(4)),
        "a scheduler is written as \"rounds iterations 4 ties turns\" or { kind = \"rounds\" }"
    );
    assert_eq!(CATALOGUE.example_table(), "{ kind = \"rounds\", iterations = 4, ties = \"turns\" }");
}

#[test]
fn the_schema_names_all_of_them() {
    let schema = schema_for!(Spec).to_value();
    assert_eq!(
        (&schema["title"], &schema["description"]),
        (&json!("Scheduler"), &json!("A scheduler with its parameters"))
    );
    assert_eq!(schema["anyOf"][0]["pattern"], "^(random|rounds)( .*)?$");
    let tables = schema["anyOf"][1]["oneOf"].as_array().unwrap();
    let kinds: Vec<&Value> = tables.iter().map(|table| &table["properties"]["kind"]["const"]).collect();
    assert_eq!(kinds, ["random", "rounds"]);
    assert_eq!(tables[1]["properties"]["iterations"]["default"], 1);
}

#[test]
fn a_page_is_the_header_of_the_source() {
    let source = "//! Draws.\n//!\n//! # Cost\nuse nothing;\n";
    assert_eq!(page(source), "Draws.\n\n# Cost");
}
