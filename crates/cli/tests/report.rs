//! Reports in a real browser: every chart is drawn, without errors, warnings or requests to the network.
//!
//! Without Chromium these tests are skipped with a message. If `CI` is set they fail instead.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use giveway_document::Part;

/// A scenario with transfers, small packets and drops, and with names that must be escaped.
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

/// Creates a folder with finished runs of the scenario, in `one` and `two`.
fn runs() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    std::fs::write(folder.path().join("home.toml"), SCENARIO).expect("there is room for a file");
    for (out, rate) in [("one", "link.0.rate=4mbit"), ("two", "link.0.rate=2mbit")] {
        giveway(folder.path(), &["run", "home.toml", "--quiet", "--set", rate, "--out", out]);
    }
    folder
}

/// Runs the program, which must exit with code 0. Returns its standard output.
fn giveway(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let Output { status, stdout, stderr } =
        command.args(args).current_dir(folder).output().expect("the program starts");
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("it writes text")
}

/// Names of the browser, Debian's first.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The installed browser. If there is none, prints a message, or fails if `CI` is set.
fn browser() -> Option<&'static str> {
    let works =
        |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    let found = BROWSERS.iter().find(works).copied();
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "no Chromium here, and CI must have it: apt-get install chromium"
        );
        eprintln!("skipped: no Chromium here (apt-get install chromium)");
    }
    found
}

/// The state that a page reports after it was opened.
#[derive(Debug, PartialEq)]
struct Opened {
    /// Number of drawn charts and of all charts.
    charts: String,
    /// Errors and warnings, and blocked requests.
    wrong: Option<String>,
    /// Addresses of requests.
    requests: String,
}

/// Opens a page without a network and waits until it has drawn its charts.
fn open(browser: &str, page: &Path) -> Opened {
    let attributes = visit(browser, page, 1200);
    let attribute = |name: &str| attributes(name);
    Opened {
        charts: attribute("charts").unwrap_or_default(),
        wrong: attribute("wrong"),
        requests: attribute("requests").unwrap_or_default(),
    }
}

/// Opens a page in a window of this width, and returns the data attributes of its root by name.
fn visit(browser: &str, page: &Path, width: u32) -> impl Fn(&str) -> Option<String> {
    let profile = tempfile::tempdir().expect("there is room for a profile");
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .args(["--virtual-time-budget=30000", "--dump-dom"])
        .arg(format!("--window-size={width},1000"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let root = dom.split_once("<html").and_then(|(_, rest)| rest.split_once('>')).map(|(root, _)| root);
    let root =
        root.unwrap_or_else(|| panic!("no page: {}", String::from_utf8_lossy(&output.stderr))).to_owned();
    let attributes = move |name: &str| {
        let (_, rest) = root.split_once(&format!("data-{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    };
    assert_eq!(attributes("done").as_deref(), Some("yes"), "its scripts have ended");
    attributes
}

/// A copy of a page with a script that runs when all charts are drawn.
fn scripted(page: &Path, script: &str) -> PathBuf {
    let text = std::fs::read_to_string(page).expect("there is a page");
    let wait = "(function wait() {\n if (document.documentElement.dataset.done !== 'yes') { setTimeout(wait, 50); return; }\n";
    let script = format!("<script>{wait}{script}\n}})();</script></body>");
    let copy = page.with_extension("scripted.html");
    std::fs::write(&copy, text.replacen("</body>", &script, 1)).expect("there is room for a page");
    copy
}

/// The state of a page without problems, with this number of charts.
fn all(charts: &str) -> Opened {
    Opened { charts: charts.to_owned(), wrong: None, requests: String::new() }
}

#[test]
fn every_chart_is_drawn_without_requests() {
    let Some(browser) = browser() else { return };
    let folder = runs();
    assert_eq!(open(browser, &folder.path().join("one/report.html")), all("22/22"));

    let out = giveway(folder.path(), &["report", "one", "two"]);
    assert_eq!(out, "report.html\n");
    assert_eq!(open(browser, &folder.path().join("report.html")), all("38/38"));
}

/// A click on an entry of a key hides its rows in every chart, and a second click shows them again.
/// Pointing at a point shows a tooltip.
#[test]
fn keys_and_tooltips_work() {
    let Some(browser) = browser() else { return };
    let folder = runs();
    let script = "
        const root = document.documentElement;
        const marks = () => document.querySelectorAll('#run1-chart1 .mark-symbol path').length;
        const panels = () => document.querySelectorAll('.panel[hidden]').length;
        const press = () => document.querySelector('.key button[data-name=\"fq_codel\"]').click();
        const note = (name) => { root.dataset[name] = marks() + ' ' + panels(); };
        note('before');
        press();
        setTimeout(() => {
            note('without');
            press();
            setTimeout(() => {
                note('again');
                const points = document.querySelectorAll('#run1-chart1 .mark-symbol path');
                const point = points[points.length - 1];
                const { x, y } = point.getBoundingClientRect();
                for (const kind of ['pointerover', 'pointermove', 'mousemove', 'mouseover']) {
                    point.dispatchEvent(new MouseEvent(kind, { bubbles: true, clientX: x + 1, clientY: y + 1 }));
                }
                root.dataset.tip = document.querySelector('.tip').hidden ? 'none' : document.querySelector('.tip').textContent;
            }, 3000);
        }, 3000);";
    let page = scripted(&folder.path().join("one/report.html"), script);
    let attribute = visit(browser, &page, 1200);
    let numbers = |name: &str| -> Vec<usize> {
        let text = attribute(name).unwrap_or_else(|| panic!("{name}"));
        text.split(' ').map(|number| number.parse().unwrap()).collect()
    };
    let (before, without, again) = (numbers("before"), numbers("without"), numbers("again"));
    assert!(without[0] < before[0] && without[0] > 0, "{before:?} {without:?}");
    assert_eq!((before[1], without[1] > 0), (0, true), "its panels are hidden");
    assert_eq!(before, again);
    let tip = attribute("tip").expect("the script has ended");
    assert!(tip.contains("flow completion time"), "{tip}");
}

/// Nothing is wider than the window, on a phone and on a desktop. Wide tables use the window, and panels are
/// below each other on a phone.
#[test]
fn pages_fit_the_window() {
    let Some(browser) = browser() else { return };
    let folder = runs();
    let script = "
        const root = document.documentElement;
        root.dataset.wide = root.scrollWidth - innerWidth;
        const table = document.querySelector('.wide').getBoundingClientRect();
        root.dataset.table = Math.round(table.left) + ' ' + Math.round(innerWidth - table.right);
        const [one, two] = document.querySelectorAll('#figures1 .plot');
        root.dataset.stacked = two.getBoundingClientRect().top > one.getBoundingClientRect().bottom ? 'yes' : 'no';";
    for (width, stacked) in [(500, "yes"), (1400, "no")] {
        let page = scripted(&folder.path().join("one/report.html"), script);
        let attribute = visit(browser, &page, width);
        let overflow: i64 = attribute("wide").expect("the script has ended").parse().unwrap();
        assert!(overflow <= 0, "{width}: {overflow}");
        let table = attribute("table").unwrap();
        let edges: Vec<i64> = table.split(' ').map(|edge| edge.parse().unwrap()).collect();
        assert!(edges.iter().all(|edge| *edge >= 0), "{width}: {edges:?}");
        assert_eq!(attribute("stacked").as_deref(), Some(stacked), "{width}");
    }
}

/// A page with every kind of figure, and a copy with texts that look like HTML, or like an expression of a
/// chart.
#[test]
fn a_page_is_drawn_with_any_texts() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let file = folder.path().join("page.html");
    let mut document = crate::written::document();
    std::fs::write(&file, document.html()).expect("there is room for a page");
    assert_eq!(open(browser, &file), all("9/9"));

    let hostile = |text: &mut String| {
        *text = format!("{text} </script> 'a' \"b\" \\ datum.x[0] {{{{ signal }}}}\n<!--")
    };
    for part in &mut document.parts {
        let Part::Figure(figure) = part else { continue };
        hostile(&mut figure.id);
        for panel in &mut figure.panels {
            hostile(&mut panel.title);
            hostile(&mut panel.x.title);
            hostile(&mut panel.y.title);
            panel.x.categories.iter_mut().for_each(hostile);
            panel.series.iter_mut().for_each(|series| hostile(&mut series.name));
        }
    }
    std::fs::write(&file, document.html()).expect("there is room for a page");
    assert_eq!(open(browser, &file), all("9/9"));
}

/// The checks detect a broken chart and a picture of another server.
#[test]
fn a_broken_page_is_detected() {
    let Some(browser) = browser() else { return };
    let folder = runs();
    let page = std::fs::read_to_string(folder.path().join("one/report.html")).expect("a report was written");
    let broken = page.replacen("\"mark\":{\"type\":\"bar\"", "\"mark\":{\"type\":\"unheard-of\"", 1);
    let broken = broken.replacen("<main>", "<main><img src=\"https://example.org/picture.png\">", 1);
    let file: PathBuf = folder.path().join("broken.html");
    std::fs::write(&file, broken).expect("there is room for a page");
    let opened = open(browser, &file);
    assert_eq!(opened.charts, "21/22");
    let wrong = opened.wrong.expect("something is wrong");
    assert!(
        wrong.contains("run1-chart6-panel1: ") && wrong.contains("blocked: https://example.org"),
        "{wrong}"
    );
}

#[test]
fn a_folder_without_a_manifest_is_refused() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("giveway"));
    let output =
        command.args(["report", "."]).current_dir(folder.path()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        errors,
        "giveway: . is not a run folder: it has no manifest.json. `giveway run SCENARIO --out .` makes one\n"
    );
}
