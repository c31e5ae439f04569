//! How a user interface (a terminal, a page) is notified while a run is led.

use windtunnel_cluster::protocol::AgentDescription;
use windtunnel_cluster::protocol::run::RunSetup;
use windtunnel_placement::NodePlacement;

use crate::placing::PlacementHostSet;

/// Notices beside those of the run itself, which go to a [`windtunnel_host::Observer`]. Other
/// threads send them, too.
pub trait ClusterRunObserver: Send + Sync {
    /// Every node has a machine; `site` has one for each of `cards`, and nothing has begun yet.
    fn placed(
        &self,
        cards: &[AgentDescription],
        site: &PlacementHostSet,
        placement: &NodePlacement,
    ) {
        let _ = (cards, site, placement);
    }

    /// The machines are now asked to begin their parts.
    fn begins(&self, setup: &RunSetup) {
        let _ = setup;
    }

    /// Something is not as it should be; nothing ends for it.
    fn warn(&self, text: &str);
}
