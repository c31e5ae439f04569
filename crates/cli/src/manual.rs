//! The manual page: the command line as troff, with sections beyond the arguments.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::exit::ExitCategory;

/// The manual page `windtunnel(1)`, all verbs on one page.
pub(crate) fn page(mut command: Command) -> String {
    command.build();
    let verbs: Vec<Command> =
        command.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
    let main = Man::new(command);
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    let _ = main.render_title(&mut page);
    let _ = main.render_name_section(&mut page);
    let _ = main.render_synopsis_section(&mut page);
    let _ = main.render_description_section(&mut page);
    for verb in verbs {
        let name = verb.get_name().to_uppercase();
        let tasks: Vec<Command> = verb.get_subcommands().cloned().collect();
        page.extend(verb_section(&name, verb));
        for task in tasks.into_iter().filter(|task| task.get_name() != "help") {
            let name = format!("{name} {}", task.get_name().to_uppercase());
            page.extend(verb_section(&name, task));
        }
    }
    for (heading, entries) in [("EXIT STATUS", exit_codes()), ("FILES", texts(FILES))] {
        page.extend(section(heading, &entries));
    }
    page.extend(section("ENVIRONMENT", &texts(ENVIRONMENT)));
    ascii(&String::from_utf8_lossy(&page))
}

/// The page with no character beyond ASCII: terminals and versions of roff differ in rendering
/// those, and `\[u2026]` is dropped with a warning where the terminal has no `…`.
fn ascii(page: &str) -> String {
    page.chars().fold(String::with_capacity(page.len()), |mut text, c| {
        match c {
            c if c.is_ascii() => text.push(c),
            '…' => text.push_str("..."),
            // groff_char(7): each has a form of its own in ASCII.
            '·' => text.push_str("\\(pc"),
            '–' => text.push_str("\\(en"),
            'á' => text.push_str("\\('a"),
            c => text.push_str(&format!("\\[u{:04X}]", u32::from(c))),
        }
        text
    })
}

/// A verb as one section; the sections of its own page become subsections.
fn verb_section(name: &str, verb: Command) -> Vec<u8> {
    let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(verb);
    let mut parts = Vec::new();
    let _ = man.render_synopsis_section(&mut parts);
    let _ = man.render_options_section(&mut parts);
    let parts = String::from_utf8_lossy(&parts).replace(".SH ", ".SS ");
    let mut roff = Roff::new();
    roff.control("SH", [name]);
    roff.text([roman(about)]);
    let mut text = roff.to_roff().into_bytes();
    text.extend(parts.into_bytes());
    text
}

fn section(heading: &str, entries: &[(String, String)]) -> Vec<u8> {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for (term, text) in entries {
        roff.control("TP", []);
        roff.text([bold(term.as_str())]);
        roff.text([roman(text.as_str())]);
    }
    roff.to_roff().into_bytes()
}

fn exit_codes() -> Vec<(String, String)> {
    let codes =
        ExitCategory::ALL.iter().map(|exit| (exit.code().to_string(), exit.meaning().to_owned()));
    let commands = ("126, 127".to_owned(), ExitCategory::COMMAND_MEANING.to_owned());
    codes.chain([commands, ("128+n".to_owned(), ExitCategory::SIGNAL_MEANING.to_owned())]).collect()
}

fn texts(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|(term, text)| ((*term).to_owned(), (*text).to_owned())).collect()
}

const FILES: &[(&str, &str)] = &[
    ("runs/NAME-DATE-TIME/", "The folder of a run where none is named with --out."),
    ("runs/latest", "A link to the newest of them."),
    ("plan.json", "In the run folder: the scenario resolved."),
    (
        "run.json",
        "The report: verdict, programs, expectations, links asked and achieved, lateness.",
    ),
    ("nat.csv", "A row for each mapping of a NAT."),
    ("links.csv", "A row for each link direction and 100 ms in which it did something."),
    ("lateness.csv", "How late packets left, of all and of each link direction: a histogram."),
    ("events.jsonl", "What happened, one JSON object a line."),
    ("nodes/NODE/", "What the programs of a node wrote, and how they ended."),
    ("control.sock", "How the other verbs reach the run while it lives."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("WINDTUNNEL_OPTION", "The value of --option where it is not given."),
    ("NO_COLOR", "Not empty: no colours, see no-color.org."),
    ("SHELL", "What `windtunnel shell` runs."),
    ("WINDTUNNEL_NODE", "Set for the programs of a node: its name."),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// `man` under the locale C warns of each character that it cannot show, and leaves it out.
    #[test]
    fn every_terminal_can_show_the_page() {
        let page = page(crate::command());
        assert!(page.is_ascii());
        let shown: Vec<&str> = page.lines().filter(|line| line.contains("\\[u")).collect();
        assert!(shown.is_empty(), "{shown:?}");
        assert!(page.contains("\\fI<KEY=VALUE...>\\fR"));
    }

    #[test]
    fn the_page_has_every_verb_and_every_exit_code() {
        let page = page(crate::command());
        for verb in crate::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let heading = format!(".SH {}\n", verb.get_name().to_uppercase());
            assert!(page.contains(&heading), "{heading}");
        }
        for exit in ExitCategory::ALL {
            assert!(page.contains(&format!("\\fB{}\\fR\n", exit.code())), "{exit:?}");
        }
    }
}
