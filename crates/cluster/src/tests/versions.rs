use windtunnel_control::SoftwareVersion;

use super::{Live, key};
use crate::double::FakeAgent;
use crate::hello::AgentHello;
use crate::{AgentClient, AgentClientError, AgentNotice};

/// An agent of another version.
fn other() -> AgentHello {
    let version = SoftwareVersion { protocol: 999, windtunnel: "9.9.9".to_owned() };
    AgentHello { version, host: "elsewhere".to_owned() }
}

/// Whether a text names both versions and the machine of the other.
#[track_caller]
fn names_both(text: &str) {
    let own = SoftwareVersion::own().to_string();
    let theirs = "elsewhere has windtunnel 9.9.9 (protocol 999)";
    assert!(text.contains(&own) && text.contains(theirs), "{text}");
}

#[test]
fn a_command_reports_that_an_agent_is_of_another_version_and_which() {
    let key = key();
    let agent = FakeAgent::start_as(&key, other(), |_| Vec::new());
    let error = AgentClient::connect(&agent.address().to_string(), &key).unwrap_err();
    assert!(matches!(error, AgentClientError::OtherVersion { .. }), "{error:?}");
    names_both(&error.to_string());
}

#[test]
fn agents_of_different_versions_refuse_each_other_and_each_says_why() {
    let key = key();
    let seed = FakeAgent::start_as(&key, other(), |_| Vec::new());
    // The joiner notifies its own owner.
    let joiner = Live::start("joiner", &key, &[seed.address()]);
    let notice = joiner.until(|notice| matches!(notice, AgentNotice::RefusedBy { .. }));
    let AgentNotice::RefusedBy { by, why } = notice else { panic!("{notice:?}") };
    assert_eq!(by, seed.address());
    names_both(&why);
}

#[test]
fn an_agent_reports_refused_agents_of_another_version() {
    let key = key();
    let agent = Live::start("here", &key, &[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let why = runtime.block_on(async {
        let (_, settings) = crate::tls::settings(&key).unwrap();
        let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        endpoint.set_default_client_config(settings);
        let connection = endpoint.connect(agent.address, crate::key::NAME).unwrap().await.unwrap();
        let why = crate::hello::exchange(&connection, &other()).await.unwrap_err().to_string();
        endpoint.wait_idle().await;
        why
    });
    names_both(&why);
    let notice = agent.until(|notice| matches!(notice, AgentNotice::Refused { .. }));
    let AgentNotice::Refused { why, .. } = notice else { panic!("{notice:?}") };
    names_both(&why);
}

#[test]
fn a_joiner_with_another_key_reports_that_on_its_own_side() {
    let (ours, theirs) = (key(), key());
    let seed = Live::start("seed", &ours, &[]);
    let joiner = Live::start("joiner", &theirs, &[seed.address]);
    let notice = joiner.until(|notice| matches!(notice, AgentNotice::RefusedBy { .. }));
    assert_eq!(
        notice,
        AgentNotice::RefusedBy { by: seed.address, why: "it has another key".to_owned() }
    );
}
