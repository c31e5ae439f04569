//! A file that does not run: what it describes.

use windtunnel_model::Plan;

use super::{Document, Map, Mode, Run};
use crate::folder;
use crate::series::Series;

impl Document {
    /// The map of a plan, and what is asked of its links.
    #[must_use]
    pub fn draft(plan: &Plan) -> Document {
        let (map, lanes) = Map::of(plan);
        let run = Run {
            id: plan.name.clone(),
            label: plan.name.clone(),
            group: 0,
            folder: String::new(),
            summary: None,
            incomplete: None,
            elapsed_ns: 0,
            series: Series::new(lanes.len()),
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
        folder::document(Mode::Edit, vec![run], None)
    }
}
