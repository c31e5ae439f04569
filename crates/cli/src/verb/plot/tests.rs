//! Figures from a small document.

use serde_json::json;
use windtunnel_plot::{Figure, SeriesInterpolation};

use super::*;

/// Two runs of a link with two directions and an idle one; 20 bins of 100 ms.
fn document() -> PlotDocument {
    let run = |id: &str, scale: u64| {
        let bytes: Vec<u64> = (0..20).map(|bin| bin * scale).collect();
        json!({
            "id": id, "label": id, "elapsed_ns": 2_000_000_000u64,
            "lanes": [
                {"link": "ocean", "direction": "tokyo-paris"}, {"link": "ocean", "direction": "paris-tokyo"},
                {"link": "shore", "direction": "paris-lyon"}, {"link": "shore", "direction": "lyon-paris"},
            ],
            "series": {"step_ns": 100_000_000, "bins": 20, "samples_per_bin": 1, "lanes": [
                {"delivered_bytes": bytes, "queue_max_packets": bytes, "dropped": {"loss": [1], "aqm": [0, 2]}},
                {"delivered_bytes": [1]}, null, null,
            ]},
            "events": [
                {"at_ns": 500_000_000, "event": "link-set", "kind": "change", "text": "ocean slower", "links": ["ocean"], "nodes": []},
                {"at_ns": 600_000_000, "event": "link-set", "kind": "change", "text": "shore", "links": ["shore"], "nodes": []},
                {"at_ns": 700_000_000, "event": "run-began", "kind": "run", "text": "began", "links": [], "nodes": []},
            ],
            "lateness": [
                {"name": "all packets", "count": 4, "max_ns": 9, "bins": [[100, 1], [1000, 3]]},
                {"name": "ocean", "lane": 0, "count": 1, "max_ns": 9, "bins": [[5, 1]]},
            ],
        })
    };
    serde_json::from_value(json!({"runs": [run("one", 1000), run("two", 2000)]})).unwrap()
}

fn arguments(words: &[&str]) -> PlotArguments {
    use clap::{Args, FromArgMatches};
    let command = PlotArguments::augment_args(clap::Command::new("plot"));
    let words = std::iter::once("plot").chain(words.iter().copied());
    PlotArguments::from_arg_matches(&command.get_matches_from(words)).unwrap()
}

fn drawn(words: &[&str], document: &PlotDocument) -> Figure {
    match panels::figure(&arguments(words), document) {
        Ok((figure, _)) => figure,
        Err(failure) => panic!("{}", failure.text()),
    }
}

fn refused(words: &[&str]) -> String {
    match panels::figure(&arguments(words), &document()) {
        Ok(_) => panic!("{words:?} is drawn"),
        Err(failure) => failure.text(),
    }
}

fn one() -> PlotDocument {
    let mut document = document();
    document.runs.truncate(1);
    document
}

#[test]
fn runs_are_laid_over_each_other_in_one_colour_each() {
    let figure = drawn(&["--link", "ocean:up", "--what", "throughput,drops"], &document());
    let lines: Vec<_> =
        figure.panels[0].series.iter().map(|s| (s.name.as_str(), s.colour)).collect();
    assert_eq!(lines, [("one", 0), ("two", 1)]);
    assert_eq!(figure.title.as_deref(), Some("ocean (tokyo-paris)"));
    // 3 kB in 100 ms.
    for (run, rate) in [(0, 240_000.0), (1, 480_000.0)] {
        let (at, value) = figure.panels[0].series[run].points[3];
        assert!((at - 0.35).abs() < 1e-9 && (value - rate).abs() < 1e-6, "{at} {value}");
    }
    let drops: Vec<f64> = figure.panels[1].series[0].points.iter().map(|p| p.1).collect();
    assert_eq!(drops[..3], [10.0, 20.0, 0.0]);
}

#[test]
fn directions_of_one_run_have_colours_and_those_of_several_have_dashes() {
    let look = |document: &PlotDocument| -> Vec<_> {
        let figure = drawn(&["--link", "ocean"], document);
        figure.panels[0].series.iter().map(|s| (s.name.clone(), s.colour, s.dash)).collect()
    };
    let own = |name: &str, colour, dash| (name.to_owned(), colour, dash);
    assert_eq!(look(&one()), [own("tokyo-paris", 0, 0), own("paris-tokyo", 1, 0)]);
    let several = look(&document());
    assert_eq!(several[1], own("one, paris-tokyo", 0, 1));
    assert_eq!(several[2], own("two, tokyo-paris", 1, 0));
}

#[test]
fn a_step_merges_bins_rates_as_means_and_queues_as_maxima() {
    let figure = drawn(&["--link", "ocean:up", "--step", "1s"], &one());
    let points = |panel: usize| figure.panels[panel].series[0].points.clone();
    // 0 to 9 kB in one second are 360 kbit/s.
    assert_eq!(points(0), [(0.5, 360_000.0), (1.5, 1_160_000.0)]);
    assert_eq!(points(1), [(0.5, 9000.0), (1.5, 19_000.0)]);
}

#[test]
fn changes_of_what_is_drawn_are_marked() {
    let marks = |words: &[&str]| -> Vec<String> {
        drawn(words, &one()).panels[0].marks.iter().map(|mark| mark.text.clone()).collect()
    };
    assert_eq!(marks(&["--link", "ocean"]), ["ocean slower"]);
    assert_eq!(marks(&[]), ["ocean slower", "shore"]);
    assert_eq!(marks(&["--no-marks"]), [""; 0]);
}

#[test]
fn distributions_are_cumulated_over_all_packets_or_those_of_a_link() {
    let figure = drawn(&["--what", "lateness-cdf"], &document());
    let series = &figure.panels[0].series[1];
    assert_eq!((series.name.as_str(), series.shape), ("two", SeriesInterpolation::Steps));
    assert_eq!(series.points, [(100.0, 0.0), (100.0, 0.25), (1000.0, 1.0)]);
    let figure = drawn(&["--what", "lateness-cdf", "--link", "ocean:up"], &one());
    assert_eq!(figure.panels[0].series[0].points, [(5.0, 0.0), (5.0, 1.0)]);
    assert!(refused(&["--what", "rtt-cdf"]).contains("hint: `windtunnel run --record`"));
}

#[test]
fn unknown_names_are_refused_with_those_that_there_are() {
    assert_eq!(
        refused(&["--link", "ocaen"]),
        "error: the run one has no link `ocaen`\nhint: did you mean `ocean`?"
    );
    assert_eq!(
        refused(&["--link", "x"]),
        "error: the run one has no link `x`\nhint: it has ocean, shore"
    );
    assert_eq!(
        refused(&["--link", "ocean:left"]),
        "error: the link `ocean` has no direction `left`\nhint: it has up, down, tokyo-paris, paris-tokyo"
    );
    assert!(refused(&["--from", "3s"]).contains("hint: the runs last 2 s"));
    assert!(refused(&["--label", "a,b,c"]).starts_with("error: 3 names for 2 runs"));
    let what = "troughput".parse::<PlotPanelKind>().unwrap_err();
    assert!(what.starts_with("did you mean `throughput`? there are throughput, offered"), "{what}");
}

#[test]
fn without_a_choice_the_busiest_directions_are_drawn() {
    let (figure, left_out) = panels::figure(&arguments(&[]), &one()).unwrap_or_else(|_| panic!());
    assert_eq!((figure.panels[0].series.len(), left_out), (2, 0));
    assert_eq!(figure.title.as_deref(), Some("one: ocean"));
    assert_eq!(drawn(&["--no-title"], &one()).title, None);
}

#[test]
fn what_is_left_at_the_end_belongs_to_the_last_step() {
    let mut document = one();
    document.runs[0].elapsed_ns = 1_910_000_000;
    let figure = drawn(&["--link", "ocean:up"], &document);
    let points = &figure.panels[0].series[0].points;
    assert_eq!(points.len(), 19);
    // 18 and 19 kB in 110 ms.
    let (at, rate) = points[18];
    assert!(
        (at - 1.855).abs() < 1e-9 && (rate - 37_000.0 * 8.0 / 0.11).abs() < 1e-3,
        "{at} {rate}"
    );
}

#[test]
fn repetitions_have_one_colour_and_one_name() {
    let mut document = document();
    document.runs.push(document.runs[1].clone());
    document.runs[1].group = 1;
    document.runs[2].group = 1;
    let groups = json!({"groups": [{"name": "fifo"}, {"name": "codel"}]});
    document.comparison = Some(serde_json::from_value(groups).unwrap());
    let look = |words: &[&str]| -> Vec<_> {
        let series = &drawn(words, &document).panels[0].series;
        series.iter().map(|s| (s.name.clone(), s.colour)).collect()
    };
    let of = |name: &str, colour| (name.to_owned(), colour);
    assert_eq!(look(&["--link", "ocean:up"]), [of("fifo", 0), of("codel", 1), of("codel", 1)]);
    assert_eq!(look(&["--link", "ocean:up", "--label", "a,b"])[2], of("b", 1));
}
