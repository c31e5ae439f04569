//! Properties of links and of their two directions.

use windtunnel_model::profile::{
    CodelParameters, FairBy, FlowQueues, GilbertElliott, HostFairParameters, JitterDistribution,
    LossModel, Overhead, PieParameters, QueueDiscipline, QueueLimit, RedParameters, Wf2qParameters,
};
use windtunnel_model::{Bytes, LinkProfile, Packets, Probability, Rate, Span};

use super::{link, percent, plan};

#[test]
fn plain_keys_hold_both_ways_and_each_way_wins_over_them() {
    let [up, down] = link("latency: 5ms, rate: 50mbit, up: {rate: 5mbit}");
    assert_eq!((up.latency, down.latency), (Span::from_millis(5), Span::from_millis(5)));
    assert_eq!(up.rate, Rate::from_bits_per_second(5_000_000));
    assert_eq!(down.rate, Rate::from_bits_per_second(50_000_000));
}

#[test]
fn a_links_own_keys_win_over_the_defaults_of_one_direction() {
    let text = "defaults: {link: {latency: 1ms, loss: 1%, up: {latency: 2ms, loss: 2%}}}\n\
                nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], latency: 3ms}]\n";
    let [up, down] = plan(text).links.remove(0).profiles;
    assert_eq!((up.latency, down.latency), (Span::from_millis(3), Span::from_millis(3)));
    assert_eq!(up.loss, LossModel::Independent(percent(2)));
    assert_eq!(down.loss, LossModel::Independent(percent(1)));
}

#[test]
fn none_takes_a_default_away() {
    let text = "defaults: {link: {rate: 1mbit, overhead: none, queue: 5p, loss: 1%}}\n\
                nodes: {a: {}, b: {}}\n\
                links: [{between: [a, b], rate: none, overhead: default, queue: default, loss: none}]\n";
    assert_eq!(plan(text).links[0].profiles[0], LinkProfile::default());
}

#[test]
fn every_form_of_jitter_is_read() {
    let form = |keys| link(keys)[0].jitter.clone();
    assert_eq!(form("jitter: 2ms").spread, Span::from_millis(2));
    assert_eq!(form("jitter: 2ms").distribution, JitterDistribution::Uniform);
    let pareto = form("jitter: {spread: 1ms, distribution: pareto}");
    assert_eq!(
        (pareto.spread, pareto.distribution),
        (Span::from_millis(1), JitterDistribution::Pareto)
    );
    let table = form("jitter: {table: [0ms, 1ms, 5ms]}").distribution;
    let times = [0, 1, 5].map(Span::from_millis).to_vec();
    assert_eq!(table, JitterDistribution::Table(times));
    assert!(form("jitter: none").is_none());
}

#[test]
fn every_form_of_loss_is_read() {
    let form = |keys| link(keys)[0].loss.clone();
    assert_eq!(form("loss: 10%"), LossModel::Independent(percent(10)));
    assert_eq!(form("loss: 0%"), LossModel::None);
    assert_eq!(form("loss: {packets: [7, 3, 3]}"), LossModel::Listed(vec![3, 7]));
    let chain = GilbertElliott {
        good_to_bad: percent(1),
        bad_to_good: percent(30),
        loss_in_good: Probability::NEVER,
        loss_in_bad: Probability::ALWAYS,
    };
    assert_eq!(form("loss: {good-to-bad: 1%, bad-to-good: 30%}"), LossModel::GilbertElliott(chain));
}

#[test]
fn every_form_of_reordering_is_read() {
    let form = |keys| link(keys)[0].reorder;
    assert!(!form("reorder: none").by_jitter);
    assert!(form("reorder: jitter").by_jitter);
    let held = form("reorder: 1%");
    assert_eq!((held.probability, held.extra), (percent(1), Span::from_millis(1)));
    let grouped = form("reorder: {probability: 25%, correlation: 12.5%}");
    assert_eq!(grouped.correlation.to_string(), "12.5%");
    assert!(form("reorder: 1%").correlation.is_never());
    let held = form("reorder: {probability: 2%, extra: 5ms, by-jitter: true}");
    assert_eq!((held.probability, held.extra), (percent(2), Span::from_millis(5)));
    assert!(held.by_jitter);
}

#[test]
fn every_form_of_a_queue_and_its_framing_is_read() {
    let [up, _] = link("rate: 1mbit, queue: 50ms, overhead: 42B, mtu: 1400B, discipline: codel");
    assert_eq!(up.queue, Some(QueueLimit::Time(Span::from_millis(50))));
    assert_eq!((up.overhead, up.mtu), (Some(Overhead(42)), 1400));
    assert_eq!(up.discipline, QueueDiscipline::Codel(CodelParameters::default()));
    let [up, _] = link("rate: 1mbit, queue: 16KiB, overhead: ethernet, mtu: 9000");
    assert_eq!(up.queue, Some(QueueLimit::Bytes(Bytes(16_384))));
    assert_eq!((up.overhead, up.mtu), (Some(Overhead::ETHERNET), 9000));
    let [up, _] = link("rate: 1mbit, discipline: {codel: {target: 10ms, ecn: false}}");
    let codel =
        CodelParameters { target: Span::from_millis(10), ecn: false, ..CodelParameters::default() };
    assert_eq!(up.discipline, QueueDiscipline::Codel(codel));
}

#[test]
fn every_form_of_active_queue_management_is_read() {
    let form = |text: &str| {
        let [up, _] = link(&format!("rate: 1mbit, discipline: {text}"));
        up.discipline
    };
    assert_eq!(form("red"), QueueDiscipline::Red(RedParameters::default()));
    assert_eq!(form("pie"), QueueDiscipline::Pie(PieParameters::default()));
    assert_eq!(form("fq-codel"), QueueDiscipline::FqCodel(FlowQueues::default()));
    assert_eq!(form("fair"), QueueDiscipline::Fair(HostFairParameters::default()));
    assert_eq!(form("wf2q"), QueueDiscipline::Wf2q(Wf2qParameters::default()));
    let wf2q = Wf2qParameters { flows: 8, ..Wf2qParameters::default() };
    assert_eq!(form("{wf2q: {flows: 8}}"), QueueDiscipline::Wf2q(wf2q));
    let red = RedParameters {
        min: Some(QueueLimit::Packets(Packets(5))),
        max: Some(QueueLimit::Time(Span::from_millis(200))),
        probability: percent(10),
        weight: percent(1),
        packet: Bytes(500),
        gentle: true,
        adaptive: true,
        ecn: false,
    };
    let text = "{red: {min: 5p, max: 200ms, probability: 10%, weight: 1%, packet: 500B, gentle: true, \
                adaptive: true, ecn: false}}";
    assert_eq!(form(text), QueueDiscipline::Red(red));
    let pie = PieParameters {
        target: Span::from_millis(20),
        update: Span::from_millis(30),
        burst: Span::from_millis(100),
        derandomise: true,
        ecn: false,
    };
    let text = "{pie: {target: 20ms, update: 30ms, burst: 100ms, derandomise: true, ecn: false}}";
    assert_eq!(form(text), QueueDiscipline::Pie(pie));
    let codel = CodelParameters {
        target: Span::from_millis(1),
        interval: Span::from_millis(20),
        ecn: false,
    };
    let queues = FlowQueues { flows: 16, quantum: 300, codel };
    let keys = "flows: 16, quantum: 300B, target: 1ms, interval: 20ms, ecn: false";
    assert_eq!(form(&format!("{{fq-codel: {{{keys}}}}}")), QueueDiscipline::FqCodel(queues));
    let fair = HostFairParameters { by: FairBy::Source, queues };
    assert_eq!(form(&format!("{{fair: {{by: source, {keys}}}}}")), QueueDiscipline::Fair(fair));
}

#[test]
fn flow_queues_and_pie_have_longer_queues_by_default() {
    let limit = |keys: &str| link(&format!("rate: 1mbit, {keys}"))[0].effective_queue();
    let packets = |count| Some(QueueLimit::Packets(Packets(count)));
    assert_eq!(limit("discipline: fq-codel"), packets(10_240));
    assert_eq!(limit("discipline: fair"), packets(10_240));
    assert_eq!(limit("discipline: pie"), packets(1000));
    assert_eq!(limit("discipline: red"), packets(100));
    assert_eq!(limit("discipline: fq-codel, queue: 50p"), packets(50));
}

#[test]
fn a_device_has_the_larger_mtu_of_the_two_directions() {
    let plan = plan("nodes: {a: {}, b: {}}\nlinks: [{between: [a, b], up: {mtu: 9000}}]\n");
    assert_eq!(plan.nodes[0].interfaces[0].mtu, 9000);
    assert_eq!(plan.links[0].profiles[1].mtu, 1500);
}
