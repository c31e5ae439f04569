//! Reservations that nodes share.

use alloc::borrow::ToOwned;
use alloc::format;

use crate::name;
use crate::plan::Plan;

use crate::message::{PlanValidationError, Validate, ensure, shown};

pub(super) fn validate(plan: &Plan) -> Result<(), PlanValidationError> {
    let count = plan.reservations.len();
    ensure(count <= Plan::RESERVATIONS_MAX, || {
        format!("{count} reservations are more than {}", Plan::RESERVATIONS_MAX)
    })?;
    for reservation in &plan.reservations {
        let shown = shown(&reservation.name);
        name::check_label(&reservation.name, name::LABEL_LETTERS_MAX).map_err(|error| {
            PlanValidationError::new(format!("`{shown}` cannot name a reservation: {error}"))
        })?;
        let of = |error: PlanValidationError| {
            PlanValidationError::new(format!("reservation `{shown}`: {error}"))
        };
        reservation.demand.validate().map_err(of)?;
        let parents = core::iter::successors(reservation.parent, |parent| {
            plan.reservations.get(parent.index()).and_then(|it| it.parent)
        });
        let known = parents.clone().take(count + 1).all(|parent| parent.index() < count);
        ensure(known && parents.take(count + 1).count() <= count, || {
            format!("reservation `{shown}` is within itself, or within none that there is")
        })?;
    }
    let known = |node: &crate::plan::Node| node.reservation.is_none_or(|it| it.index() < count);
    ensure(plan.nodes.iter().all(known), || "a node is in no reservation that there is".to_owned())
}
