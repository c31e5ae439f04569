//! Pseudoterminals.

use windtunnel_sys::terminal::{self, RawMode, TerminalSize};

#[test]
fn both_ends_are_terminals_and_share_the_size() {
    let pair = terminal::open_pair().unwrap();
    assert!(terminal::is_terminal(&pair.terminal));
    let size = TerminalSize { rows: 43, columns: 132 };
    terminal::set_size(&pair.controller, size).unwrap();
    assert_eq!(terminal::size(&pair.terminal).unwrap(), size);
}

#[test]
fn a_pipe_is_not_a_terminal() {
    let (reader, _writer) = std::io::pipe().unwrap();
    assert!(!terminal::is_terminal(&reader));
    let error = terminal::size(&reader).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
}

#[test]
fn raw_mode_passes_bytes_as_they_are_until_dropped() {
    let pair = terminal::open_pair().unwrap();
    let mut buffer = [0; 16];
    let raw = RawMode::enter(&pair.terminal).unwrap();
    rustix::io::write(&pair.terminal, b"a\n").unwrap();
    assert_eq!(rustix::io::read(&pair.controller, &mut buffer).unwrap(), 2);
    drop(raw);
    rustix::io::write(&pair.terminal, b"a\n").unwrap();
    assert_eq!(rustix::io::read(&pair.controller, &mut buffer).unwrap(), 3);
    assert_eq!(&buffer[..3], b"a\r\n");
}
