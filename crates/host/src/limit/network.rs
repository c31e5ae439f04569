//! What a command needs whose bandwidth is limited: the library, and the thread that holds what the
//! library cannot enter.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;

use windtunnel_sys::seccomp;

use super::place::Place;
use super::supervision::Supervision;
use super::{LimitError, Shared, system};

#[derive(Debug)]
pub(super) struct Network {
    place: Place,
    supervision: Supervision,
}

impl Network {
    /// The calling thread, and all that it starts from now on, cannot use io_uring or MPTCP.
    pub(super) fn start(shared: &Shared) -> Result<Network, LimitError> {
        let place = Place::make().map_err(system("give programs the library"))?;
        let region = shared.region_again().map_err(system("map the file of a limit"))?;
        let door = place.make_door().map_err(system("give programs a door for listeners"))?;
        let supervision =
            Supervision::start(region, door).map_err(system("hold static programs"))?;
        seccomp::refuse_hidden_ways().map_err(system("refuse io_uring to programs"))?;
        Ok(Network { place, supervision })
    }

    /// The variables of the command. `preload` is that of its own.
    pub(super) fn variables(
        &self,
        preload: Option<OsString>,
        shared: &Shared,
    ) -> [(OsString, OsString); 3] {
        self.place.variables(preload, shared.path())
    }

    /// Where the command hands over its listener.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.supervision.socket()
    }

    /// Ends. Calls of programs that are left and that the library is not in will fail (`ENOSYS`).
    pub(super) fn finish(self) {
        self.supervision.finish();
    }
}
