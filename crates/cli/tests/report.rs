//! Reports in a real browser: every chart is drawn, nothing is complained about, and nothing is asked of the network.
//!
//! Without Chromium these tests say so and are skipped, except where `CI` is set: there it must be installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use giveway_document::Part;

/// Transfers, small packets and drops within two seconds, and names that must be escaped.
const SCENARIO: &str = r#"
title = "Home <uplink> & </script>"
duration = "3 s"
warmup = "500 ms"
seeds = 2
disciplines = ["fifo limit 20p", "fifo limit 40p", "fq_codel", "efd limit 20p"]

[[link]]
from = "home"
to = "isp"
rate = "4 Mbit/s"
delay = "5 ms"
qdisc = "compare"

[[traffic]]
kind = "bulk"
name = "<b>backup</b>"
from = "home"
to = "isp"

[[traffic]]
kind = "transfers"
name = "files"
from = "home"
to = "isp"
per_second = 20.0
size = { zipf = { exponent = 1.2, max = "100p" } }

[[traffic]]
kind = "audio"
name = "call"
from = "home"
to = "isp"
"#;

/// A folder with finished runs of that scenario in `one` and `two`.
fn runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    std::fs::write(folder.path().join("home.toml"), SCENARIO).expect("there is room for a file");
    for (out, rate) in [("one", "link.0.rate=4mbit"), ("two", "link.0.rate=2mbit")] {
        giveway(folder.path(), &["run", "home.toml", "--quiet", "--set", rate, "--out", out]);
    }
    folder
}

fn giveway(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let Output { status, stdout, stderr } =
        command.args(args).current_dir(folder).output().expect("the program starts");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("it writes text")
}

/// Debian's name of the browser, and those of others.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser, unless there is none, which is told.
fn browser() -> Option<&'static str> {
    let there =
        |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    let found = BROWSERS.iter().find(there).copied();
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "no Chromium here, and CI must have it: apt-get install chromium"
        );
        eprintln!("skipped: no Chromium here (apt-get install chromium)");
    }
    found
}

/// What a page says of itself after it was opened.
#[derive(Debug, PartialEq)]
struct Opened {
    /// Charts drawn, of how many.
    charts: String,
    /// Errors and warnings, with what the page was kept from loading.
    wrong: Option<String>,
    /// Addresses that were asked for.
    requests: String,
}

/// Opens a page without a network and waits until it has drawn its charts.
fn open(browser: &str, page: &Path) -> Opened {
    let profile = tempfile::tempdir().expect("there is room for a profile");
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .args(["--virtual-time-budget=30000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let root = dom.split_once("<html").and_then(|(_, rest)| rest.split_once('>')).map(|(root, _)| root);
    let root = root.unwrap_or_else(|| panic!("no page: {}", String::from_utf8_lossy(&output.stderr)));
    let attribute = |name: &str| {
        let (_, rest) = root.split_once(&format!("data-{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    assert_eq!(attribute("done").as_deref(), Some("yes"), "it came to its end: {root}");
    Opened {
        charts: attribute("charts").unwrap_or_default(),
        wrong: attribute("wrong"),
        requests: attribute("requests").unwrap_or_default(),
    }
}

fn all(charts: &str) -> Opened {
    Opened { charts: charts.to_owned(), wrong: None, requests: String::new() }
}

#[test]
fn every_chart_is_drawn_and_nothing_is_asked_for() {
    let Some(browser) = browser() else { return };
    let folder = runs();
    assert_eq!(open(browser, &folder.path().join("one/report.html")), all("6/6"));

    let said = giveway(folder.path(), &["report", "one", "two"]);
    assert_eq!(said, "report.html\n");
    assert_eq!(open(browser, &folder.path().join("report.html")), all("11/11"));
}

/// A written page with every kind of figure; and the same with texts that look like the page's own language, or like an
/// expression of its charts.
#[test]
fn a_written_page_is_drawn_whatever_is_written() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let place = folder.path().join("page.html");
    let mut document = crate::written::document();
    std::fs::write(&place, document.html()).expect("there is room for a page");
    assert_eq!(open(browser, &place), all("9/9"));

    let odd = |text: &mut String| {
        *text = format!("{text} </script> 'a' \"b\" \\ datum.x[0] {{{{ signal }}}}\n<!--")
    };
    for part in &mut document.parts {
        let Part::Figure(figure) = part else { continue };
        odd(&mut figure.id);
        for panel in &mut figure.panels {
            odd(&mut panel.title);
            odd(&mut panel.x.title);
            odd(&mut panel.y.title);
            panel.x.categories.iter_mut().for_each(odd);
            panel.series.iter_mut().for_each(|series| odd(&mut series.name));
        }
    }
    std::fs::write(&place, document.html()).expect("there is room for a page");
    assert_eq!(open(browser, &place), all("9/9"));
}

/// The checks above can fail: a page with a broken chart and a picture from elsewhere.
#[test]
fn a_broken_page_is_noticed() {
    let Some(browser) = browser() else { return };
    let folder = runs();
    let page = std::fs::read_to_string(folder.path().join("one/report.html")).expect("a report was written");
    let broken = page.replacen("\"mark\":{\"type\":\"bar\"", "\"mark\":{\"type\":\"unheard-of\"", 1);
    let broken = broken.replacen("<main>", "<main><img src=\"https://example.org/picture.png\">", 1);
    let place: PathBuf = folder.path().join("broken.html");
    std::fs::write(&place, broken).expect("there is room for a page");
    let opened = open(browser, &place);
    assert_eq!(opened.charts, "5/6");
    let wrong = opened.wrong.expect("something is wrong");
    assert!(wrong.contains("run1-chart5: ") && wrong.contains("blocked: https://example.org"), "{wrong}");
}

#[test]
fn a_folder_that_is_none_is_told() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let output =
        command.args(["report", "."]).current_dir(folder.path()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "giveway: . is not a run folder: it has no manifest.json. `giveway run SCENARIO --out .` makes one\n"
    );
}
