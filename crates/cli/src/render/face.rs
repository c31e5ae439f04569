//! The output for people while a run goes on.
//!
//! Lines are written by a thread of their own, so that a terminal that stands still (Ctrl-S, a
//! pager) never holds up the run: what does not fit into its channel is not shown, and counted. The
//! thread starts when the network is up, because setting it up needs a process with one thread.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anstyle::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use unicode_width::UnicodeWidthStr;
use windtunnel_host::{Observer, ObserverNotice};
use windtunnel_model::{Plan, Span};
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use crate::progress::{ProgressIndicator, ProgressUnit};
use crate::render::overload::OverloadNoticeThrottle;
use crate::render::text::shown;
use crate::render::{event, paint, quantity};

/// Which output is shown, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunDisplayOptions {
    /// Whether anything is shown at all.
    pub(crate) quiet: bool,
    /// Whether lines of programs are written as they are.
    pub(crate) raw: bool,
    /// Whether lines of programs go to standard error, because standard output is for JSON.
    pub(crate) lines_are_talk: bool,
    /// Whether lines may be coloured.
    pub(crate) line_colours: bool,
    /// Whether talk may be coloured.
    pub(crate) talk_colours: bool,
}

/// Shows a run on the terminal.
#[derive(Debug)]
pub(crate) struct Face {
    bar: ProgressBar,
    /// Of what happens before the run.
    steps: Mutex<BTreeMap<RunPreparationStep, ProgressIndicator>>,
    manner: RunDisplayOptions,
    width: usize,
    duration: Option<Span>,
    writer: Mutex<Option<TerminalWriterThread>>,
    unshown: AtomicU64,
    overloads: Mutex<OverloadNoticeThrottle>,
}

/// What happens before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RunPreparationStep {
    Fetching,
    Unpacking,
    Setup,
}

#[derive(Debug)]
struct TerminalWriterThread {
    lines: SyncSender<TerminalWriterMessage>,
    thread: JoinHandle<()>,
}

/// Something for the thread.
#[derive(Debug)]
enum TerminalWriterMessage {
    Data(String),
    Talk(String),
    Progress(String),
}

impl Face {
    /// A face for a run of `plan`.
    pub(crate) fn new(plan: &Plan, manner: RunDisplayOptions) -> Self {
        let bar = if manner.quiet {
            ProgressBar::hidden()
        } else {
            // Hidden by itself when standard error is not a terminal.
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10))
        };
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let width = plan.nodes.iter().map(|node| {
            let number = if node.programs.len() > 1 { 2 } else { 0 };
            node.name.width() + number
        });
        Face {
            bar,
            steps: Mutex::new(BTreeMap::new()),
            manner,
            width: width.max().unwrap_or(0).min(SOURCE_WIDTH_MAX),
            duration: plan.duration,
            writer: Mutex::new(None),
            unshown: AtomicU64::new(0),
            overloads: Mutex::new(OverloadNoticeThrottle::default()),
        }
    }

    /// Waits until all is shown, and takes the progress line away.
    pub(crate) fn finish(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(TerminalWriterThread { lines, thread }) = writer {
            drop(lines);
            // A panic there has been printed; lines that it did not show are in the run folder.
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
        let unshown = self.unshown.load(Ordering::Relaxed);
        if unshown > 0 {
            let lines = quantity::count(usize::try_from(unshown).unwrap_or(usize::MAX), "line");
            crate::output::talk(&format!("{lines} not shown: see the run folder"));
        }
    }

    fn show(&self, line: TerminalWriterMessage) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = writer.get_or_insert_with(|| {
            let (lines, receiver) = sync_channel(LINES_WAITING_MAX);
            let bar = self.bar.clone();
            let thread = std::thread::spawn(move || write_all(&receiver, &bar));
            TerminalWriterThread { lines, thread }
        });
        let progress = matches!(line, TerminalWriterMessage::Progress(_));
        if writer.lines.try_send(line).is_err() && !progress {
            self.unshown.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn output(&self, source: &str, node: usize, line: &str) -> TerminalWriterMessage {
        let colours = if self.manner.lines_are_talk {
            self.manner.talk_colours
        } else {
            self.manner.line_colours
        };
        let line = if self.manner.raw { Cow::Borrowed(line) } else { shown(line) };
        let text = prefixed(source, self.width, node, &line, colours);
        if self.manner.lines_are_talk {
            TerminalWriterMessage::Talk(text)
        } else {
            TerminalWriterMessage::Data(text)
        }
    }

    fn event(&self, event: &EventLogEntry) {
        if let EventLogEntryKind::RunEnded { .. } = event.what {
            let rest = self.overloads().rest(event.at_ns);
            rest.into_iter().for_each(|text| self.talk(&text));
        }
        let taken = self.overloads().take(event);
        match taken {
            Ok(due) => due.into_iter().for_each(|text| self.talk(&text)),
            Err(()) if is_shown(&event.what) => self.talk(&event::text(event)),
            Err(()) => {}
        }
    }

    fn talk(&self, text: &str) {
        let text = paint(text, AnsiColor::BrightBlack, self.manner.talk_colours);
        self.show(TerminalWriterMessage::Talk(text));
    }

    fn overloads(&self) -> MutexGuard<'_, OverloadNoticeThrottle> {
        self.overloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bar that goes away when the step is done.
    fn step(&self, step: RunPreparationStep, done: u64, total: u64) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || match step {
            RunPreparationStep::Fetching => {
                ProgressIndicator::new("fetching images", ProgressUnit::Bytes, self.manner.quiet)
            }
            RunPreparationStep::Unpacking => {
                ProgressIndicator::new("unpacking images", ProgressUnit::Bytes, self.manner.quiet)
            }
            RunPreparationStep::Setup => {
                ProgressIndicator::new("setting up nodes", ProgressUnit::Things, self.manner.quiet)
            }
        };
        steps.entry(step).or_insert_with(new).set(done, total);
        if done >= total {
            steps.remove(&step);
        }
    }

    fn progress(&self, elapsed: Span, running: usize) -> String {
        let elapsed = elapsed.as_nanos() / 1_000_000_000;
        let of = self.duration.map(|all| format!(" of {}", quantity::span(all)));
        let programs = if running == 1 { "program runs" } else { "programs run" };
        format!("{elapsed}s{}, {running} {programs}", of.unwrap_or_default())
    }
}

impl Observer for Face {
    fn notice(&self, notice: &ObserverNotice<'_>) {
        if self.manner.quiet {
            return;
        }
        match notice {
            // Here there is no thread yet, and nothing to hold up.
            ObserverNotice::Setup { done, total } => {
                let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
                self.step(RunPreparationStep::Setup, number(*done), number(*total));
            }
            ObserverNotice::Fetching { done, total } => {
                self.step(RunPreparationStep::Fetching, *done, *total);
            }
            ObserverNotice::Unpacking { done, total } => {
                self.step(RunPreparationStep::Unpacking, *done, *total);
            }
            ObserverNotice::Measuring { paths } => {
                let noun = if *paths == 1 { "path" } else { "paths" };
                self.show(TerminalWriterMessage::Progress(format!("measuring {paths} {noun}")));
            }
            ObserverNotice::Output { source, node, line, .. } => {
                self.show(self.output(source, *node, line));
            }
            ObserverNotice::Event(event) => self.event(event),
            ObserverNotice::Tick { elapsed, running } => {
                let due = self.overloads().due(elapsed.as_nanos());
                due.into_iter().for_each(|text| self.talk(&text));
                self.show(TerminalWriterMessage::Progress(self.progress(*elapsed, *running)));
            }
            ObserverNotice::Stopping { reason } => {
                self.show(TerminalWriterMessage::Talk(format!("stopping: {reason}")));
            }
            ObserverNotice::Hurried => {
                self.show(TerminalWriterMessage::Talk(
                    "stopping at once: programs still run".to_owned(),
                ));
            }
            _ => {}
        }
    }
}

/// Lateness is summed up at the end; in between there could be thousands of these.
fn is_shown(what: &EventLogEntryKind) -> bool {
    !matches!(what, EventLogEntryKind::Late { .. })
}

/// `web    | line` with the name in the node's colour.
fn prefixed(source: &str, width: usize, node: usize, line: &str, colours: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(source.width()));
    let colour = COLOURS[node % COLOURS.len()];
    // A colour that the program left on must not spill over.
    let reset = if colours && line.contains('\u{1b}') { "\u{1b}[0m" } else { "" };
    format!("{}{blanks} | {line}{reset}", paint(source, colour, colours))
}

fn write_all(lines: &Receiver<TerminalWriterMessage>, bar: &ProgressBar) {
    let (mut data, mut talk) = (String::new(), String::new());
    let mut progress = None;
    loop {
        let first = lines.recv_timeout(Duration::from_secs(3600));
        let ended = matches!(first, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
        // Waiting lines go out in one write, but in order: only one kind at a time.
        for line in first.into_iter().chain(lines.try_iter().take(BATCH_LINES)) {
            match line {
                TerminalWriterMessage::Data(text) => {
                    flush(bar, &mut talk, &mut std::io::stderr());
                    data.extend([text.as_str(), "\n"]);
                }
                TerminalWriterMessage::Talk(text) => {
                    flush(bar, &mut data, &mut std::io::stdout());
                    talk.extend([text.as_str(), "\n"]);
                }
                TerminalWriterMessage::Progress(text) => progress = Some(text),
            }
        }
        flush(bar, &mut data, &mut std::io::stdout());
        flush(bar, &mut talk, &mut std::io::stderr());
        if let Some(text) = progress.take() {
            bar.set_message(text);
            bar.tick();
        }
        if ended {
            return;
        }
    }
}

/// Writes above the progress line. Errors of writing are ignored: the run goes on.
fn flush(bar: &ProgressBar, text: &mut String, out: &mut impl Write) {
    if !text.is_empty() {
        bar.suspend(|| {
            let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        });
        text.clear();
    }
}

const LINES_WAITING_MAX: usize = 10_000;
const BATCH_LINES: usize = 1_000;
const SOURCE_WIDTH_MAX: usize = 24;
/// Distinct on dark and light terminals; red is reserved for failures.
const COLOURS: [AnsiColor; 10] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightCyan,
    AnsiColor::BrightYellow,
    AnsiColor::BrightGreen,
    AnsiColor::BrightMagenta,
    AnsiColor::BrightBlue,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_behind_their_node_and_line_up() {
        assert_eq!(prefixed("web", 8, 0, "hello", false), "web      | hello");
        assert_eq!(prefixed("client-1", 8, 1, "", false), "client-1 | ");
    }

    #[test]
    fn a_program_cannot_leave_its_line_unless_that_is_asked_for() {
        let plan = Plan::default();
        let manner = RunDisplayOptions {
            quiet: false,
            raw: false,
            lines_are_talk: false,
            line_colours: false,
            talk_colours: false,
        };
        let forged = "\rFAITHFUL, PASSED\u{1b}[K";
        let text = |manner| match Face::new(&plan, manner).output("a", 0, forged) {
            TerminalWriterMessage::Data(text)
            | TerminalWriterMessage::Talk(text)
            | TerminalWriterMessage::Progress(text) => text,
        };
        assert_eq!(text(manner), "a | \\rFAITHFUL, PASSED\\u{1b}[K");
        assert_eq!(text(RunDisplayOptions { raw: true, ..manner }), format!("a | {forged}"));
    }

    #[test]
    fn nodes_have_colours_of_their_own_and_those_of_programs_do_not_spill() {
        assert_eq!(prefixed("a", 1, 0, "x", true), "\u{1b}[36ma\u{1b}[0m | x");
        assert_eq!(prefixed("b", 1, 1, "x", true), "\u{1b}[33mb\u{1b}[0m | x");
        let red = prefixed("a", 1, 0, "\u{1b}[31mred", true);
        assert_eq!(red, "\u{1b}[36ma\u{1b}[0m | \u{1b}[31mred\u{1b}[0m");
    }
}
