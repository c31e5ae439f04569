//! Keys in, characters out: the whole of `top` but the terminal and the run.

use anstyle::{AnsiColor, Effects};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use windtunnel_control::{
    ControlRequest, LaneChoice, LaneStatus, NodeStatus, ProgramStatus, RunStatus, Snapshot,
};
use windtunnel_model::demand::Demand;
use windtunnel_model::{LinkPatch, ResourceAmounts, ResourceUsage};
use windtunnel_scenario::ScenarioSource;

use super::app::{KeyPressEffect, TopViewState};
use super::canvas::ScreenCanvas;
use super::draw::draw;
use super::plain;

fn lane(link: &str, direction: &str, rate: u64) -> LaneStatus {
    LaneStatus {
        link: link.into(),
        direction: direction.into(),
        state: "up".into(),
        latency_ns: 20_000_000,
        rate_bit_per_s: Some(50_000_000),
        offered_bit_per_s: rate,
        delivered_bit_per_s: rate,
        delivered_wire_bit_per_s: rate,
        ..LaneStatus::default()
    }
}

fn snapshot() -> Snapshot {
    let program = |argv: &str, state: &str, exit| ProgramStatus {
        argv: argv.split(' ').map(str::to_owned).collect(),
        state: state.into(),
        pid: (state == "running").then_some(2),
        exit,
    };
    let node = |name: &str, address: &str, programs| NodeStatus {
        node: name.into(),
        addresses: vec![address.into()],
        init_pid: 9,
        absent: false,
        limits: ResourceUsage::default(),
        programs,
    };
    let nodes = vec![
        node("web", "10.0.0.1", vec![program("nginx -g daemon", "running", None)]),
        node("client-10", "10.0.0.3", vec![program("curl http://web/", "exited", Some(7))]),
        node("client-2", "10.0.0.2", vec![]),
    ];
    let busy = LaneStatus {
        offered_bit_per_s: 61_250_000,
        queue_packets: 203,
        queue_bytes: 304_500,
        recent_dropped_packets: 37,
        recent_lateness_max_ns: 84_000,
        recent_queue_max_packets: 204,
        dropped_packets: 4711,
        ..lane("ocean", "paris-tokyo", 48_712_345)
    };
    let down = LaneStatus { state: "down".into(), loss_ppb: 10_000_000, ..lane("wire", "a-b", 0) };
    let traced = LaneStatus { traced: vec!["rate".into()], ..lane("wire", "b-a", 1_000) };
    Snapshot {
        status: RunStatus {
            name: "demo".into(),
            elapsed_ns: 12_340_000_000,
            nodes,
            services: Vec::new(),
            nats: Vec::new(),
        },
        sampled_ns: 12_300_000_000,
        window_ns: 1_000_000_000,
        links: vec![busy, lane("ocean", "tokyo-paris", 800_000), down, traced],
    }
}

fn app() -> TopViewState {
    let file = b"nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], name: wire}]\n";
    let source =
        ScenarioSource { name: "demo.yaml", text: file, default_name: "demo", base_dir: "/" };
    let mut app = TopViewState::new(windtunnel_scenario::load(&source).unwrap().plan);
    app.update(snapshot());
    app
}

/// Types keys: a character for itself.
fn typed(app: &mut TopViewState, text: &str) -> KeyPressEffect {
    let mut effect = KeyPressEffect::Nothing;
    for c in text.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        effect = app.key(KeyEvent::from(code));
    }
    effect
}

fn screen(app: &mut TopViewState, width: usize, height: usize) -> ScreenCanvas {
    let mut canvas = ScreenCanvas::new(width, height);
    draw(&mut canvas, app, true, 0);
    canvas
}

/// The lines of the screen without blanks at their ends.
fn lines(app: &mut TopViewState, width: usize, height: usize) -> Vec<String> {
    let canvas = screen(app, width, height);
    (0..height).map(|row| canvas.row_text(row).trim_end().to_owned()).collect()
}

/// The names in the first two columns, from top to bottom.
fn names(app: &mut TopViewState) -> Vec<String> {
    let lines = lines(app, 80, 24);
    let rows = lines[2..22].iter().filter(|line| !line.is_empty());
    rows.map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn links_on_the_smallest_usual_terminal() {
    let mut app = app();
    let lines = lines(&mut app, 80, 24);
    assert_eq!(
        lines[..6],
        [
            "demo  12.3s   links 4  nodes 3",
            "link  direction   is   delivered   offered queue   bytes drops marks late",
            "ocean paris-tokyo up   48.71mbit 61.25mbit   203 304.5KB    37     - 84us",
            "ocean tokyo-paris up     800kbit   800kbit     -       -     -     -    -",
            "wire  a-b         down         -         -     -       -     -     -    -",
            "wire  b-a         up       1kbit     1kbit     -       -     -     -    -",
        ]
    );
    assert_eq!(
        lines[23],
        "? help  Tab nodes  / filter  <> sort  s set  d down  u up  p pause  q quit"
    );
}

#[test]
fn columns_that_do_not_fit_are_reached_sideways() {
    let mut app = app();
    for _ in 0..8 {
        app.key(KeyEvent::from(KeyCode::Right));
    }
    let lines = lines(&mut app, 80, 6);
    assert_eq!(
        lines[1..5],
        [
            "link  direction   latency   rate loss   on wire most queued all drops",
            "ocean paris-tokyo    20ms 50mbit    - 48.71mbit         204      4711",
            "ocean tokyo-paris    20ms 50mbit    -   800kbit           -         -",
            "",
        ]
        .map(String::from)
    );
}

#[test]
fn nodes_and_their_programs() {
    let mut app = app();
    typed(&mut app, "\t");
    assert_eq!(
        lines(&mut app, 80, 24)[1..5],
        [
            "node      addresses state   pid exit program          cpu cpu limit memory",
            "web       10.0.0.1  running   2    - nginx -g daemon    -         -      -",
            "client-10 10.0.0.3  exited    -    7 curl http://web/   -         -      -",
            "client-2  10.0.0.2  -         -    - -                  -         -      -",
        ]
    );
    typed(&mut app, "1");
    assert_eq!(names(&mut app)[..2], ["client-2 10.0.0.2", "client-10 10.0.0.3"]);
    typed(&mut app, "d");
    assert!(lines(&mut app, 80, 24)[22].starts_with("only links can be taken down"));
}

#[test]
fn rows_are_sorted_by_figures_with_the_largest_first_and_back() {
    let mut app = app();
    let file = ["ocean paris-tokyo", "ocean tokyo-paris", "wire a-b", "wire b-a"];
    assert_eq!(names(&mut app), file);
    typed(&mut app, "4r");
    let up = ["wire a-b", "wire b-a", "ocean tokyo-paris", "ocean paris-tokyo"];
    assert_eq!(names(&mut app), up);
    assert!(lines(&mut app, 80, 24)[1].contains("delivered▲"));
    typed(&mut app, "4");
    assert_eq!(names(&mut app), [up[3], up[2], up[1], up[0]]);
    assert!(lines(&mut app, 80, 24)[1].contains("delivered▼"));
    // One to the left of the first column is the order of the file again.
    typed(&mut app, "<<<<");
    assert_eq!(names(&mut app), file);
}

#[test]
fn the_filter_shows_what_it_is_while_it_is_typed() {
    let mut app = app();
    typed(&mut app, "/TOKYO-");
    assert_eq!(names(&mut app), ["ocean tokyo-paris"]);
    assert_eq!(lines(&mut app, 80, 24)[23], "/TOKYO-");
    typed(&mut app, "\n");
    assert!(lines(&mut app, 80, 24)[0].ends_with("/TOKYO-: 1 of 4 rows"));
    typed(&mut app, "/xyz");
    assert!(lines(&mut app, 80, 24)[2].contains("no row has this in a name"));
    // Esc restores the former filter, and once more shows all rows.
    typed(&mut app, "\u{1b}");
    assert_eq!(names(&mut app), ["ocean tokyo-paris"]);
    typed(&mut app, "\u{1b}");
    assert_eq!(names(&mut app).len(), 4);
}

#[test]
fn the_selection_stays_with_the_link_when_the_order_changes() {
    let mut app = app();
    app.key(KeyEvent::from(KeyCode::End));
    let KeyPressEffect::Order(order) = typed(&mut app, "4d") else { panic!("no order") };
    let lanes = LaneChoice { link: "wire".into(), direction: Some("b-a".into()) };
    assert_eq!(*order.request.message(), ControlRequest::State { lanes, up: false });
    let selected = |app: &mut TopViewState| {
        let canvas = screen(app, 80, 24);
        let inverted =
            |row: usize| canvas.row(row)[0].style.get_effects().contains(Effects::INVERT);
        (1..24).find(|&row| inverted(row)).unwrap()
    };
    // The third of four by delivered packets.
    assert_eq!(selected(&mut app), 4);
}

#[test]
fn properties_are_set_in_the_words_of_set() {
    let mut app = app();
    app.key(KeyEvent::from(KeyCode::End));
    typed(&mut app, "\nlatency=80ms jitter='{spread: 2ms, distribution: normal}'");
    let prompt = lines(&mut app, 120, 24)[23].clone();
    assert!(prompt.starts_with("set wire (b-a, Tab: change): latency=80ms"), "{prompt}");
    let KeyPressEffect::Order(order) = typed(&mut app, "\n") else { panic!("no order") };
    let pairs = [("latency", "80ms"), ("jitter", "{spread: 2ms, distribution: normal}")];
    let patch: LinkPatch = windtunnel_scenario::parse_patch(&pairs).unwrap();
    let lanes = LaneChoice { link: "wire".into(), direction: Some("b-a".into()) };
    assert_eq!(*order.request.message(), ControlRequest::Set { lanes, patch: Box::new(patch) });
}

#[test]
fn limits_of_nodes_are_shown_and_set() {
    let mut app = app();
    let mut limited = snapshot();
    let amounts = |cpu_millis, memory| ResourceAmounts {
        cpu_millis: Some(cpu_millis),
        memory: Some(memory),
        ..ResourceAmounts::default()
    };
    limited.status.nodes[0].limits =
        ResourceUsage { asked: amounts(250, 64_000_000), used: amounts(249, 12_500_000) };
    app.update(limited);
    typed(&mut app, "\t");
    let shown = lines(&mut app, 140, 24).join("\n");
    for figure in ["0.249", "0.25", "12.5MB", "64MB"] {
        assert!(shown.contains(figure), "{figure} in\n{shown}");
    }
    typed(&mut app, "scpu=50");
    let prompt = lines(&mut app, 140, 24)[23].clone();
    assert!(prompt.starts_with("limit web: cpu=50"), "{prompt}");
    let KeyPressEffect::Order(order) = typed(&mut app, "%\n") else { panic!("no order") };
    let demand = Demand { cpu_millis: Some(500), ..Demand::default() };
    assert_eq!(*order.request.message(), ControlRequest::Limit { who: "web".into(), demand });
    for wrong in ["cpu", "cpu=x", "send=1MB/s"] {
        assert_eq!(typed(&mut app, &format!("s{wrong}\n")), KeyPressEffect::Nothing, "{wrong}");
        typed(&mut app, "\u{1b}");
    }
    assert_eq!(typed(&mut app, "d"), KeyPressEffect::Nothing, "nodes are not taken down");
}

#[test]
fn tab_in_the_prompt_means_both_directions() {
    let mut app = app();
    let KeyPressEffect::Order(order) = typed(&mut app, "sloss=1%\t\n") else { panic!("no order") };
    let lanes = LaneChoice { link: "ocean".into(), direction: None };
    assert!(
        matches!(order.request.message(), ControlRequest::Set { lanes: asked, .. } if *asked == lanes)
    );
    assert_eq!(order.done, "ocean: loss=1%");
}

#[test]
fn a_mistake_is_shown_and_the_typed_line_stays() {
    let mut app = app();
    for (text, wrong) in [
        ("latncy=80ms", "unknown key `latncy` of a link (did you mean `latency`?)"),
        ("loss", "`loss` is not a property: write KEY=VALUE, such as loss=5%"),
        ("jitter='", "a quote is not closed"),
        ("", "write KEY=VALUE, such as loss=5%"),
    ] {
        assert_eq!(typed(&mut app, &format!("s{text}\n")), KeyPressEffect::Nothing);
        let lines = lines(&mut app, 80, 24);
        assert_eq!(lines[22], wrong);
        assert!(lines[23].ends_with(text), "{}", lines[23]);
        typed(&mut app, "\u{1b}");
    }
}

#[test]
fn long_words_of_the_run_get_the_lines_they_need() {
    let mut app = app();
    app.say("no link is called wyre (the links are ".to_owned() + &"wire, ".repeat(20) + ")", true);
    let lines = lines(&mut app, 80, 24);
    assert!(lines[21].starts_with("no link is called wyre"), "{lines:?}");
    assert!(lines[22].ends_with("wire, )"), "{lines:?}");
    app.say("word ".repeat(100), true);
    let lines = self::lines(&mut app, 80, 24);
    assert!(lines[20].starts_with("word word") && lines[22].ends_with('…'), "{lines:?}");
}

#[test]
fn the_help_shows_every_key_and_column_and_goes_away() {
    let mut app = app();
    typed(&mut app, "?");
    let shown = lines(&mut app, 80, 60).join("\n");
    for word in ["PgUp", "Ctrl-C", "sort by this column", "delivered", "all drops"] {
        assert!(shown.contains(word), "{word} in\n{shown}");
    }
    app.key(KeyEvent::from(KeyCode::PageDown));
    let bottom = lines(&mut app, 80, 24)[21].clone();
    assert!(bottom.starts_with("Any other key"), "{bottom}");
    typed(&mut app, "q");
    assert_eq!(names(&mut app).len(), 4);
}

#[test]
fn q_and_ctrl_c_leave_but_a_q_can_be_typed() {
    let mut app = app();
    assert_eq!(typed(&mut app, "/q"), KeyPressEffect::Nothing);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.key(interrupt), KeyPressEffect::Quit);
    typed(&mut app, "\u{1b}");
    assert_eq!(typed(&mut app, "q"), KeyPressEffect::Quit);
}

#[test]
fn failures_are_red_only_where_colours_are_wanted() {
    let mut app = app();
    let mut colour_of = |colours| {
        let mut canvas = ScreenCanvas::new(80, 24);
        draw(&mut canvas, &mut app, colours, 0);
        let all = (0..24).flat_map(|row| canvas.row(row)).map(|cell| cell.style.get_fg_color());
        (canvas.row(4)[0].style.get_fg_color(), all.flatten().count())
    };
    assert_eq!(colour_of(true).0, Some(AnsiColor::Red.into()));
    assert_eq!(colour_of(false), (None, 0));
}

#[test]
fn no_size_of_a_window_is_too_small() {
    for width in [1, 2, 7, 20, 300] {
        for height in [1, 2, 3, 4, 5] {
            let mut app = app();
            for keys in ["", "/x", "\u{1b}\u{1b}s", "\u{1b}?", "q\t", "\u{1b}99"] {
                typed(&mut app, keys);
                screen(&mut app, width, height);
            }
        }
    }
}

#[test]
fn as_plain_text_all_columns_are_there() {
    let text = plain::render(&snapshot());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "demo, 12.34s after it began, rates over 1s");
    assert!(lines[1].ends_with("on wire  most queued  all drops"), "{}", lines[1]);
    assert!(lines[5].contains("trace 50mbit"), "{}", lines[5]);
    assert_eq!(
        lines[7],
        "node       addresses  state    pid  exit  program           cpu  cpu limit  memory  memory limit"
    );
    assert_eq!(lines.len(), 11);
}
