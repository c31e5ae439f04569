//! The preload library: it records the calls of a program on its sockets into a region.
//!
//! A program that is to be recorded starts with [`LIBRARY`] in a file that `LD_PRELOAD` names, and
//! with [`REGION_VARIABLE`] set to the path of a region ([`windtunnel_sys::region::MappedRecordRegion`]). Both
//! paths have to be readable, the region writable, where the program runs and where those that it
//! starts run. The library opens the region once, when a program starts, and keeps no descriptor;
//! what the program is and does stays the same, whether there is a region or not.
//!
//! It writes the kinds `Call` and `CallEnd`, and defines `FlowFrom`, `FlowTo`, `FlowSocket`,
//! `Process` and `Unseen`: at the first call of each flow and process after recording was started,
//! in the ring of the processor that made this call, so that a definition may come after a record
//! in another ring. Flows of datagram sockets that are not connected are one for each peer; their
//! own address is that of the socket, unspecified where it is not bound to one.
//!
//! `crates/shim/src/lib.rs` says what it sees and what it does not.

/// The library, for programs of the machine that this was built for.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libwindtunnel_preload.so"));

/// The name of the variable that holds the path of the region.
pub const REGION_VARIABLE: &str = "WINDTUNNEL_RECORD";

/// The name of the variable that holds the path of the socket at which the library hands over
/// listeners of programs that it cannot enter; without it, that socket has the abstract name
/// `windtunnel/handover`.
pub const DOOR_VARIABLE: &str = "WINDTUNNEL_HANDOVER";

#[cfg(test)]
mod tests {
    use super::LIBRARY;

    #[test]
    fn the_library_is_one_for_elf_of_64_bits_and_names_no_other() {
        assert_eq!(&LIBRARY[..5], b"\x7fELF\x02");
        assert!(!LIBRARY.windows(7).any(|bytes| bytes == b"libc.so"));
    }

    #[test]
    fn the_library_holds_no_path_of_the_machine_that_built_it() {
        for folder in [env!("CARGO_MANIFEST_DIR"), env!("OUT_DIR")] {
            assert!(!LIBRARY.windows(folder.len()).any(|bytes| bytes == folder.as_bytes()));
        }
    }
}
