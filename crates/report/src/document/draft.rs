//! A file that does not run: what it describes.

use windtunnel_model::Plan;

use super::run::RunSection;
use super::{PageMode, ReportDocument, TopologyMap};
use crate::folder;
use crate::series::LinkTimeSeriesSet;

impl ReportDocument {
    /// The map of a plan, and what is asked of its links.
    #[must_use]
    pub fn draft(plan: &Plan) -> ReportDocument {
        let (map, lanes) = TopologyMap::of(plan);
        let run = RunSection {
            id: plan.name.clone(),
            label: plan.name.clone(),
            group: 0,
            folder: String::new(),
            summary: None,
            incomplete: None,
            elapsed_ns: 0,
            series: LinkTimeSeriesSet::new(lanes.len()),
            map,
            lanes,
            events: Vec::new(),
            lateness: Vec::new(),
            rtt: Vec::new(),
            outputs: Vec::new(),
            flows: Vec::new(),
            flows_in_all: 0,
            requests: None,
            modulation: Vec::new(),
            notes: Vec::new(),
            limits_series: Vec::new(),
        };
        folder::document(PageMode::Edit, vec![run], None)
    }
}
