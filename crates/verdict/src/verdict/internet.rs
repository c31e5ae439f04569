//! What the way to the machine's outside means for the verdict.

use windtunnel_gateway::{EgressRefusal, GatewayReport};
use windtunnel_trace::report::InternetAccessReport;

use super::doubt::FidelityDoubt;
use crate::evidence::RunEvidence;

/// What should have been carried and was not.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<FidelityDoubt> {
    match evidence.internet {
        None => Vec::new(),
        Some(Err(why)) => {
            vec![FidelityDoubt::other(format!(
                "the gateway to the machine's outside failed: {why}"
            ))]
        }
        Some(Ok(report)) => {
            let lost = report.lost.iter();
            let lost =
                lost.map(|(what, count)| FidelityDoubt::other(format!("internet: {count} {what}")));
            lost.collect()
        }
    }
}

/// What was refused, and what the machine does not let anything carry.
pub(super) fn warnings(evidence: &RunEvidence<'_>) -> Vec<String> {
    let Some(Ok(report)) = evidence.internet else { return Vec::new() };
    let mut warnings = Vec::new();
    if report.refused_in_all() > 0 {
        let refused = report.refused.iter().map(|(why, count)| format!("{count} {}", reason(*why)));
        let refused: Vec<String> = refused.collect();
        warnings.push(format!("internet: packets were refused: {}", refused.join(", ")));
    }
    if report.echo_denied > 0 {
        warnings.push(format!(
            "internet: {} echo requests were not sent: this machine lets its ordinary programs not \
             ping (net.ipv4.ping_group_range)",
            report.echo_denied
        ));
    }
    if report.lines_lost > 0 {
        warnings.push(format!("internet: {} lines are missing in internet.csv", report.lines_lost));
    }
    warnings
}

/// For `run.json`.
pub(super) fn report(evidence: &RunEvidence<'_>) -> Option<InternetAccessReport> {
    let Some(Ok(report)) = evidence.internet else { return None };
    let GatewayReport {
        flows,
        sent_bytes,
        received_bytes,
        refused,
        ignored,
        lost,
        echo_denied,
        ..
    } = report.clone();
    Some(InternetAccessReport {
        flows: flows.into_iter().map(|(kind, count)| (kind.name().to_owned(), count)).collect(),
        sent_bytes,
        received_bytes,
        refused: refused.into_iter().map(|(why, count)| (why.name().to_owned(), count)).collect(),
        ignored,
        lost,
        echo_denied,
    })
}

/// Why packets were refused, in words.
const fn reason(refusal: EgressRefusal) -> &'static str {
    match refusal {
        EgressRefusal::NotAllowed => "to the outside (no --allow-internet)",
        EgressRefusal::HostNotAllowed => "to the machine's loopback (no --allow-host)",
        EgressRefusal::NotListed => "to what `allow` does not list",
        EgressRefusal::Machine => "to addresses of the machine itself",
        EgressRefusal::Inside => "to addresses of the network that nothing has",
        EgressRefusal::NoHost => "to no single host",
        EgressRefusal::NoRoute => "to where the machine has no way",
        EgressRefusal::Denied => "by the machine's own rules",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::testing::RunEvidenceFixture;

    const FILE: &str = "nodes: {a: {}, internet: {}}\nlinks: [{between: [a, internet]}]";

    fn lossy() -> GatewayReport {
        let mut report = GatewayReport::default();
        report.lost.insert("packets that the kernel refused".to_owned(), 3);
        report.refused.insert(EgressRefusal::Machine, 2);
        report.echo_denied = 1;
        report
    }

    #[test]
    fn what_was_lost_is_a_doubt_and_what_was_refused_a_warning() {
        let case = RunEvidenceFixture::of(FILE);
        let end = Ok(lossy());
        let evidence = RunEvidence { internet: Some(&end), ..case.evidence() };
        let doubts: Vec<String> = doubts(&evidence).into_iter().map(|doubt| doubt.text).collect();
        assert_eq!(doubts, ["internet: 3 packets that the kernel refused"]);
        let warnings = warnings(&evidence);
        assert_eq!(
            warnings[0],
            "internet: packets were refused: 2 to addresses of the machine itself"
        );
        assert!(warnings[1].contains("ping_group_range"), "{warnings:?}");
        assert_eq!(report(&evidence).unwrap().refused["machine"], 2);
    }

    #[test]
    fn a_gateway_that_ended_by_itself_is_a_doubt() {
        let case = RunEvidenceFixture::of(FILE);
        let end = Err("it has ended by itself".to_owned());
        let evidence = RunEvidence { internet: Some(&end), ..case.evidence() };
        assert_eq!(doubts(&evidence).len(), 1);
        assert!(!crate::verdict::judge(&evidence).verdict.faithful);
    }
}
