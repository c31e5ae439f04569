//! Golden files of the command line: help, check, mistakes, exit codes. They need no rights.
//!
//! To renew them after a change that is meant: `TRYCMD=overwrite cargo test -p windtunnel-cli
//! --test golden`.

#[test]
fn the_command_line_is_as_recorded() {
    trycmd::TestCases::new().case("tests/golden/*.md").run();
}
