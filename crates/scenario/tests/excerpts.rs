//! Excerpts of a file around a mistake.

use giveway_scenario::Origin;

#[test]
fn long_lines_are_clipped_around_the_place() {
    let origin = Origin::new("file", "one\ntwo three\nfour\n");
    let excerpt = origin.excerpt(&(8..13), 1);
    assert_eq!(excerpt.text, "one\ntwo three\nfour\n");
    assert_eq!(&excerpt.text[excerpt.span], "three");
    assert_eq!(excerpt.first_line, 1);

    let long = format!("{}wrong{}", "ä".repeat(40_000), "b".repeat(80_000));
    let origin = Origin::new("file", format!("first\n{long}\n{long}"));
    let at = 6 + 80_000;
    let excerpt = origin.excerpt(&(at..at + 5), 1);
    assert_eq!(&excerpt.text[excerpt.span.clone()], "wrong");
    assert!(excerpt.text.len() < 600, "{}", excerpt.text.len());
    let line = excerpt.text.lines().nth(1).unwrap();
    assert!(line.starts_with("…ä") && line.ends_with("b…"), "{line}");
    // The underline ends where the line is clipped.
    let excerpt = origin.excerpt(&(6..6 + long.len()), 0);
    assert_eq!(excerpt.span.end, excerpt.text.trim_end_matches(['…', '\n']).len());
}

#[test]
fn a_long_place_is_underlined_in_its_first_line() {
    let origin = Origin::new("file", "word\n".repeat(1000));
    let excerpt = origin.excerpt(&(10..4000), 1);
    assert_eq!(excerpt.text, "word\nword\nword\n");
    assert_eq!(excerpt.first_line, 2);
    assert_eq!(excerpt.span, 5..9);
}

#[test]
fn a_flag_keeps_its_name_even_if_it_is_clipped() {
    let mut origin = Origin::new("file", "one\n");
    let start = origin.push("--set", "rate=0mbit");
    let excerpt = origin.excerpt(&(start + 5..start + 10), 1);
    assert_eq!((excerpt.text.as_str(), &excerpt.text[excerpt.span]), ("--set rate=0mbit", "0mbit"));

    let long = format!("title={}", "x".repeat(2000));
    let start = origin.push("--set", long);
    let excerpt = origin.excerpt(&(start + 1000..start + 1003), 1);
    assert!(excerpt.text.starts_with("--set …xx") && excerpt.text.ends_with("x…"), "{}", excerpt.text);
    assert_eq!(&excerpt.text[excerpt.span], "xxx");
}
