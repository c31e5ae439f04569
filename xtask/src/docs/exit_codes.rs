//! `exit-codes.md`.

use windtunnel_cli::Exit;

use super::{GENERATED, cell};

/// The page.
pub(super) fn page() -> String {
    let mut text = format!("{GENERATED}# Exit codes\n\n| code | meaning |\n| --- | --- |\n");
    for exit in Exit::ALL {
        text.push_str(&format!("| {} | {} |\n", exit.code(), cell(exit.meaning())));
    }
    text.push_str(&format!("| 126, 127 | {} |\n", cell(Exit::COMMAND_MEANING)));
    text.push_str(&format!("| 128+n | {} |\n", cell(Exit::SIGNAL_MEANING)));
    text
}
