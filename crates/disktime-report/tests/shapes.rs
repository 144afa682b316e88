//! What holds for each shape of a report, whatever the results are.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::collections::BTreeSet;

use common::{Sketch, difficult, lines, noise};
use disktime_report::input::Input;
use disktime_report::terminal::Screen;
use disktime_report::{Shape, report};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};

const PLAIN: Screen = Screen {
    width: None,
    colour: false,
};
const SHAPES: [Shape; 3] = [Shape::Terminal, Shape::Markdown, Shape::Html];

fn input(results: &[Value]) -> Input {
    let mut input = Input::default();
    input
        .add("made-up", &lines(results), &mut BTreeSet::new())
        .unwrap();
    input
}

fn render(results: &[Value], shape: Shape) -> String {
    report(&input(results), "A title", &[], shape, PLAIN).unwrap()
}

/// HTML whose elements all end, as XML wants it; `meta` is the only one here that has no end.
fn xml(html: &str) -> String {
    html.lines()
        .collect::<Vec<_>>()
        .join("\n")
        .replace("<meta charset=\"utf-8\">", "<meta charset=\"utf-8\"/>")
        .replace("initial-scale=1\">", "initial-scale=1\"/>")
}

fn parse(xml: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(xml, options).expect("elements are nested and end")
}

fn words(node: Node<'_, '_>) -> String {
    let texts = node.descendants().filter(Node::is_text);
    texts.filter_map(|t| t.text()).collect()
}

/// Words of the report, without what belongs to its shape.
fn content(report: &str, shape: Shape) -> String {
    let text = match shape {
        Shape::Html => words(parse(&xml(report)).root()),
        Shape::Markdown => report
            .replace('\\', "")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
        Shape::Terminal => report.to_owned(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_scenario_variant_controller_and_group_is_in_each_shape() {
    let results = difficult();
    for shape in SHAPES {
        let text = content(&render(&results, shape), shape);
        for result in &results {
            for key in ["scenario", "variant", "phase", "controller"] {
                let name = result[key].as_str().unwrap_or("");
                assert!(text.contains(name), "{shape:?} lacks {key} {name}");
            }
            let groups = result["groups"].as_array().filter(|g| g.len() <= 12);
            for group in groups.into_iter().flatten() {
                let name = group["name"].as_str().unwrap();
                assert!(text.contains(name), "{shape:?} lacks group {name}");
            }
        }
    }
}

#[test]
fn same_results_same_bytes() {
    let results = difficult();
    for shape in SHAPES {
        assert!(
            render(&results, shape) == render(&results, shape),
            "{shape:?}"
        );
    }
}

#[test]
fn html_needs_nothing_else() {
    let html = render(&difficult(), Shape::Html);
    let style = html
        .split("<style>")
        .nth(1)
        .unwrap()
        .split("</style>")
        .next()
        .unwrap();
    assert!(!style.contains("url(") && !style.contains("@import"));
    let xml = xml(&html);
    let document = parse(&xml);
    let bare = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!bare.contains("http://") && !bare.contains("https://"));
    let strange = [
        "script", "link", "img", "iframe", "object", "image", "use", "base",
    ];
    for node in document.descendants().filter(Node::is_element) {
        assert!(!strange.contains(&node.tag_name().name()), "{node:?}");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(
                !matches!(name, "src" | "srcset" | "data" | "style"),
                "{node:?}"
            );
            assert!(!name.starts_with("on"), "{node:?}");
            assert!(!value.contains("//"), "{node:?}: {value}");
        }
    }
}

#[test]
fn links_within_html_lead_somewhere() {
    let xml = xml(&render(&difficult(), Shape::Html));
    let document = parse(&xml);
    let ids: Vec<_> = document
        .descendants()
        .filter_map(|n| n.attribute("id"))
        .collect();
    let unique: BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
    let links: Vec<_> = document
        .descendants()
        .filter_map(|n| n.attribute("href"))
        .collect();
    assert_eq!(links.len(), ids.len(), "each heading is in the contents");
    for link in links {
        assert!(ids.contains(&link.strip_prefix('#').unwrap()), "{link}");
    }
}

#[test]
fn links_within_markdown_lead_to_headings() {
    let text = render(&difficult(), Shape::Markdown);
    let headings: BTreeSet<String> = text
        .lines()
        .filter_map(|l| l.strip_prefix("## "))
        .map(|h| h.to_lowercase().replace(' ', "-").replace([':', '\\'], ""))
        .collect();
    let links = text
        .lines()
        .filter_map(|l| l.strip_prefix("- [")?.split_once("](#"));
    let links: BTreeSet<String> = links
        .map(|(_, to)| to.trim_end_matches(')').to_owned())
        .collect();
    assert_eq!(links, headings);
}

/// Where an attribute of a drawn thing lies.
fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let value = node
        .attribute(name)
        .unwrap_or_else(|| panic!("{node:?} has no {name}"));
    value.parse().unwrap()
}

#[test]
fn no_label_leaves_its_plot() {
    let xml = xml(&render(&difficult(), Shape::Html));
    let document = parse(&xml);
    let mut labels = 0;
    for svg in document
        .descendants()
        .filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "svg")))
    {
        let sizes = svg.attribute("viewBox").unwrap().split(' ');
        let sizes: Vec<f64> = sizes.map(|s| s.parse().unwrap()).collect();
        for text in svg.descendants().filter(|n| n.tag_name().name() == "text") {
            let label = words(text);
            let label = label.trim();
            let (x, y, size) = (
                number(text, "x"),
                number(text, "y"),
                number(text, "font-size"),
            );
            // Letters of common fonts are half as wide as high, on average.
            let long = label.chars().count() as f64 * size * 0.5;
            let (mut from, mut to) = match text.attribute("text-anchor") {
                Some("start") => (x, x + long),
                Some("end") => (x - long, x),
                _ => (x - long / 2.0, x + long / 2.0),
            };
            let (mut top, mut bottom) = (y - size / 2.0, y + size / 2.0);
            if text.attribute("transform").is_some() {
                // Upright ones hang at their left side.
                (from, to) = (x, x + size);
                (top, bottom) = (y - long / 2.0, y + long / 2.0);
            }
            // Half of a line hangs over where plotters moved a label that lay outside.
            let slack = size * 0.2;
            assert!(
                from >= -slack && to <= sizes[2] + slack,
                "{label:?}: {from} to {to} of {}",
                sizes[2]
            );
            assert!(
                top >= -slack && bottom <= sizes[3] + slack,
                "{label:?}: {top} to {bottom} of {}",
                sizes[3]
            );
            labels += 1;
        }
    }
    assert!(labels > 1000, "only {labels} labels");
}

#[test]
fn all_that_can_be_drawn_is_drawn() {
    let titles = |results: &[Value]| -> Vec<String> {
        let xml = xml(&render(results, Shape::Html));
        let document = parse(&xml);
        let captions = document.descendants().filter(|n| n.has_tag_name("b"));
        captions.map(words).collect()
    };
    let rich = Sketch::new("rich", &[2, 1]);
    let all = [
        "Worst share errors.",
        "Shares.",
        "Latency.",
        "Shares over time.",
    ];
    assert_eq!(titles(&rich.results()), all);
    let poor = Sketch {
        rich: false,
        ..rich.clone()
    };
    assert_eq!(titles(&poor.results()), all[..3]);
    let alone = Sketch {
        weights: vec![1],
        ..rich
    };
    assert_eq!(
        titles(&alone.results()),
        [all[0], all[2]],
        "a group alone has all shares"
    );
    let bare = json!({"disktime_result": 1, "scenario": "s", "on": "vm", "controller": "c"});
    assert!(titles(&[bare]).is_empty());
}

/// A word of characters that mean something somewhere.
const NASTY: &str = "<b>&amp;|`*_[x](y)\\\"'";

fn nasty() -> Vec<Value> {
    let sketch = Sketch {
        variant: NASTY.into(),
        phase: NASTY.into(),
        ..Sketch::new(NASTY, &[2, 1])
    };
    let mut results = sketch.results();
    for result in &mut results {
        result["about"] = json!(format!("about {NASTY}"));
        result["disk_title"] = json!(format!("disk {NASTY}"));
        result["error"] = json!(format!("error {NASTY}"));
        result["groups"][0]["name"] = json!(format!("group {NASTY}"));
        result["settings"] = json!({"key": format!("value {NASTY}")});
        result["checks"] = json!([{"name": format!("check {NASTY}"), "ok": false, "value": null}]);
    }
    results[1]["controller"] = json!(format!("controller {NASTY}"));
    results
}

#[test]
fn names_stand_for_themselves_in_html() {
    let html = render(&nasty(), Shape::Html);
    assert!(!html.contains("<b>&amp;|"));
    let xml = xml(&html);
    let text = words(parse(&xml).root());
    for what in [
        "about",
        "disk",
        "error",
        "group",
        "value",
        "check",
        "controller",
    ] {
        assert!(text.contains(&format!("{what} {NASTY}")), "{what}");
    }
}

#[test]
fn names_do_not_break_markdown() {
    let text = render(&nasty(), Shape::Markdown);
    assert!(!text.contains(['<', '>']) && !text.contains("&amp;|"));
    let mut width = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            width = None;
            continue;
        }
        let fields = line
            .replace("\\\\", "")
            .replace("\\|", "")
            .matches('|')
            .count();
        assert_eq!(*width.get_or_insert(fields), fields, "{line}");
    }
    let meant = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    for what in [
        "about",
        "disk",
        "error",
        "group",
        "value",
        "check",
        "controller",
    ] {
        let escaped = NASTY
            .chars()
            .flat_map(|c| {
                let special = "\\`*_[]|~#".contains(c);
                special.then_some('\\').into_iter().chain([c])
            })
            .collect::<String>();
        assert!(meant.contains(&format!("{what} {escaped}")), "{what}");
    }
}

#[test]
fn lines_fit_the_terminal() {
    let input = input(&difficult());
    for width in [50, 80, 132, 200] {
        let screen = Screen {
            width: Some(width),
            colour: false,
        };
        let text = report(&input, "A title", &[], Shape::Terminal, screen).unwrap();
        // Headings and what underlines them are not broken; a terminal does that.
        let mut heading = false;
        for pair in text.lines().zip(text.lines().skip(1)) {
            let rule = !pair.1.is_empty()
                && (pair.1.chars().all(|c| c == '=') || pair.1.chars().all(|c| c == '-'));
            let long = pair.0.chars().count() > width;
            assert!(!long || rule || heading, "{width}: {}", pair.0);
            heading = rule;
        }
        if width == 80 {
            assert!(text.contains("No room for: "), "what is left out is named");
        }
    }
}

#[test]
fn colours_change_no_word() {
    let input = input(&difficult());
    let shown = |colour| {
        let screen = Screen {
            width: Some(120),
            colour,
        };
        report(&input, "A title", &[], Shape::Terminal, screen).unwrap()
    };
    let (plain, coloured) = (shown(false), shown(true));
    assert!(!plain.contains('\x1b') && coloured.contains('\x1b'));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

/// The part of a Markdown report below a heading of the second level.
fn chapter<'a>(text: &'a str, heading: &str) -> &'a str {
    let begin = text.find(&format!("\n## {heading}\n")).expect(heading) + 1;
    let end = text[begin..]
        .find("\n## ")
        .map_or(text.len(), |end| begin + end);
    &text[begin..end]
}

#[test]
fn discarded_rows_stand_in_the_appendix_only() {
    let kept = Sketch::new("s", &[2, 1]).results();
    let mut all = kept.clone();
    for (n, result) in kept.iter().enumerate() {
        let mut worse = result.clone();
        worse["kept"] = json!(false);
        worse["ios_per_s"] = json!(7777.0 + n as f64);
        worse["groups"][0]["got"] = json!(0.123_456);
        all.push(worse);
    }
    let (without, with) = (
        render(&kept, Shape::Markdown),
        render(&all, Shape::Markdown),
    );
    assert_eq!(chapter(&with, "s"), chapter(&without, "s"));
    let tables = |text: &str| -> Vec<String> {
        let lines = chapter(text, "Summary")
            .lines()
            .filter(|l| l.starts_with('|'));
        lines.map(Into::into).collect()
    };
    assert_eq!(tables(&with), tables(&without));
    assert!(!without.contains("Appendix"));
    let appendix = chapter(&with, "Appendix: settings that served worse");
    for n in 0..kept.len() {
        assert!(appendix.contains(&format!("{}", 7777 + n)), "{appendix}");
    }
    assert!(chapter(&with, "Summary").contains("9 more runs"));
}

#[test]
fn of_many_groups_the_extremes_are_shown_and_the_rest_counted() {
    let weights: Vec<u64> = (1..=256).map(|n| 100 + (noise(n) * 900.0) as u64).collect();
    let mut results = Sketch {
        controllers: vec!["disktime"],
        ..Sketch::new("many", &weights)
    }
    .results();
    results[0]["groups"][77]["got"] = json!(0.0);
    results[0]["groups"][200]["got"] = json!(0.9);
    let text = render(&results, Shape::Markdown);
    let many = chapter(&text, "many");
    let shown: BTreeSet<&str> = many.lines().filter(|l| l.contains("| group-")).collect();
    assert_eq!(shown.len(), 12);
    for extreme in ["| group-77 |", "| group-200 |"] {
        assert!(shown.iter().any(|l| l.contains(extreme)), "{extreme}");
    }
    assert!(
        many.contains("12 of 256 groups") && many.contains("244 are left out"),
        "{many}"
    );
}

#[test]
fn what_fails_is_told_by_words() {
    let results = difficult();
    for shape in SHAPES {
        let text = content(&render(&results, shape), shape);
        for told in [
            "13 failed",
            "FAILED: bfq: share of a within 0.01 of 0.57: 0.5712",
            "bfq: not whole: the run did not come to its end",
            "none: not counted",
            "disktime: health: 2 requests were lost",
            "Published for group-0: read from a figure",
        ] {
            assert!(text.contains(told), "{shape:?} lacks {told:?}");
        }
    }
}

/// A result of two groups, the first with this share.
fn pair(controller: &str, on: &str, share: f64, rate: f64) -> Value {
    json!({"disktime_result": 1, "scenario": "s", "on": on, "controller": controller,
           "kernel": format!("kernel-of-{on}"), "seed": 7, "ios_per_s": rate,
           "groups": [{"name": "a", "entitled": 0.6, "got": share},
                      {"name": "b", "entitled": 0.4, "got": 1.0 - share}]})
}

#[test]
fn whether_simulator_and_machine_agree_is_told_by_words() {
    for (measured, verdict, cases) in [(0.614, "| ok |", "1 of 1"), (0.616, "NOT OK", "0 of 1")] {
        let results = [
            pair("disktime", "sim", 0.6, 1.0),
            pair("disktime", "vm", measured, 1.0),
        ];
        let text = render(&results, Shape::Markdown);
        let chapter = chapter(&text, "Simulator against machine");
        assert!(chapter.contains(verdict), "{chapter}");
        assert!(chapter.contains(cases), "{chapter}");
    }
    let alone = render(&[pair("disktime", "sim", 0.6, 1.0)], Shape::Markdown);
    assert!(!alone.contains("Simulator against machine"));
}

#[test]
fn the_best_is_marked_and_losses_are_named() {
    let results = [
        pair("disktime", "vm", 0.57, 90.0),
        pair("none", "vm", 0.5, 100.0),
        pair("bfq", "vm", 0.59, 99.0),
    ];
    let text = render(&results, Shape::Markdown);
    let summary = chapter(&text, "Summary");
    assert!(
        summary.contains("| s | 3.00 | 10.00 | **\\* 1.00** |"),
        "{summary}"
    );
    assert!(
        summary.contains("| s | 90.0 % | 100.0 % | 99.0 % |"),
        "{summary}"
    );
    assert!(
        summary.contains("- s on vm: worst share error 3.00 points, bfq has 1.00"),
        "{summary}"
    );
    assert!(
        summary.contains("- s on vm: 90.0 I/Os per s, bfq does 99.0 (-9.1 %)"),
        "{summary}"
    );
    let text = render(&results[1..], Shape::Markdown);
    assert!(
        !text.contains("not the best"),
        "nothing is said of disktime where it did not run"
    );
}

#[test]
fn the_colophon_names_kernels_seeds_dates_and_settings() {
    let mut results = vec![pair("disktime", "vm", 0.6, 1.0); 5];
    for (n, (seed, date)) in [(3, "03"), (1, "01"), (2, "05"), (9, "02"), (2, "04")]
        .iter()
        .enumerate()
    {
        results[n]["seed"] = json!(seed);
        results[n]["round"] = json!(n + 1);
        results[n]["date"] = json!(format!("2026-01-{date}T00:00:00Z"));
        results[n]["settings"] = json!({"knob": "turned", "size": 7});
    }
    let text = render(&results, Shape::Markdown);
    let colophon = chapter(&text, "Colophon");
    for told in [
        "| vm | kernel-of-vm | 5 | 1 to 3, 9 | 2026-01-01T00:00:00Z to 2026-01-05T00:00:00Z |",
        "- Settings of disktime: knob turned; size 7",
    ] {
        assert!(colophon.contains(told), "{colophon}");
    }
}

#[test]
fn kernels_are_told_apart_where_there_are_several() {
    let mut results = vec![
        pair("disktime", "vm", 0.6, 1.0),
        pair("disktime", "vm", 0.58, 1.0),
    ];
    results[1]["kernel"] = json!("another");
    let text = render(&results, Shape::Markdown);
    let summary = chapter(&text, "Summary");
    for (place, error) in [("vm another", "2.00"), ("vm kernel-of-vm", "0.00")] {
        let (_, below) = summary.split_once(&format!("On {place}:")).unwrap();
        let row = below.lines().find(|l| l.starts_with("| s |")).unwrap();
        assert_eq!(row, format!("| s | {error} |"), "{place}");
    }
}

#[test]
fn each_scenario_has_a_chapter_with_all_its_controllers() {
    let results = difficult();
    let text = render(&results, Shape::Markdown);
    for result in results.iter().filter(|r| r["kept"] != json!(false)) {
        let chapter = chapter(&text, result["scenario"].as_str().unwrap());
        let controller = result["controller"].as_str().unwrap();
        assert!(chapter.contains(controller), "{controller}: {chapter}");
    }
}

#[test]
fn runs_of_several_files_are_told_apart() {
    let mut results = vec![
        pair("disktime", "vm", 0.6, 1.0),
        pair("disktime", "vm", 0.5, 1.0),
    ];
    for result in &mut results {
        result["error"] = json!("it broke");
    }
    let told = |results: &[Value]| chapter(&render(results, Shape::Markdown), "s").to_owned();
    let text = told(&results);
    assert!(
        text.contains("disktime, run 1: not whole") && text.contains("disktime, run 2: not whole")
    );
    assert!(
        !text.contains("several versions"),
        "machines do not repeat themselves"
    );
    for result in &mut results {
        result["on"] = json!("sim");
    }
    assert!(told(&results).contains("several versions"));
    results[1]["seed"] = json!(8);
    assert!(!told(&results).contains("several versions"));
}

#[test]
fn disks_are_named_however_they_are_described() {
    for (title, disk, told) in [
        (
            json!("a disk, cached"),
            json!({"servers": 1, "service_ns": 1}),
            "- Disk: a disk, cached",
        ),
        (
            json!(null),
            json!({"servers": 8, "service_ns": 4e6 as u64}),
            "- Disk: 8 servers of 4.00 ms",
        ),
        (
            json!(""),
            json!({"model": "nvme", "size_mib": 7}),
            "- Disk: model nvme, size\\_mib 7",
        ),
        (json!(null), json!("nvme"), "- Disk: nvme"),
    ] {
        let mut result = pair("disktime", "vm", 0.6, 1.0);
        result["disk"] = disk;
        result["disk_title"] = title;
        let text = render(&[result], Shape::Markdown);
        assert!(chapter(&text, "s").contains(told), "{told}: {text}");
    }
    assert!(!render(&[pair("disktime", "vm", 0.6, 1.0)], Shape::Markdown).contains("Disk:"));
}

#[test]
fn notes_come_first_in_every_shape() {
    let notes = ["Shortened: <why> | how.".to_owned(), "Second.".to_owned()];
    for shape in [Shape::Terminal, Shape::Markdown, Shape::Html] {
        let made = report(&input(&nasty()), "A title", &notes, shape, PLAIN).unwrap();
        let at = |text: &str| {
            made.find(text)
                .unwrap_or_else(|| panic!("no {text}: {made}"))
        };
        let summary = made.rfind("Summary").unwrap();
        assert!(at("Second.") < summary, "{shape:?}");
        assert!(at("Shortened:") < at("Second."), "{shape:?}");
        if shape == Shape::Html {
            assert!(!made.contains("<why>"), "not escaped");
        }
    }
}
