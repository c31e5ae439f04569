//! `exit-codes.md`.

use windtunnel_cli::ExitCategory;

use super::{GENERATED, cell};

/// The page.
pub(super) fn page() -> String {
    let mut text = format!("{GENERATED}# Exit codes\n\n| code | meaning |\n| --- | --- |\n");
    for exit in ExitCategory::ALL {
        text.push_str(&format!("| {} | {} |\n", exit.code(), cell(exit.meaning())));
    }
    text.push_str(&format!("| 126, 127 | {} |\n", cell(ExitCategory::COMMAND_MEANING)));
    text.push_str(&format!("| 128+n | {} |\n", cell(ExitCategory::SIGNAL_MEANING)));
    text.push_str(FAILURES);
    text
}

const FAILURES: &str = "\n## Failures as JSON\n\nEvery command has `--json` (or `WINDTUNNEL_JSON=1`). With it, a \
command that fails writes one JSON object to standard output, always with these fields; `exec` and `shell` write it to \
standard error, because standard output is that of the command in the node.\n\n\
| field | meaning |\n| --- | --- |\n\
| `error` | What went wrong, with its causes. |\n\
| `hint` | What to do about it, or `null`. |\n\
| `code` | The exit code. |\n\
| `kind` | Its name: `check`, `usage`, `scenario`, `machine` or `internal`; `command` for 126 and 127, `signal` above 128. |\n\
| `mistakes` | The mistakes of a file, each with `file`, `line`, `column`, `message`, `hint` and `snippet`; else empty. |\n\
| `more` | How many mistakes there are beside these. |\n\
| `reasons` | Why the machines of `--hosts` cannot carry a scenario, each with `message` and `hint`; else empty. |\n\n\
A run that was carried out and has failed has no such object: its report says so (`verdict`).\n";
