//! Reading and writing a discipline with its parameters, as `tc` would: `fq_codel limit 10240p target 5ms
//! ecn`, or `tbf rate 1mbit child (fq_codel limit 100p)`. [`giveway_spec`] defines the grammar.

use giveway_spec::{About, Catalogue};

use crate::{ALL, Spec};

/// Spec syntax of disciplines.
static CATALOGUE: Catalogue<Spec> = Catalogue::new(
    About {
        noun: "discipline",
        definition: "Discipline",
        description: "A queue discipline with its parameters, as tc would write it: \"fq_codel limit 1000p target 5ms\"",
        example: "fifo limit 100p",
        inside: Some("child (fq_codel limit 100p)"),
    },
    ALL,
);

giveway_spec::spec_type!(Spec, CATALOGUE);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn error(text: &str) -> (String, String) {
        let error = text.parse::<Spec>().unwrap_err();
        (text[error.span.clone()].to_owned(), error.to_string())
    }

    #[test]
    fn reads_and_writes_specs_as_tc_does() {
        for text in ["fifo", "fifo limit 20p", "fifo limit 64kb drop head"] {
            assert_eq!(text.parse::<Spec>().unwrap().to_string(), text);
        }
        assert_eq!(
            "fifo limit 1000p".parse::<Spec>().unwrap().to_string(),
            "fifo",
            "defaults are not repeated"
        );
    }

    #[test]
    fn mistakes_have_a_position() {
        let cases = [
            ("fivo", "fivo", "unknown discipline \"fivo\"; did you mean \"fifo\"?"),
            ("fifo lmit 3p", "lmit", "unknown parameter \"lmit\" of fifo; did you mean \"limit\"?"),
            ("fifo limit", "limit", "\"limit\" needs a value; write for example \"fifo limit 1000p\""),
            (
                "fifo limit 3",
                "3",
                "limit: \"3\" needs a unit: \"300p\" counts packets, \"64kb\" counts bytes",
            ),
            ("fifo drop haed", "haed", "drop: unknown choice \"haed\"; did you mean \"head\"?"),
            ("fifo limit 3p limit 4p", "limit", "\"limit\" is given twice"),
            ("fifo )", ")", "\")\" is left over"),
        ];
        for (text, at, message) in cases {
            assert_eq!(error(text), (at.to_owned(), message.to_owned()), "{text}");
        }
        assert_eq!(error("").1.split(';').next(), Some("expected a discipline"));
    }

    /// Although disciplines contain disciplines, the schema is finite, and every reference in it has a
    /// target.
    #[test]
    fn schemas_are_closed() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => map.iter().for_each(|(key, inner)| match inner {
                    Value::String(target) if key == "$ref" => found.push(target.clone()),
                    _ => references(inner, found),
                }),
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let of_spec = schemars::schema_for!(Spec).to_value();
        for root in ALL.iter().map(|entry| (entry.schema)().to_value()).chain([of_spec]) {
            let mut found = Vec::new();
            references(&root, &mut found);
            for target in found {
                let leads = target == "#" || root.pointer(target.trim_start_matches('#')).is_some();
                assert!(leads, "{target} leads nowhere");
            }
        }
    }

    /// Names and values of the numbers of a spec.
    fn numbers(text: &str) -> Vec<(String, f64, String)> {
        let spec: Spec = text.parse().unwrap();
        let numbers = CATALOGUE.numbers(&spec).into_iter();
        numbers.map(|number| (number.name, number.value, number.text)).collect()
    }

    #[test]
    fn numbers_are_read_in_basic_units() {
        let found = numbers("codel target 2ms ecn");
        let expected = [("limit", 1000.0, "1000p"), ("target", 0.002, "2ms"), ("interval", 0.1, "100ms")];
        assert_eq!(found, expected.map(|(name, value, text)| (name.to_owned(), value, text.to_owned())));
        let names = |text| numbers(text).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        assert_eq!(names("tbf child (fifo limit 9p)"), ["burst", "child.limit"]);
        assert_eq!(names("red min 10kb"), ["limit", "min", "avpkt", "probability"]);
    }

    #[test]
    fn a_number_is_changed_and_written_as_tc_would() {
        let cases = [
            ("codel", "target", 0.006, "codel target 6ms"),
            ("codel", "target", 0.0061234567, "codel target 6123us"),
            ("fifo", "limit", 812.4, "fifo limit 812p"),
            ("fifo limit 64kb", "limit", 78_643.2, "fifo limit 78640b"),
            ("red", "probability", 0.1 * 0.2 * 1.2, "red probability 0.024"),
            ("sfb", "decrement", 0.00006, "sfb decrement 0.00006"),
            ("pie", "alpha", 2.4, "pie"),
            ("tbf child (codel)", "child.target", 0.004, "tbf child (codel target 4ms)"),
        ];
        for (text, name, value, expected) in cases {
            let spec: Spec = text.parse().unwrap();
            let number = CATALOGUE.numbers(&spec).into_iter().find(|number| number.name == name).unwrap();
            let changed = CATALOGUE.with_number(&spec, &number, value).unwrap().to_string();
            assert_eq!(changed, expected, "{text} with {name} {value}");
            assert_eq!(changed.parse::<Spec>().unwrap().to_string(), expected);
        }
        let red: Spec = "red probability 0.9".parse().unwrap();
        let number = CATALOGUE.numbers(&red).into_iter().find(|number| number.name == "probability").unwrap();
        assert!(CATALOGUE.with_number(&red, &number, 1.08).is_err(), "no share is above one");
    }

    #[test]
    fn children_are_written_in_parentheses() {
        let cases = [
            (
                "prio children (fifo)",
                "(",
                "children: expected a list; write it in brackets: \"children [... ...]\"",
            ),
            ("prio children [fifo]", "fifo", "expected \"(\" after \"children\""),
            ("tbf child fifo", "fifo", "expected \"(\" after \"child\""),
            ("tbf child (fivo)", "fivo", "unknown discipline \"fivo\"; did you mean \"fifo\"?"),
            (
                "tbf child (fifo limit 3)",
                "3",
                "limit: \"3\" needs a unit: \"300p\" counts packets, \"64kb\" counts bytes",
            ),
        ];
        for (text, at, message) in cases {
            let (place, reported) = error(text);
            assert_eq!(
                (place.as_str(), reported.split("; a discipline inside").next().unwrap()),
                (at, message),
                "{text}"
            );
        }
    }
}
