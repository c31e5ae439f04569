//! Lists of agents, and agents that come and go.

use super::*;

fn life(agent: u64, epoch: u64) -> Identity {
    let address = SocketAddr::from(([10, 0, 0, 1], 1));
    Identity { agent: AgentId(agent), epoch, renewal: 0, address }
}

fn roster(agents: &[u64]) -> Roster {
    let mut roster = Roster::new(&life(100, 1));
    agents.iter().for_each(|agent| roster.add(life(*agent, 1), Time::ZERO, 0));
    roster
}

fn ids(agents: &[u64]) -> Vec<AgentId> {
    agents.iter().copied().map(AgentId).collect()
}

#[test]
fn the_same_agents_have_the_same_fingerprint_whatever_came_and_went() {
    let mut other = roster(&[3, 1]);
    other.add(life(2, 1), Time::ZERO, 0);
    other.rename(&life(2, 1), life(2, 5));
    assert_ne!(other.fingerprint(), roster(&[1, 2, 3]).fingerprint());
    other.remove(&life(2, 5));
    assert_eq!(other.fingerprint(), roster(&[1, 3]).fingerprint());
}

#[test]
fn pages_name_all_agents_in_order_the_own_one_too() {
    let roster = roster(&[99, 101, 102]);
    let page = |after: Option<u64>| {
        let (lives, more) = roster.page(life(100, 1), after.map(AgentId), 2);
        (lives.iter().map(|life| life.agent.0).collect::<Vec<_>>(), more)
    };
    assert_eq!(page(None), (vec![99, 100], true));
    assert_eq!(page(Some(100)), (vec![101, 102], false));
    assert_eq!(page(Some(102)), (vec![], false));
}

#[test]
fn an_agent_missing_in_a_part_of_a_list_is_found_in_that_part_only() {
    let roster = roster(&[1, 2, 3, 4]);
    let named = [life(2, 1), life(3, 1)];
    assert_eq!(roster.unnamed(None, None, &named), ids(&[1, 4]));
    assert!(roster.unnamed(Some(AgentId(1)), Some(AgentId(3)), &named).is_empty());
    assert!(roster.unnamed(Some(AgentId(3)), Some(AgentId(3)), &named).is_empty());
}

#[test]
fn an_agent_that_is_down_is_informed_once_in_a_time() {
    let mut roster = roster(&[]);
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    assert!(roster.inform(AgentId(1), at(0)));
    assert!(!roster.inform(AgentId(1), at(99)));
    assert!(roster.inform(AgentId(2), at(99)));
    assert!(roster.inform(AgentId(1), at(100)));
}

#[test]
fn former_agents_are_asked_until_they_are_back_and_leavers_never() {
    let mut roster = roster(&[]);
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    let memory = Span::from_secs(1);
    roster.remember(life(1, 1), Some(at(10)), at(0), 9, memory);
    roster.remember(life(2, 1), None, at(0), 9, memory);
    assert_eq!(roster.next_rejoin(), Some(at(10)));
    assert!(roster.rejoins(at(9), |_| Span::ZERO).is_empty());
    assert_eq!(roster.rejoins(at(10), |age| age).len(), 1);
    assert_eq!(roster.next_rejoin(), Some(at(20)));
    roster.add(life(1, 2), at(15), 0);
    assert_eq!((roster.next_rejoin(), roster.latest_epoch(AgentId(1))), (None, Some(2)));
}
