//! `run --wait-quiet`: waiting until the machine is quiet, with a warning if it stays busy.

use std::io;

use windtunnel_host::MachineActivity;
use windtunnel_model::Span;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::output;

/// Waits until this machine is quiet, for at most `most`; with `quiet` nothing is printed.
pub(super) fn wait(most: Span, late_above: Span, quiet: bool) -> Result<(), VerbFailure> {
    let print = |text: &str| {
        if !quiet {
            output::talk(text);
        }
    };
    wait_with(most, late_above, MachineActivity::watch, print).map_err(|error| {
        let text = format!("--wait-quiet: cannot measure the load of this machine: {error}");
        VerbFailure::new(ExitCategory::Machine, text)
    })
}

fn wait_with(
    most: Span,
    late_above: Span,
    mut watch: impl FnMut() -> io::Result<MachineActivity>,
    mut print: impl FnMut(&str),
) -> io::Result<()> {
    let mut waited = Span::ZERO;
    loop {
        let seen = watch()?;
        let first = waited == Span::ZERO;
        waited = waited + seen.watched;
        if seen.is_quiet(late_above) {
            if !first {
                print(&format!("this machine is quiet after {}", tenths(waited)));
            }
            return Ok(());
        }
        if waited >= most {
            let text = describe(&seen, late_above);
            print(&format!("warning: this machine is not quiet after {}: {text}", tenths(waited)));
            return Ok(());
        }
        if first {
            let text = describe(&seen, late_above);
            print(&format!("waiting up to {most} until this machine is quiet: {text}"));
        }
    }
}

/// Measured values beside allowed ones.
fn describe(seen: &MachineActivity, late_above: Span) -> String {
    format!(
        "timers up to {}us late (at most {}us), processors busy for {}% (at most {}%), {}% taken by \
         the hypervisor (at most {}%)",
        seen.latest.as_nanos() / 1_000,
        MachineActivity::latest_allowed(late_above).as_nanos() / 1_000,
        seen.busy_percent,
        MachineActivity::BUSY_ALLOWED,
        seen.stolen_percent,
        MachineActivity::STOLEN_ALLOWED,
    )
}

/// A span with one digit after the point: `4.1s`.
fn tenths(span: Span) -> String {
    let tenths = span.as_nanos() / 100_000_000;
    format!("{}.{}s", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output while processors are that busy, a second after the other.
    fn output(most_s: u64, busy: &[u8]) -> Vec<String> {
        let mut left = busy.iter();
        let watch = || {
            let busy_percent = *left.next().expect("no more seconds than were given");
            let (watched, latest) = (Span::from_secs(1), Span::from_millis(3));
            Ok(MachineActivity { watched, latest, busy_percent, stolen_percent: 0 })
        };
        let mut lines = Vec::new();
        let print = |text: &str| lines.push(text.to_owned());
        wait_with(Span::from_secs(most_s), Span::from_millis(10), watch, print).unwrap();
        assert_eq!(left.next(), None, "the wait goes on");
        lines
    }

    #[test]
    fn a_quiet_machine_is_not_waited_for() {
        assert_eq!(output(30, &[25]), [] as [&str; 0]);
    }

    #[test]
    fn a_busy_machine_is_waited_for_until_it_is_quiet() {
        let seen = "timers up to 3000us late (at most 5000us), processors busy for 97% (at most \
                    25%), 0% taken by the hypervisor (at most 1%)";
        let waiting = format!("waiting up to 30s until this machine is quiet: {seen}");
        let quiet = "this machine is quiet after 4.0s".to_owned();
        assert_eq!(output(30, &[97, 60, 26, 3]), [waiting, quiet]);
    }

    #[test]
    fn a_machine_that_stays_busy_is_reported_and_not_waited_for_any_longer() {
        let lines = output(2, &[80, 90]);
        assert_eq!(lines.len(), 2);
        assert!(
            lines[1].starts_with("warning: this machine is not quiet after 2.0s: "),
            "{lines:?}"
        );
        assert!(lines[1].contains("busy for 90%"), "{lines:?}");
    }
}
