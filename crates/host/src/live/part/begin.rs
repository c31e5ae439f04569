//! The beginning of a run on one of several machines, which may come later than on the others.

use windtunnel_trace::event::What;

use super::Live;
use crate::clock::BEGIN_LATE;

impl Live {
    /// Tells if the run begins here after its time: its programs and events are late then.
    pub(in crate::live) fn tell_late_begin(&self) {
        let Some(side) = &self.side else { return };
        if self.began_late > BEGIN_LATE {
            let (host, late_ns) = (side.host(side.member), self.began_late.as_nanos());
            self.tell(None, What::BeganLate { host, late_ns });
        }
    }
}
