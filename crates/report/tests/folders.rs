//! Documents and pages of whole run folders, which the tests write.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windtunnel_report::{RenderedReport, ReportDocument, ReportSizeLimits, groups};
use windtunnel_scenario::ScenarioSource;
use windtunnel_trace::sample::{COLUMNS, LinkSampleRow};

const NET: &str = "nodes:\n  a: {run: 'true'}\n  b: {}\nrouters: [r]\n\
    links:\n- {between: [a, r], name: left, rate: 10mbit}\n- {between: [r, b], name: right}\n";

/// A folder with a plan.
fn folder(parent: &Path, name: &str, scenario: &str) -> PathBuf {
    let folder = parent.join(name);
    fs::create_dir_all(folder.join("nodes/a")).unwrap();
    let text = scenario.as_bytes();
    let source = ScenarioSource { name: "net.yaml", text, default_name: "net", base_dir: "/" };
    let plan = windtunnel_scenario::load(&source).unwrap().plan;
    fs::write(folder.join("plan.json"), serde_json::to_vec(&plan).unwrap()).unwrap();
    folder
}

/// `links.csv` of rows for link, direction and tenth of a second.
fn links(folder: &Path, rows: impl IntoIterator<Item = (u64, String, String, LinkSampleRow)>) {
    let mut text = format!("{COLUMNS}\n").into_bytes();
    for (tenth, link, direction, row) in rows {
        row.write_line(&mut text, tenth * 100_000_000 + 7_000, &link, &direction);
    }
    fs::write(folder.join("links.csv"), text).unwrap();
}

fn report(folders: &[PathBuf], options: &ReportSizeLimits) -> RenderedReport {
    RenderedReport::of(&groups(folders).unwrap(), options).unwrap()
}

fn document(folders: &[PathBuf], options: &ReportSizeLimits) -> ReportDocument {
    report(folders, options).document
}

/// The document that a page has inside, as a browser reads it.
fn inside(html: &str) -> Value {
    let (_, rest) = html.split_once("data-encoding=\"deflate-base64\">").unwrap();
    let (text, _) = rest.split_once("</script>").unwrap();
    let bytes = STANDARD.decode(text).unwrap();
    let mut json = String::new();
    flate2::read::ZlibDecoder::new(bytes.as_slice()).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

#[test]
fn a_page_has_the_whole_document_inside_and_no_name_can_leave_it() {
    let parent = tempfile::tempdir().unwrap();
    let run = folder(parent.path(), "net", NET);
    let row = LinkSampleRow {
        delivered_bytes: 1000,
        queue_max_packets: 3,
        dropped_loss: 2,
        ..LinkSampleRow::default()
    };
    links(&run, [(1, "left".into(), "a-r".into(), row), (3, "left".into(), "a-r".into(), row)]);
    fs::write(run.join("nodes/a/stdout"), "</script><script>alert(1)</script>\u{1f600}").unwrap();
    fs::write(
        run.join("events.jsonl"),
        "{\"at_ns\":1,\"event\":\"run-began\"}\n{\"at_ns\":2,\"event\":\"link-state\",\"link\":\"left\",\
         \"direction\":\"a-r\",\"up\":false}\n{\"at_ns\":3,\"event\":\"of-a-later-version\"}\n{\"at_",
    )
    .unwrap();
    let html = report(&[run], &ReportSizeLimits::default()).page.html();
    assert!(!html.contains("alert(1)"));
    let seen = inside(&html);
    assert_eq!((&seen["format"], &seen["version"]), (&json!("windtunnel-report"), &json!(1)));
    let run = &seen["runs"][0];
    let names: Vec<&str> = run["map"]["vertices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|vertex| vertex["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "r"]);
    assert_eq!(run["lanes"][0], json!({"link": "left", "direction": "a-r", "from": 0, "to": 2}));
    let lane = &run["series"]["lanes"][0];
    assert_eq!(lane["delivered_bytes"], json!([1000, 0, 1000]));
    assert_eq!(lane["dropped"], json!({"loss": [2, 0, 2]}));
    assert_eq!(run["series"]["lanes"][1], Value::Null);
    assert_eq!(run["events"][1]["text"], "link left a-r: down");
    assert_eq!(run["outputs"][0]["head"], "</script><script>alert(1)</script>\u{1f600}");
    assert!(run["notes"][0].as_str().unwrap().contains("1 events of events.jsonl"), "{run:#}");
    assert!(run["incomplete"].is_string(), "a run without a verdict says so");
}

#[test]
fn time_lines_get_coarser_until_the_page_is_small_enough_and_lose_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let run = folder(parent.path(), "net", NET);
    let empty = report(std::slice::from_ref(&run), &ReportSizeLimits::default()).page.html().len();
    // A sequence that does not compress: multiples of a large prime.
    let noise = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
    let rows = (1..=6000).map(|tenth| {
        let bytes = noise(tenth);
        let row = LinkSampleRow {
            offered_bytes: bytes + 100,
            delivered_bytes: bytes,
            queue_max_packets: if tenth == 4321 { 99_999 } else { noise(tenth + 7) % 1000 },
            ..LinkSampleRow::default()
        };
        (tenth, "left".to_owned(), "a-r".to_owned(), row)
    });
    links(&run, rows);
    let most = empty + 10_000;
    let options = ReportSizeLimits { page_bytes_max: most, ..ReportSizeLimits::default() };
    let made = report(std::slice::from_ref(&run), &options);
    let (html, made) = (made.page.html(), made.document);
    assert_eq!(
        inside(&html),
        serde_json::to_value(&made).unwrap(),
        "the page has the document as it is, with its note"
    );
    assert!(html.len() <= most, "{} bytes", html.len());
    let series = &made.runs[0].series;
    assert!(series.samples_per_bin > 1 && series.step_ns == series.samples_per_bin * 100_000_000);
    let lane = series.lanes[0].as_ref().unwrap();
    assert_eq!(lane.queue_max_packets.iter().max(), Some(&100_000), "to four digits");
    let sum: u64 = lane.delivered_bytes.iter().sum();
    let all: u64 = (1..=6000).map(noise).sum();
    assert!(sum.abs_diff(all) * 2000 < all, "{sum} of {all} bytes");
    let note = &made.runs[0].notes[0];
    assert!(note.contains(&format!("{} samples of 100 ms", series.samples_per_bin)), "{note}");
    let whole = document(&[run], &ReportSizeLimits::default());
    assert_eq!((whole.runs[0].series.samples_per_bin, whole.runs[0].notes.len()), (1, 0));
}

/// A run of which a link direction carried so many bytes in a second, and its verdict.
fn measured(parent: &Path, name: &str, bytes: u64) -> PathBuf {
    let run = folder(parent, name, NET);
    let row = LinkSampleRow { delivered_bytes: bytes, ..LinkSampleRow::default() };
    links(&run, [(10, "left".into(), "a-r".into(), row)]);
    let summary = json!({"elapsed_ns": 1_000_000_000, "links": [],
        "verdict": {"passed": true, "faithful": bytes != 1400}});
    fs::write(run.join("run.json"), summary.to_string()).unwrap();
    run
}

#[test]
fn repetitions_of_two_experiments_are_compared_by_their_means() {
    let parent = tempfile::tempdir().unwrap();
    let base = [1000, 1100, 1200].into_iter().zip(1..);
    base.for_each(|(bytes, n)| drop(measured(parent.path(), &format!("fifo/{n}"), bytes)));
    let other = [1400, 1500, 1600].into_iter().zip(1..);
    other.for_each(|(bytes, n)| drop(measured(parent.path(), &format!("codel/{n}"), bytes)));
    let folders = ["fifo", "codel"].map(|name| parent.path().join(name));
    let made = document(&folders, &ReportSizeLimits::default());
    let comparison = made.comparison.unwrap();
    let names: Vec<&str> = comparison.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(
        (names.as_slice(), comparison.groups[1].runs.as_slice()),
        (&["fifo", "codel"][..], &[3, 4, 5][..])
    );
    let goodput = comparison.measures.iter().find(|it| it.what == "goodput").unwrap();
    assert_eq!(goodput.mean, [Some(8800.0), Some(12_000.0)]);
    let difference = &goodput.difference[0];
    // Standard errors 57.7 bytes each, 4 degrees of freedom: 2.776 * 81.65 * 8 bits.
    assert!((difference.mean - 3200.0).abs() < 1e-6);
    assert!((difference.low.unwrap() - (3200.0 - 1813.6)).abs() < 0.5, "{difference:?}");
    assert!(difference.confident);
    let faithful = comparison.measures.iter().find(|it| it.what == "faithful").unwrap();
    assert!((faithful.mean[1].unwrap() - 2.0 / 3.0).abs() < 1e-9);
    assert!(!faithful.difference[0].confident, "one of three is no proof");
    let ids: std::collections::BTreeSet<&str> =
        made.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids.len(), 6, "runs of one name have ids of their own");
}

#[test]
fn what_is_not_a_run_is_refused_with_its_name() {
    let parent = tempfile::tempdir().unwrap();
    let error = groups(&[parent.path().join("nothing")]).unwrap_err();
    assert!(error.to_string().contains("nothing is not the folder of a run"), "{error}");
    let run = folder(parent.path(), "net", NET);
    fs::write(run.join("links.csv"), format!("{COLUMNS}\n0.1\n")).unwrap();
    let error = RenderedReport::of(
        &groups(std::slice::from_ref(&run)).unwrap(),
        &ReportSizeLimits::default(),
    )
    .unwrap_err();
    assert!(error.to_string().ends_with("links.csv: line 2: it has too few fields"), "{error}");
    fs::write(run.join("plan.json"), "{").unwrap();
    let error =
        RenderedReport::of(&groups(&[run]).unwrap(), &ReportSizeLimits::default()).unwrap_err();
    assert!(error.to_string().contains("plan.json"), "{error}");
}
