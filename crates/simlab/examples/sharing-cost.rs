//! Cost of dividing bandwidth: all shares from nothing, and one change, in networks of 1000
//! lanes and 10 000 flows. `bench/sharing` runs it. Rows of name, asked, ours and shares changed,
//! between tabs: the median of the rounds (least to greatest). With arguments (network, changes) it
//! only makes so many changes in one network: for a profiler, or to count instructions.

use std::hint::black_box;
use std::time::Instant;

use windtunnel_model::flow::FlowTerms;
use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkDirection, Rate, Span};
use windtunnel_sharing::{FlowId, MaxMinShares, SharingModelKind};

const FULL_ASKED: &str = "20 ms; reach for 3";
const CHANGE_ASKED: &str = "1000 µs; reach for 50";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let networks: [(&str, Network); 4] = [
        ("regions", regions(1)),
        ("separate", separate(50)),
        ("tangle", tangle(1000, 10_000)),
        ("regions ×10", regions(10)),
    ];
    if let [name, changes] = arguments.as_slice() {
        let network = networks.iter().find(|(known, _)| known == name);
        let (Some((_, network)), Ok(changes)) = (network, changes.parse()) else {
            eprintln!("usage: sharing-cost [regions|separate|tangle CHANGES]");
            std::process::exit(2);
        };
        let mut bench = Bench::new(network);
        black_box((0..changes).map(|_| bench.restart().1).sum::<usize>());
        return;
    }
    for (name, network) in &networks {
        let (lanes, flows) = (network.capacities.len(), network.flows.len());
        // The target is for 10 000 flows; more are measured to see how the cost grows.
        let (full, change, rounds) = match flows {
            10_000 => (FULL_ASKED, CHANGE_ASKED, 501),
            _ => ("", "", 41),
        };
        let size = format!("{name}, {lanes} lanes, {flows} flows");
        let mut bench = Bench::new(network);
        let seen = (0..41).map(|_| bench.anew()).collect();
        row(&format!("{size}: from nothing, ms"), full, seen, 1e6);
        let seen = (0..rounds).map(|_| bench.restart()).collect();
        row(&format!("{size}: a flow goes and comes, µs for one"), change, seen, 1e3);
        let seen = (0..rounds).map(|_| bench.demand()).collect();
        row(&format!("{size}: a demand changes, µs"), change, seen, 1e3);
        let seen = (0..rounds).map(|_| bench.capacity()).collect();
        row(&format!("{size}: a capacity changes, µs"), change, seen, 1e3);
    }
}

/// Prints the medians of nanoseconds, in `unit`, and of shares changed.
fn row(name: &str, asked: &str, seen: Vec<(u128, usize)>, unit: f64) {
    let (mut times, mut changed): (Vec<u128>, Vec<usize>) = seen.into_iter().unzip();
    times.sort_unstable();
    changed.sort_unstable();
    let shown = |at: usize| times[at] as f64 / unit;
    let (middle, last) = (times.len() / 2, times.len() - 1);
    let (median, least, most) = (shown(middle), shown(0), shown(last));
    let (changed, greatest) = (changed[middle], changed[last]);
    println!("{name}\t{asked}\t{median:.2} ({least:.2} to {most:.2})\t{changed} (to {greatest})");
}

struct Network {
    capacities: Vec<Option<Rate>>,
    flows: Vec<(Vec<u32>, FlowTerms)>,
}

struct Bench<'a> {
    network: &'a Network,
    shares: MaxMinShares<SharingModelKind>,
    draws: Draws,
}

impl<'a> Bench<'a> {
    fn new(network: &'a Network) -> Self {
        let mut shares = MaxMinShares::new(SharingModelKind::RttAware, &network.capacities)
            .expect("capacities below 2^48");
        for (id, (lanes, terms)) in (0..).zip(&network.flows) {
            shares.start(FlowId(id), lanes, *terms).expect("a new flow over known lanes");
        }
        shares.settle();
        Bench { network, shares, draws: Draws::new("changes") }
    }

    fn anew(&mut self) -> (u128, usize) {
        let start = Instant::now();
        black_box(self.shares.settle_from_nothing().len());
        (start.elapsed().as_nanos(), self.network.flows.len())
    }

    fn any_flow(&mut self) -> u64 {
        self.draws.below(self.network.flows.len() as u64)
    }

    /// Half of the time for a flow to stop and start again, each settled; shares changed by the
    /// latter.
    fn restart(&mut self) -> (u128, usize) {
        let id = self.any_flow();
        let (lanes, terms) = &self.network.flows[usize::try_from(id).unwrap_or(0)];
        let terms = self.shares.terms(FlowId(id)).unwrap_or(*terms);
        let start = Instant::now();
        self.shares.stop(FlowId(id)).expect("it runs");
        black_box(self.shares.settle().len());
        self.shares.start(FlowId(id), lanes, terms).expect("it does not run");
        let changed = black_box(self.shares.settle().len());
        (start.elapsed().as_nanos() / 2, changed)
    }

    /// A flow's demand becomes half of its share, or all.
    fn demand(&mut self) -> (u128, usize) {
        let id = FlowId(self.any_flow());
        let terms = self.shares.terms(id).expect("it runs");
        let share = self.shares.share(id).flatten().map_or(2, Rate::bits_per_second);
        let half = Rate::from_bits_per_second(share / 2);
        let demand = if terms.demand.is_some() { None } else { half };
        let start = Instant::now();
        self.shares.change(id, FlowTerms { demand, ..terms }).expect("it runs");
        let changed = black_box(self.shares.settle().len());
        (start.elapsed().as_nanos(), changed)
    }

    /// A lane has a tenth less or more than at first.
    fn capacity(&mut self) -> (u128, usize) {
        let lane = self.draws.below(self.network.capacities.len() as u64);
        let lane = u32::try_from(lane).unwrap_or(0);
        let first = self.network.capacities[lane as usize].map_or(10, Rate::bits_per_second);
        let other = first / 10 * (9 + 2 * self.draws.below(2));
        let start = Instant::now();
        let done = self.shares.set_capacity(lane, Rate::from_bits_per_second(other));
        done.expect("a known lane");
        let changed = black_box(self.shares.settle().len());
        (start.elapsed().as_nanos(), changed)
    }
}

/// Hosts in 20 regions for each unit of scale, every region behind a router, routers in a full mesh
/// by way of 12 more: a path is an access link, a region's, a link between the 12, a region's and
/// an access link.
fn regions(scale: u32) -> Network {
    const CORES: u32 = 12;
    let (regions, hosts) = (20 * scale, 400 * scale);
    let mut draws = Draws::new("regions");
    let mut capacities = Vec::new();
    for _ in 0..2 * hosts {
        capacities.push([10, 20, 50, 100][draws.index(4)]);
    }
    for _ in 0..2 * regions {
        capacities.push([200, 500, 1000][draws.index(3)]);
    }
    for _ in 0..CORES * CORES {
        capacities.push([400, 1000, 2000][draws.index(3)] * u64::from(scale));
    }
    let flow = |_| {
        let (from, to) = (draws.below_u32(hosts), draws.below_u32(hosts));
        let (near, far) = (from % regions, to % regions);
        let core = CORES * (near % CORES) + far % CORES;
        let region = |number: u32| 2 * hosts + number;
        let path = vec![
            2 * from,
            region(2 * near),
            region(2 * regions) + core,
            region(2 * far + 1),
            2 * to + 1,
        ];
        (path, draws.terms())
    };
    Network { flows: (0..10_000 * scale).map(flow).collect(), capacities: rates(&capacities) }
}

/// So many networks of 20 lanes and 200 flows that share nothing, as experiments beside each other.
fn separate(networks: u32) -> Network {
    let mut draws = Draws::new("separate");
    let mut flow = |number: u32| {
        let first = 20 * (number % networks);
        (draws.path(5, 20).iter().map(|lane| first + lane).collect(), draws.terms())
    };
    let flows = (0..200 * networks).map(&mut flow).collect();
    let capacities: Vec<_> = (0..20 * networks).map(|_| [10, 100, 1000][draws.index(3)]).collect();
    Network { capacities: rates(&capacities), flows }
}

/// Paths of 5 lanes anywhere: every flow reaches every other one by a few lanes.
fn tangle(lanes: u32, flows: u32) -> Network {
    let mut draws = Draws::new("tangle");
    let flows = (0..flows).map(|_| (draws.path(5, lanes), draws.terms())).collect();
    let capacities: Vec<_> = (0..lanes).map(|_| [10, 100, 1000][draws.index(3)]).collect();
    Network { capacities: rates(&capacities), flows }
}

fn rates(mbit: &[u64]) -> Vec<Option<Rate>> {
    mbit.iter().map(|mbit| Rate::from_bits_per_second(mbit * 1_000_000)).collect()
}

/// Random numbers, the same in every run.
struct Draws {
    stream: RandomStream,
    drawn: u64,
}

impl Draws {
    fn new(name: &str) -> Self {
        Draws { stream: RandomStream::derive(1, name, LinkDirection::Up, "bench"), drawn: 0 }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.drawn += 1;
        self.stream.at(self.drawn) % end
    }

    fn below_u32(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(u64::from(end))).unwrap_or(0)
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or(0)
    }

    /// Different lanes.
    fn path(&mut self, length: usize, lanes: u32) -> Vec<u32> {
        let mut path = Vec::new();
        while path.len() < length {
            let lane = self.below_u32(lanes);
            if !path.contains(&lane) {
                path.push(lane);
            }
        }
        path
    }

    /// Round trips of 2 to 200 ms; one flow in ten has a window of 64 KiB.
    fn terms(&mut self) -> FlowTerms {
        let rtt = Span::from_micros(2_000 + self.below(198_000));
        let window = (self.below(10) == 0).then_some(windtunnel_model::Bytes(65_536));
        FlowTerms { window, ..FlowTerms::new(rtt) }
    }
}
