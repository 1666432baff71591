//! Tests of complete pages: their content, the escaping of texts, and the data of their figures.

use giveway_document::{
    Axis, Cell, Document, Figure, HeatCell, HeatMap, HeatPanel, Mark, Panel, Part, Point, Series, Shade,
    Sheet, Sign, Tone, VerdictCell, Verdicts,
};
use serde_json::{Value, json};

const HOSTILE: &str = "</script><script>alert(1)</script> & \"friends\" {{ 7 * 7 }} <!--";

/// The plots of the page, each with its specification and its data.
fn charts(page: &str) -> Value {
    let begin = "<script type=\"application/json\" id=\"charts\">";
    let (_, after) = page.split_once(begin).expect("the page has data");
    let text = after.split_once("</script>").expect("the data end").0;
    let mut all: Value = serde_json::from_str(text).expect("the data are JSON");
    let data = all["data"].take();
    for chart in all["charts"].as_object_mut().expect("it has plots").values_mut() {
        chart["data"] = data[chart["data"].as_str().expect("a name of tables")].clone();
    }
    all["charts"].take()
}

/// A page with one figure of one panel.
fn page_of(panel: Panel) -> String {
    let figure = Figure { panels: vec![panel], columns: 1, ..Figure::default() };
    Document { parts: vec![Part::Figure(figure)], ..Document::default() }.html()
}

/// The specification and the data of a panel.
fn drawn(panel: Panel) -> (Value, Value) {
    let mut chart = charts(&page_of(panel))["figure1-panel1"].take();
    (chart["spec"].take(), chart["data"].take())
}

fn panel(mark: Mark, points: impl IntoIterator<Item = Point>) -> Panel {
    let series =
        Series { name: "EFD".into(), discipline: "efd".into(), points: points.into_iter().collect() };
    Panel { title: String::new(), x: Axis::default(), y: Axis::default(), mark, series: vec![series] }
}

fn logarithmic() -> Axis {
    Axis { logarithmic: true, ..Axis::default() }
}

/// The elements of a page that are opened and not closed, or closed and not opened. Scripts and comments are
/// skipped.
fn unbalanced(page: &str) -> Vec<String> {
    const EMPTY: [&str; 6] = ["meta", "link", "line", "br", "hr", "img"];
    let mut open: Vec<String> = Vec::new();
    let mut wrong = Vec::new();
    let mut rest = page;
    while let Some((_, tag)) = rest.split_once('<') {
        if let Some(comment) = tag.strip_prefix("!--") {
            rest = comment.split_once("-->").expect("a comment ends").1;
            continue;
        }
        let (inside, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        let name: String =
            inside.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        if inside.starts_with('!') || EMPTY.contains(&name.as_str()) {
            continue;
        }
        if inside.starts_with('/') {
            if open.pop().as_ref() != Some(&name) {
                wrong.push(name);
            }
            continue;
        }
        if name == "script" || name == "style" {
            rest = rest.split_once(&format!("</{name}>")).expect("it ends").1;
            continue;
        }
        open.push(name);
    }
    wrong.extend(open);
    wrong
}

#[test]
fn a_page_has_all_its_parts_and_loads_nothing() {
    let page = crate::example::document().html();
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    for part in [
        "<h1>Efficient flow tables, from memory</h1>",
        "<p class=\"prose\">The first paragraph of the text.</p>",
        "<li>One that does not.</li>",
        "<h2 id=\"part-verdicts\">Verdicts <a",
        "<li class=\"level2\"><a href=\"#part-verdicts\">Verdicts</a></li>",
        "<li class=\"level3\"><a href=\"#fig-5\">",
        "<caption>What the paper says, and what came of it</caption>",
        "<th scope=\"col\" class=\"number\">found</th>",
        "<td class=\"good short\">holds</td>",
        "<figure id=\"fig-5\">",
        "<h4>load 8 Mbit&#x2f;s</h4>",
        "<summary>The scenario</summary>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("src=\"http") && !page.contains("url(http"));
    assert_eq!(charts(&page).as_object().unwrap().len(), 9, "each panel with data has a chart");
    assert_eq!(page.matches("class=\"plot\"").count(), 9);
    assert_eq!(page.matches("class=\"nothing\"").count(), 1, "a panel has none");
    assert!(!page.contains("What nobody measured"), "a figure without data is left out");
    assert_eq!(page, crate::example::document().html(), "the same document gives the same page");
}

/// A page without figures contains no libraries, so it is small.
#[test]
fn a_page_without_figures_is_small() {
    let page =
        Document { title: "Words".into(), parts: vec![Part::Text("Only.".into())], ..Document::default() };
    let page = page.html();
    assert!(page.len() < 24_000, "{} bytes", page.len());
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    assert!(!page.contains("Vega and Vega-Lite"), "what is not in it is not named");
}

/// Texts are shown as text, and not interpreted as HTML, in every part and in the data of charts.
#[test]
fn texts_are_escaped() {
    let hostile = || HOSTILE.to_owned();
    let axis = || Axis { title: hostile(), categories: vec![hostile()], ..Axis::default() };
    let figure = Figure {
        id: hostile(),
        title: hostile(),
        caption: hostile(),
        panels: vec![Panel {
            title: hostile(),
            x: axis(),
            y: Axis { title: hostile(), ..Axis::default() },
            mark: Mark::Bars,
            series: vec![Series {
                name: hostile(),
                discipline: hostile(),
                points: vec![Point::within(0.0, 2.0, 1.0)],
            }],
        }],
        columns: 1,
    };
    let sheet = Sheet { caption: hostile(), head: vec![hostile()], rows: vec![vec![Cell::plain(HOSTILE)]] };
    let document = Document {
        title: hostile(),
        subtitle: hostile(),
        parts: vec![
            Part::Heading(hostile()),
            Part::Text(hostile()),
            Part::List(vec![hostile()]),
            Part::Table(sheet),
            Part::Figure(figure),
            Part::Details { summary: hostile(), text: hostile() },
        ],
    };
    let page = document.html();
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
    assert!(page.contains("{{ 7 * 7 }}"), "and no template");
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    // The page has only its own scripts: watch.js, the data, three libraries, draw.js and copy.js.
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (7, 7));
    // The figure has its own anchor, which names its plots.
    let chart = charts(&page)[format!("{HOSTILE}-panel1")].take();
    assert_eq!(chart["data"]["points"]["x"], json!([HOSTILE]));
    assert_eq!(chart["data"]["points"]["series"], json!([HOSTILE]));
}

/// A logarithmic axis omits points of zero or less and counts them. An interval that reaches below ends at
/// the axis.
#[test]
fn a_logarithmic_axis_has_no_zero() {
    let points = [(1.0, 10.0), (0.0, 10.0), (2.0, 0.0), (3.0, -4.0), (4.0, 20.0)];
    let points = || {
        let plain = points.map(|(x, y)| Point::new(x, y));
        plain.into_iter().chain([Point::within(5.0, 12.0, 15.0)])
    };
    let both = Panel { x: logarithmic(), y: logarithmic(), ..panel(Mark::Line, points()) };
    let (spec, data) = drawn(both.clone());
    assert_eq!(data["points"]["x"], json!([1, 4, 5]));
    assert_eq!(data["points"]["y"], json!([10, 20, 12]));
    let scale = &spec["layer"][0]["encoding"]["y"]["scale"];
    assert_eq!(scale["type"], "log");
    let floor = scale["domain"][0].as_f64().unwrap();
    assert!(floor > 0.0 && floor < 10.0, "{floor}");
    assert_eq!(data["intervals"]["low"][0].as_f64(), Some(floor));
    assert_eq!(data["intervals"]["high"], json!([27]));
    let page = page_of(both);
    assert!(page.contains("3 points of zero or less have no place on a logarithmic axis and are omitted."));
    assert!(page.contains("Intervals that reach down to zero end at the logarithmic axis."));
    // A linear axis can show them.
    let (_, data) = drawn(panel(Mark::Line, points()));
    assert_eq!(data["points"]["y"].as_array().unwrap().len(), 6);
}

#[test]
fn points_that_are_not_numbers_are_omitted_and_counted() {
    let broken = [Point::new(f64::NAN, 1.0), Point::new(1.0, f64::INFINITY), Point::new(1.0, 2.0)];
    let page = page_of(panel(Mark::Points, broken));
    assert!(page.contains("2 points without a value are omitted."));
    assert_eq!(charts(&page)["figure1-panel1"]["data"]["points"]["y"], json!([2]));
    // Points without a category are omitted as well.
    let x = Axis { categories: vec!["4".into(), "8".into()], ..Axis::default() };
    let points = [0.0, 1.0, 2.0, 0.5, -1.0].map(|x| Point::new(x, 1.0));
    let page = page_of(Panel { x, ..panel(Mark::Bars, points) });
    assert!(page.contains("3 points without a value are omitted."));
    assert_eq!(charts(&page)["figure1-panel1"]["data"]["points"]["x"], json!(["4", "8"]));
    // A figure without points is left out.
    let page = page_of(panel(Mark::Points, [Point::new(f64::NAN, 1.0)]));
    assert!(!page.contains("<figure"));
    assert_eq!(charts(&page), json!({}));
}

/// Numbers along bars become categories, in their order. Bars of a logarithmic axis start at its lower end,
/// below the shortest of them.
#[test]
fn bars_have_categories() {
    let points = [8.0, 4.0, 12.5].map(|x| Point::within(x, 10.0 * x, 1.0));
    let (spec, data) = drawn(panel(Mark::Bars, points));
    assert_eq!(spec["layer"][0]["encoding"]["x"]["scale"]["domain"], json!(["4", "8", "12.5"]));
    assert_eq!(data["points"]["x"], json!(["8", "4", "12.5"]));
    assert_eq!(spec["layer"][0]["encoding"]["y"]["scale"]["zero"], true);
    assert_eq!(spec["layer"][1]["encoding"]["text"]["field"], "series", "each bar has its name");
    assert_eq!(spec["layer"][2]["data"]["name"], "intervals");
    assert_eq!(spec["layer"][2]["encoding"]["xOffset"], spec["layer"][0]["encoding"]["xOffset"]);
    let points = [8.0, 4.0].map(|x| Point::new(x, x));
    let (spec, data) = drawn(Panel { y: logarithmic(), ..panel(Mark::Bars, points) });
    let foot = spec["layer"][0]["encoding"]["y2"]["datum"].as_f64().unwrap();
    assert!(foot > 0.0 && foot < 3.0, "{foot}");
    assert_eq!((spec["layer"].as_array().unwrap().len(), data.get("intervals")), (2, None), "no intervals");
}

#[test]
fn lines_follow_their_points_and_steps_keep_their_values() {
    let back = [3.0, 1.0, 2.0].map(|x| Point::new(x, x));
    let (spec, data) = drawn(panel(Mark::Line, back));
    assert_eq!(data["points"]["x"], json!([3, 1, 2]));
    assert_eq!(spec["layer"][0]["encoding"]["order"], json!({ "value": null }));
    assert_eq!(spec["layer"][0]["mark"]["interpolate"], "linear");
    let (spec, _) = drawn(panel(Mark::Steps, back));
    assert_eq!(spec["layer"][0]["mark"]["interpolate"], "step-after");
    // The caption reports points beyond the axes.
    let x = Axis { domain: Some((0.0, 2.5)), ..Axis::default() };
    let narrow = Panel { x, ..panel(Mark::Steps, back) };
    assert!(page_of(narrow.clone()).contains("One point lies outside the axes."));
    let (spec, _) = drawn(narrow);
    assert_eq!(spec["layer"][0]["mark"]["clip"], true);
    assert_eq!(spec["layer"][0]["encoding"]["x"]["scale"]["domain"], json!([0.0, 2.5]));
}

#[test]
fn clouds_are_thinned_and_lines_are_not() {
    let many = || (0..5_000).map(|at| Point::new(f64::from(at), 1.0));
    let page = page_of(panel(Mark::Points, many()));
    assert!(page.contains("3000 of 5000 points are drawn, thinned evenly from left to right."));
    let xs = charts(&page)["figure1-panel1"]["data"]["points"]["x"].take();
    assert_eq!((xs.as_array().unwrap().len(), &xs[0], &xs[2999]), (3_000, &json!(0), &json!(4_999)));
    let (_, data) = drawn(panel(Mark::Line, many()));
    assert_eq!(data["points"]["x"].as_array().unwrap().len(), 5_000);
}

/// A discipline has the colour of the reports in every figure. Several series of a discipline have its hue,
/// and series without a discipline have colours of the page.
#[test]
fn colours_are_those_of_the_disciplines() {
    let figure = |series: &[(&str, &str)]| {
        let series = series.iter().map(|(name, discipline)| Series {
            name: (*name).into(),
            discipline: (*discipline).into(),
            points: vec![Point::new(1.0, 1.0)],
        });
        let panel = Panel { series: series.collect(), ..panel(Mark::Line, []) };
        Part::Figure(Figure { panels: vec![panel], columns: 1, ..Figure::default() })
    };
    let parts = vec![
        figure(&[("EFD", "efd limit 300p"), ("LAS", "las limit 300p"), ("bound", "")]),
        figure(&[("first", "las limit 300p"), ("second", "las limit 300p"), ("first", "efd limit 300p")]),
        figure(&[("", "efd limit 300p")]),
    ];
    let page = Document { parts, ..Document::default() }.html();
    let charts = charts(&page);
    let colour = |figure: usize| {
        charts[format!("figure{figure}-panel1")]["spec"]["layer"][0]["encoding"]["color"]["scale"].clone()
    };
    let looks = giveway_document::looks(&["efd limit 300p", "las limit 300p"]);
    let (efd, las) = (looks[0].colour.as_str(), looks[1].colour.as_str());
    assert_eq!(colour(1), json!({ "domain": ["EFD", "LAS", "bound"], "range": [efd, las, "var(--ink)"] }));
    let second = colour(2)["range"][1].clone();
    assert!(second != json!(las) && second != json!(efd));
    assert_eq!(
        colour(2),
        json!({ "domain": ["first (las limit 300p)", "second", "first (efd limit 300p)"],
                "range": [las, second, efd] })
    );
    // A single series without a name has no key.
    assert_eq!(page.matches("class=\"key\"").count(), 2);
}

/// A column of texts that start like numbers is right-aligned. Long texts wrap.
#[test]
fn columns_of_tables() {
    let cell = |text: &str, tone| Cell { text: text.into(), tone };
    let sheet = Sheet {
        caption: String::new(),
        head: vec!["claim".into(), "found".into(), "verdict".into()],
        rows: vec![
            vec![
                Cell::plain("A claim that is longer than a line of a cell"),
                Cell::plain("-3.5 ± 0.1"),
                cell("no", Tone::Bad),
            ],
            vec![Cell::plain("Another"), Cell::plain(""), cell("perhaps", Tone::Faint)],
        ],
    };
    let page = Document { parts: vec![Part::Table(sheet)], ..Document::default() }.html();
    for part in [
        "<th scope=\"col\" class=\"long\">claim</th>",
        "<td class=\"plain number\">-3.5 ± 0.1</td>",
        "<td class=\"plain number\"></td>",
        "<td class=\"bad short\">no</td>",
        "<td class=\"faint short\">perhaps</td>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<caption>"));
}

/// A caption states what a figure shows. Under an empty figure it would state what nobody saw.
#[test]
fn an_empty_figure_has_no_caption() {
    let figure = |points: &[Point]| Figure {
        caption: "EFD is the fastest.".into(),
        panels: vec![panel(Mark::Line, points.iter().copied())],
        columns: 1,
        ..Figure::default()
    };
    let page = |points: &[Point]| {
        Document { parts: vec![Part::Figure(figure(points))], ..Document::default() }.html()
    };
    assert!(page(&[Point::new(1.0, 1.0)]).contains("EFD is the fastest."));
    assert!(!page(&[]).contains("EFD is the fastest."));
}

/// Every series of a key is a button that names the column of its rows.
#[test]
fn keys_switch_series() {
    let page = crate::example::document().html();
    for name in ["FIFO", "LAS", "Run2C", "EFD"] {
        assert!(page.contains(&format!("data-column=\"series\" data-name=\"{name}\"")), "{name}");
    }
    for (_, chart) in charts(&page).as_object().unwrap() {
        assert!(chart["data"]["points"]["series"].is_array(), "{chart}");
        let layers = chart["spec"]["layer"].as_array().unwrap();
        assert!(layers.iter().any(|layer| layer["encoding"]["tooltip"].is_array()), "{chart}");
    }
}

/// Dashes show which lines coincide. A line of many points would be lost in its dashes.
#[test]
fn lines_of_few_points_have_dashes() {
    let dashed = |count: u32| {
        let (spec, _) = drawn(panel(Mark::Line, (0..count).map(|at| Point::new(f64::from(at), 1.0))));
        spec["layer"][0]["encoding"]["strokeDash"].is_object()
    };
    assert!(dashed(200) && !dashed(201));
}

/// A heat map shows the number in each cell, and a darker shade for a higher one.
#[test]
fn a_heat_map_has_its_numbers_and_shades() {
    let axis = |names: &[&str]| Axis {
        categories: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Axis::default()
    };
    let cell = |x, y, text: &str, shade| HeatCell { x, y, text: text.into(), about: HOSTILE.into(), shade };
    let values = HeatPanel {
        x: axis(&["1 Mbit/s", "2 Mbit/s"]),
        y: axis(&["5 p"]),
        cells: vec![cell(0, 0, "20 ms", Shade::Value(0.02)), cell(1, 0, "90 ms", Shade::Value(0.09))],
        ..HeatPanel::default()
    };
    let best = HeatPanel {
        cells: vec![cell(0, 0, "efd", Shade::Discipline("efd limit 300p".into()))],
        disciplines: vec!["fifo".into(), "efd limit 300p".into()],
        ..values.clone()
    };
    let map = HeatMap { panels: vec![values, best, HeatPanel::default()], columns: 2, ..HeatMap::default() };
    let page = Document { parts: vec![Part::Heat(map)], ..Document::default() }.html();
    assert!(!page.contains(HOSTILE) && unbalanced(&page).is_empty());
    let charts = charts(&page);
    let data = &charts["figure1-panel1"]["data"]["cells"];
    assert_eq!(data["text"], json!(["20 ms", "90 ms"]));
    assert_eq!(data["x"], json!(["1 Mbit/s", "2 Mbit/s"]));
    let [low, high] = [0, 1].map(|cell| data["opacity"][cell].as_f64().unwrap());
    assert!(low < high && high < 1.0);
    let colour = &charts["figure1-panel2"]["data"]["cells"]["colour"][0];
    let look = &giveway_document::looks(&["fifo", "efd limit 300p"])[1];
    assert_eq!(colour, &json!(look.colour));
    // A panel without cells is left out.
    assert!(charts.get("figure1-panel3").is_none());
    let empty = Document { parts: vec![Part::Heat(HeatMap::default())], ..Document::default() }.html();
    assert!(!empty.contains("<figure"));
}

/// A heading is left out with what it is about: an empty table, or a figure without data.
#[test]
fn headings_without_contents_are_left_out() {
    let heading = |text: &str| Part::Heading(text.into());
    let empty = Figure { title: "Empty".into(), ..Figure::default() };
    let parts = vec![
        heading("Both empty"),
        Part::Table(Sheet { head: vec!["a".into()], ..Sheet::default() }),
        Part::Figure(empty),
        heading("Kept"),
        Part::Text("Words.".into()),
        heading("Last"),
        Part::List(Vec::new()),
    ];
    let page = Document { parts, ..Document::default() }.html();
    assert!(page.contains("<h2 id=\"part-kept\">"));
    assert_eq!((page.matches("<h2").count(), page.matches("<figure").count()), (1, 0), "{page}");
    assert!(!page.contains("part-last") && !page.contains("part-both-empty"), "nor in the contents");
}

/// The answer of a page is its first table: the contents are below it, and closed.
#[test]
fn contents_are_below_the_answer() {
    let sheet =
        Sheet { caption: "The answer".into(), head: vec!["a".into()], rows: vec![vec![Cell::plain("1")]] };
    let heading = |text: &str| [Part::Heading(text.into()), Part::Text("Words.".into())];
    let parts = [Part::Table(sheet)].into_iter().chain(heading("One")).chain(heading("Two"));
    let parts = parts.chain(heading("Three")).collect();
    let page = Document { parts, ..Document::default() }.html();
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(place("The answer") < place("<summary>Contents"));
    assert!(place("<summary>Contents") < place("<h2 id=\"part-one\">"));
    assert!(!page.contains("<details open"));
}

/// "Undecided" has another look than "no difference", in the cell and in its signs.
#[test]
fn open_verdicts_look_unlike_equal_ones() {
    let cell = |word: &str, tone, sign: &str| {
        Some(VerdictCell {
            word: word.into(),
            tone,
            about: HOSTILE.into(),
            signs: vec![Sign { text: sign.into(), tone }],
        })
    };
    let matrix = Verdicts {
        id: "card".into(),
        title: "At a glance".into(),
        columns: vec!["against fifo".into(), "against pie".into(), "against cake".into()],
        rows: vec![(
            "is fair".into(),
            vec![cell("no difference", Tone::Same, "=4"), cell("undecided", Tone::Open, "?9"), None],
        )],
        ..Verdicts::default()
    };
    let page = Document { parts: vec![Part::Verdicts(matrix)], ..Document::default() }.html();
    assert!(!page.contains("<script>alert") && unbalanced(&page).is_empty());
    assert!(page.contains("<b>no difference</b> <i class=\"same\">=4</i>"), "{page}");
    assert!(page.contains("<b>undecided</b> <i class=\"open\">?9</i>"));
    assert!(page.contains(".verdicts td.open { outline") && page.contains(".verdicts td.same { background"));
}
