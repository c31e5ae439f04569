//! `top` in a pseudo-terminal, read by an emulator of a terminal.

use std::process::{Child, Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::Value;
use windtunnel_sys::terminal::{self, PseudoterminalPair, TerminalSize};

use super::support::{Lab, Live, any_user, is_missing, until};

#[test]
fn links_are_watched_sorted_filtered_and_changed_from_a_terminal() {
    if is_missing(&["ping", "setsid", "stty"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(NET);
        live.wait_for(&[("event", "program-started")]);
        let mut window = Window::open(&live);
        let modes = window.before.clone();
        window.show("links 4");
        assert!(window.row(2).starts_with("ocean"), "{}", window.text());
        // Only wire carries anything.
        window.keys("4");
        window.until("wire to be the first by what it delivers", |window| {
            window.row(1).contains("delivered▼") && window.row(2).starts_with("wire")
        });
        window.keys("/OCEAN\r");
        window.show("2 of 4 rows");
        assert!(!window.text().contains("wire"), "{}", window.text());
        window.keys("\u{1b}[Hs");
        window.show("set ocean (other-third");
        window.keys("latency=80\r");
        window.show("`80` has no unit");
        window.keys("ms loss=1%\r");
        window.show("ocean (other-third): latency=80ms loss=1%");
        let set = [("event", "link-set"), ("link", "ocean"), ("direction", "other-third")];
        live.wait_for(&set);
        window.until("the new latency", |window| window.row(2).contains(" 80ms"));
        assert!(!window.row(3).contains(" 80ms"), "{}", window.text());
        window.keys("D");
        window.until("both directions to be down", |window| {
            [2, 3].iter().all(|&row| window.row(row).contains(" down "))
        });
        window.keys("\t");
        window.show("running");
        assert!(window.row(2).contains("ping"), "{}", window.text());
        window.resize(TerminalSize { rows: 10, columns: 60 });
        window.until("the keys in the new last line", |window| window.row(9).starts_with("? help"));
        window.keys("q");
        assert_eq!(window.end(), Some(0));
        assert_eq!(window.modes(), modes);
        let outcome = stop(live);
        let down = [("event", "link-state"), ("link", "ocean"), ("up", "false")];
        assert_eq!((outcome.events(&set).len(), outcome.events(&down).len()), (1, 2));
    }
}

#[test]
fn the_terminal_is_given_back_however_top_ends() {
    if is_missing(&["setsid", "stty"]) {
        return;
    }
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(BOX);
        live.wait_for(&[("event", "run-began")]);
        for (signal, code) in [("INT", 130), ("TERM", 143)] {
            let mut window = Window::open(&live);
            let modes = window.before.clone();
            window.show("links 2");
            assert_ne!(window.modes(), modes);
            let id = window.child.id().to_string();
            let kill = Command::new("kill").args(["-s", signal, &id]).status().unwrap();
            assert!(kill.success());
            assert_eq!(window.end(), Some(code));
            assert_eq!(window.modes(), modes);
        }
        let mut window = Window::open(&live);
        let modes = window.before.clone();
        window.show("links 2");
        stop(live);
        assert_eq!(window.end(), Some(0));
        assert_eq!(window.modes(), modes);
        assert!(window.text().contains("scenario-0 has ended"), "{}", window.text());
    }
}

#[test]
fn the_tables_are_printed_once_without_a_terminal() {
    for user in any_user() {
        let lab = Lab::new(user);
        let mut live = lab.start(BOX);
        live.wait_for(&[("event", "run-began")]);
        let text = |arguments: &[&str]| {
            let seen = live.ask("top", arguments);
            assert!(seen.status.success(), "{seen:?}");
            String::from_utf8(seen.stdout).unwrap()
        };
        let tables = text(&[]);
        assert!(tables.starts_with("scenario-0, "), "{tables}");
        for start in ["link  direction  is", "wire  box-other  up", "wire  other-box  up", "box "] {
            assert!(tables.lines().any(|line| line.starts_with(start)), "{start} in {tables}");
        }
        let seen: Value = serde_json::from_str(&text(&["--json"])).unwrap();
        assert_eq!(seen["links"].as_array().unwrap().len(), 2);
        assert_eq!(seen["links"][1]["direction"], "other-box");
        assert_eq!(seen["links"][1]["latency_ns"], 1_000_000);
        assert_eq!(seen["nodes"][0]["node"], "box");
        stop(live);
    }
}

fn modes_of(pair: &PseudoterminalPair) -> String {
    let terminal = Stdio::from(pair.terminal.try_clone().unwrap());
    let seen = Command::new("stty").arg("-g").stdin(terminal).output().unwrap();
    String::from_utf8(seen.stdout).unwrap()
}

/// A terminal of 80 columns and 24 rows in which `top` watches a run.
struct Window {
    pair: PseudoterminalPair,
    child: Child,
    /// The terminal's modes before top began.
    before: String,
    emulator: vt100::Parser,
}

impl Window {
    fn open(live: &Live<'_>) -> Window {
        let pair = terminal::open_pair().unwrap();
        let flags = fcntl_getfl(&pair.controller).unwrap();
        fcntl_setfl(&pair.controller, flags | OFlags::NONBLOCK).unwrap();
        terminal::set_size(&pair.terminal, TerminalSize { rows: 24, columns: 80 }).unwrap();
        let top = live.command("top", &["--interval", "100ms"]);
        // A session of its own, so that it gets SIGWINCH.
        let mut command = Command::new("setsid");
        command.args(["-w", "-c"]).arg(top.get_program()).args(top.get_args());
        for (name, value) in top.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let end = || Stdio::from(pair.terminal.try_clone().unwrap());
        command.current_dir(top.get_current_dir().unwrap()).env("TERM", "xterm-256color");
        let before = modes_of(&pair);
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Window { pair, child, before, emulator: vt100::Parser::new(24, 80, 0) }
    }

    fn keys(&self, keys: &str) {
        assert_eq!(rustix::io::write(&self.pair.controller, keys.as_bytes()), Ok(keys.len()));
    }

    fn resize(&mut self, size: TerminalSize) {
        terminal::set_size(&self.pair.terminal, size).unwrap();
        self.emulator.screen_mut().set_size(size.rows, size.columns);
    }

    /// Takes pending output.
    fn read(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(got @ 1..) = rustix::io::read(&self.pair.controller, &mut buffer) {
            self.emulator.process(&buffer[..got]);
        }
    }

    #[track_caller]
    fn until(&mut self, what: &str, fact: impl Fn(&Window) -> bool) {
        until(what, || {
            self.read();
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "top has ended ({ended:?}): {}", self.text());
            fact(self).then_some(())
        });
    }

    #[track_caller]
    fn show(&mut self, text: &str) {
        self.until(text, |window| window.text().contains(text));
    }

    fn text(&self) -> String {
        self.emulator.screen().contents()
    }

    fn row(&self, row: u16) -> String {
        let screen = self.emulator.screen();
        screen.rows(0, screen.size().1).nth(row.into()).unwrap_or_default()
    }

    /// The terminal's modes, in `stty`'s words.
    fn modes(&self) -> String {
        modes_of(&self.pair)
    }

    /// Waits for the end: the exit code, once the screen is the user's again.
    #[track_caller]
    fn end(&mut self) -> Option<i32> {
        let status = until("the end of top", || {
            self.read();
            self.child.try_wait().unwrap()
        });
        self.read();
        let screen = self.emulator.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{}", self.text());
        status.code()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // It has usually ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn stop(live: Live<'_>) -> super::support::Outcome {
    let seen = live.ask("stop", &[]);
    assert!(seen.status.success(), "{seen:?}");
    let outcome = live.finish();
    outcome.assert_code(0);
    outcome
}

/// Two nodes without programs: such a run lasts until it is stopped.
const BOX: &str = "nodes: {box: {}, other: {}}
links: [{between: [box, other], name: wire, latency: 1ms}]
";
/// One link with traffic and one without.
const NET: &str = "nodes:
  box: {run: ping -q -i 0.1 other, daemon: true}
  other: {forward: true}
  third: {}
links:
  - {between: [other, third], name: ocean, latency: 1ms}
  - {between: [box, other], name: wire, latency: 1ms}
";
