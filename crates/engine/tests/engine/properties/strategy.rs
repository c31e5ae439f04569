//! Networks, changes and packets at random.

use proptest::prelude::*;
use windtunnel_model::profile::{
    CodelParameters, FairBy, FlowQueues, GilbertElliott, HostFairParameters, Jitter,
    JitterDistribution, LossModel, PacketReordering, PieParameters, PropertySetting,
    QueueDiscipline, QueueLimit, RedParameters, SendShare, Wf2qParameters,
};
use windtunnel_model::{Bytes, LinkPatch, LinkProfile, Packets, Probability, Rate, Span};

use crate::support::US;

fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![
        3 => Just(Probability::NEVER),
        1 => (0u32..300_000_000)
            .prop_map(|parts| Probability::from_parts_per_billion(parts).unwrap()),
    ]
}

fn loss() -> impl Strategy<Value = LossModel> {
    let chain = |[good_to_bad, bad_to_good, loss_in_good, loss_in_bad]: [Probability; 4]| {
        LossModel::GilbertElliott(GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_in_good,
            loss_in_bad,
        })
    };
    prop_oneof![
        Just(LossModel::None),
        probability().prop_map(LossModel::Independent),
        prop::array::uniform4(probability()).prop_map(chain),
        Just(LossModel::Listed(vec![1, 5, 6, 44])),
    ]
}

fn jitter() -> impl Strategy<Value = Jitter> {
    let distribution = prop_oneof![
        Just(JitterDistribution::Uniform),
        Just(JitterDistribution::Normal),
        Just(JitterDistribution::Pareto),
        Just(JitterDistribution::Table(vec![Span::ZERO, Span::from_micros(300)])),
    ];
    (prop_oneof![Just(0), 0..800 * US], distribution).prop_map(|(spread, distribution)| {
        if spread == 0 {
            return Jitter::default();
        }
        Jitter { spread: Span::from_nanos(spread), distribution }
    })
}

fn queue() -> impl Strategy<Value = Option<QueueLimit>> {
    prop_oneof![
        Just(None),
        (0u64..60).prop_map(|count| Some(QueueLimit::Packets(Packets(count)))),
        (0u64..90_000).prop_map(|bytes| Some(QueueLimit::Bytes(Bytes(bytes)))),
        (0u64..3000).prop_map(|micros| Some(QueueLimit::Time(Span::from_micros(micros)))),
    ]
}

fn discipline() -> impl Strategy<Value = QueueDiscipline> {
    let (target, interval) = (Span::from_micros(100), Span::from_micros(900));
    let codel = move |ecn| QueueDiscipline::Codel(CodelParameters { target, interval, ecn });
    let queues = move |(flows, quantum)| FlowQueues {
        flows,
        quantum,
        codel: CodelParameters { target, interval, ecn: true },
    };
    let red = |(gentle, adaptive)| {
        let weight: Probability = "20%".parse().unwrap();
        QueueDiscipline::Red(RedParameters {
            gentle,
            adaptive,
            weight,
            probability: weight,
            ..RedParameters::default()
        })
    };
    let pie = move |(derandomise, ecn)| {
        QueueDiscipline::Pie(PieParameters {
            target,
            update: target,
            burst: interval,
            derandomise,
            ecn,
        })
    };
    prop_oneof![
        Just(QueueDiscipline::DropTail),
        Just(QueueDiscipline::DropHead),
        any::<bool>().prop_map(codel),
        (any::<bool>(), any::<bool>()).prop_map(red),
        (any::<bool>(), any::<bool>()).prop_map(pie),
        (1u32..9, 1u32..4000).prop_map(queues).prop_map(QueueDiscipline::FqCodel),
        (1u32..9, 1u32..4000).prop_map(queues).prop_map(|queues| QueueDiscipline::Fair(
            HostFairParameters { by: FairBy::Source, queues }
        )),
        (1u32..9, 0usize..3).prop_map(|(flows, count)| {
            let min = Rate::from_bits_per_second(300_000);
            let class = SendShare { name: "class".to_owned(), min, weight: 2 };
            QueueDiscipline::Wf2q(Wf2qParameters { flows, classes: vec![class; count] })
        }),
    ]
}

fn rate() -> impl Strategy<Value = Option<Rate>> {
    prop_oneof![
        1 => Just(None),
        2 => (500_000u64..10_000_000_000).prop_map(Rate::from_bits_per_second),
    ]
}

prop_compose! {
    pub(crate) fn profile()(
        latency in prop_oneof![Just(0), 0..2000 * US],
        jitter in jitter(),
        loss in loss(),
        [duplicate, corrupt, probability] in prop::array::uniform3(probability()),
        by_jitter: bool,
        rate in rate(),
        mtu in prop_oneof![3 => Just(1500u32), 1 => 576u32..1500],
        queue in queue(),
        discipline in discipline(),
    ) -> LinkProfile {
        let extra = Span::from_micros(200);
        LinkProfile {
            traces: windtunnel_model::Traces::default(),
            latency: Span::from_nanos(latency),
            jitter,
            loss,
            duplicate,
            corrupt,
            reorder: PacketReordering { by_jitter, probability, extra, ..PacketReordering::default() },
            rate,
            overhead: None,
            mtu,
            queue,
            discipline,
            rate_limit: None,
        }
    }
}

/// Something to do after a pause in ns.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Packet { port: u32, ip_len: usize },
    Train { port: u32, payload: usize, gso_size: u16 },
    Patch { link: u32, patch: Box<LinkPatch> },
    State { link: u32, up: bool },
    Part,
    Heal,
}

fn step() -> impl Strategy<Value = Step> {
    let patch = |(link, profile): (u32, LinkProfile)| {
        let set = |rate: Option<Rate>| rate.map_or(PropertySetting::Default, PropertySetting::To);
        let patch = LinkPatch {
            latency: Some(profile.latency),
            jitter: Some(profile.jitter),
            loss: Some(profile.loss),
            rate: Some(set(profile.rate)),
            queue: profile.queue.map(PropertySetting::To),
            discipline: Some(profile.discipline),
            ..LinkPatch::default()
        };
        Step::Patch { link, patch: Box::new(patch) }
    };
    prop_oneof![
        6 => (0u32..2, 60usize..1500).prop_map(|(port, ip_len)| Step::Packet { port, ip_len }),
        6 => (0u32..2, 1usize..60_000, 100u16..1460)
            .prop_map(|(port, payload, gso_size)| Step::Train { port, payload, gso_size }),
        1 => (0u32..3, profile()).prop_map(patch),
        1 => (0u32..3, any::<bool>()).prop_map(|(link, up)| Step::State { link, up }),
        1 => Just(Step::Part),
        1 => Just(Step::Heal),
    ]
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    prop::collection::vec((prop_oneof![Just(0), 0..400 * US], step()), 1..60)
}
