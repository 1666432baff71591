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

    /// Lines from tc(8), tutorials and `tc qdisc show`, each with the same in our own syntax.
    #[test]
    fn lines_of_tc_are_read_as_tc_does() {
        let cases = [
            ("netem delay 100ms 10ms", "netem delay 100ms jitter 10ms"),
            ("netem delay 100ms 10ms 25%", "netem delay 100ms jitter 10ms correlation 0.25"),
            (
                "netem delay 100ms 20ms distribution normal",
                "netem delay 100ms jitter 20ms distribution normal",
            ),
            ("netem delay 1000", "netem delay 1ms"),
            ("netem loss 0.3% 25%", "netem loss 0.003 loss_correlation 0.25"),
            ("netem loss random 1%", "netem loss 0.01"),
            ("netem loss gemodel 1% 10% 70% 0.1%", "netem gemodel [0.01 0.1 0.7 0.001]"),
            ("netem loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%", "netem gemodel [0.01 0.1 0.7 0.001]"),
            ("netem loss state p13 1% p31 99% ecn", "netem state [0.01 0.99] ecn"),
            (
                "netem delay 10ms reorder 25% 50% gap 5",
                "netem delay 10ms reorder 0.25 reorder_correlation 0.5 gap 5",
            ),
            ("netem rate 5kbit 20 100 5", "netem rate 5kbit overhead 20 cellsize 100 celloverhead 5"),
            (
                "netem rate 5kbit packetoverhead -20 delay 1ms seed 17",
                "netem delay 1ms rate 5kbit overhead -20",
            ),
            ("netem slot 800us 1ms packets 42 limit 10", "netem limit 10p slot [800us 1ms] packets 42"),
            ("sfq perturb 10", "sfq perturb 10s"),
            (
                "sfq limit 127p quantum 1514b depth 127 divisor 1024 perturb 10sec",
                "sfq quantum 1514b perturb 10s",
            ),
            (
                "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn adaptive bandwidth 10Mbit",
                "red limit 400000b min 30000b max 90000b burst 55p bandwidth 10mbit ecn adaptive",
            ),
            ("choke limit 1000 min 83 max 250", "choke limit 1000p min 83p max 250p"),
            ("tbf rate 256kbit buffer 1600 limit 3000", "tbf rate 256kbit burst 1600b limit 3000b"),
            ("tbf rate 1mbit burst 32kbit latency 400ms", "tbf rate 1mbit burst 4kb latency 400ms"),
            ("tbf rate 500000 burst 5kb latency 70000", "tbf rate 500kbit latency 70ms"),
            ("cake bandwidth unlimited besteffort", "cake besteffort"),
            (
                "cake bandwidth 20Mbit diffserv4 triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms noatm overhead 18 mpu 64",
                "cake bandwidth 20mbit diffserv4 overhead 18 mpu 64 noatm",
            ),
            (
                "dualpi2 limit 10000p target 15ms tupdate 16ms alpha 0.156250 beta 3.195312 l4s_ect coupling_factor 2 drop_on_overload step_thresh 1ms drop_dequeue split_gso classic_protection 10%",
                "dualpi2 alpha 0.15625 beta 3.195312",
            ),
            (
                "fq limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 weights 589824 196608 65536 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop",
                "fq quantum 3028b initial_quantum 15140b",
            ),
            ("fq_pie limit 10240p ecn_prob 10", "fq_pie"),
            ("sfb rehash 600000 db 60000", "sfb"),
            ("codel target 5000 interval 100000", "codel"),
            ("pfifo_fast bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1", "pfifo_fast"),
            ("tc qdisc add dev eth0 root netem delay 100ms", "netem delay 100ms"),
            ("sudo tc -s qdisc replace dev eth0 parent 1:1 handle 10: sfq perturb 10", "sfq perturb 10s"),
            ("tc qdisc change dev eth0 handle 1: root pfifo limit 10", "pfifo limit 10p"),
            (
                "qdisc fq_codel 8001: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64",
                "fq_codel quantum 1514b",
            ),
            (
                "qdisc pfifo_fast 0: dev wlan0 parent :1 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
                "pfifo_fast",
            ),
        ];
        for (line, ours) in cases {
            let read: Spec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
            // Values in percent and in parts of one are the same, and so are texts with defaults.
            assert_eq!(read.to_string(), ours.parse::<Spec>().unwrap().to_string(), "{line}");
            assert_eq!(read.to_string().parse(), Ok(read), "{line}");
        }
    }

    #[test]
    fn what_tc_would_refuse_or_only_we_have_keeps_its_message() {
        let cases = [
            // Not in tc, so that its defaults do not apply.
            ("efd threshold 10", "10"),
            ("cobalt target 5", "5"),
            ("fifo limit 10", "10"),
            ("codel target 5ms 6ms", "6ms"),
            ("netem delay 100ms 10xs", "10xs"),
            ("netem delay 100ms 10ms jitter 5ms", "jitter"),
            ("netem gemodel", "gemodel"),
            ("netem seed", "seed"),
            ("dualpi2 split_gso split_gsoo", "split_gsoo"),
            ("pfifo_fast bands 4", "bands"),
            ("prio children 5", "5"),
            ("netem delay 1ms [2ms]", "["),
            ("tc qdisc show dev eth0", "show"),
            ("tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit", "class"),
            ("tbf child (tc qdisc add fifo)", "tc"),
        ];
        for (text, at) in cases {
            assert_eq!(error(text).0, at, "{text}: {}", error(text).1);
        }
        assert_eq!(
            error("tc class add dev eth0").1,
            "only a line of \"tc qdisc add\" has a discipline; write it alone, such as \"fifo limit 100p\""
        );
        assert_eq!(
            error("netem loss 5").1,
            "loss: \"5\" is not a probability: it must lie between 0 and 1 (100%); write for example \"5%\""
        );
        assert_eq!(
            error("codel target 5ms 6ms").1,
            "unknown parameter \"6ms\" of codel; write the name of the parameter before the value; see giveway explain codel"
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
