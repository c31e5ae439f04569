//! Reservations whose nodes would be on several machines: control groups cannot divide what they have.

use std::collections::BTreeSet;

use windtunnel_lead::PlacementHostSet;
use windtunnel_model::{Plan, ReservationId};
use windtunnel_placement::NodePlacement;
use windtunnel_scenario::{ScenarioNotice, SourceLocation};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// Refuses a placement that spreads a reservation, at the line of the reservation in `file`.
pub(crate) fn refuse_spread(
    plan: &Plan,
    site: &PlacementHostSet,
    placement: &NodePlacement,
    file: &str,
    written: &[SourceLocation],
) -> Result<(), VerbFailure> {
    let spread = (0..plan.reservations.len()).find_map(|index| {
        let hosts = hosts_of(plan, ReservationId::from_index(index), placement);
        (hosts.len() > 1).then_some((index, hosts))
    });
    let Some((index, hosts)) = spread else { return Ok(()) };
    let names: Vec<&str> =
        hosts.into_iter().filter_map(|at| Some(site.hosts.get(at)?.name.as_str())).collect();
    let message = format!(
        "reservation `{}`: its nodes would be on several machines, which cannot share it: {}",
        plan.reservations[index].name,
        names.join(", ")
    );
    let text = match written.get(index) {
        Some(place) => format!("{file}: {}", ScenarioNotice::at(*place, message)),
        None => message,
    };
    Err(VerbFailure::new(ExitCategory::Scenario, text).hint("`pin` puts its nodes on one machine"))
}

/// The machines of all nodes within a reservation.
fn hosts_of(plan: &Plan, reservation: ReservationId, placement: &NodePlacement) -> BTreeSet<usize> {
    let is_within = |node: &usize| {
        let innermost = plan.nodes[*node].reservation;
        plan.reservations_from(innermost).any(|it| it == reservation)
    };
    let nodes = (0..plan.nodes.len()).filter(is_within);
    nodes.map(|node| placement.hosts[node]).collect()
}

#[cfg(test)]
mod tests {
    use windtunnel_lead::sample::card;
    use windtunnel_scenario::{ScenarioOverrides, ScenarioSource};

    use super::*;

    fn refusal(pins: [&str; 2]) -> Option<VerbFailure> {
        let text = format!(
            "nodes:\n  a: {{pin: {}}}\n  b: {{pin: {}}}\n  c: {{}}\nallow-unreachable: true\nlinks: [{{between: [a, b]}}, {{between: [b, c]}}]\n\
             reserve:\n  site: {{of: [inner, a], cpu: 1}}\n  inner: {{of: [b], cpu: 0.5}}\n",
            pins[0], pins[1]
        );
        let source = ScenarioSource {
            name: "net.yaml",
            text: text.as_bytes(),
            default_name: "net",
            base_dir: "/",
        };
        let instead = ScenarioOverrides { several_machines: true, ..ScenarioOverrides::default() };
        let none = |_: &str| Err("no file".to_owned());
        let loaded =
            windtunnel_scenario::load_instead(&source, &none, instead).expect("it is fine");
        let site = PlacementHostSet::of(&[card("one", 1), card("two", 2)]);
        let placement = site.place(&loaded.plan).expect("they carry it");
        let written = &loaded.reservations;
        refuse_spread(&loaded.plan, &site, &placement, "net.yaml", written).err()
    }

    #[test]
    fn a_reservation_over_two_machines_is_refused_at_its_line_and_one_on_one_machine_is_not() {
        let failure = refusal(["one", "two"]).expect("it is refused");
        let expected = "error: net.yaml: line 8: reservation `site`: its nodes would be on several \
                        machines, which cannot share it: one, two\nhint: `pin` ";
        assert!(failure.text().starts_with(expected), "{}", failure.text());
        assert!(refusal(["two", "two"]).is_none());
    }
}
