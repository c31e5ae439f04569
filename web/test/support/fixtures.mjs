// Documents for tests: what run folders would give, from a small model of TCP over a bottleneck.
// No clock and no entropy: the same arguments give the same document.
import {
  distribution,
  finish,
  modulation,
  network,
  program,
  random,
  requests,
  transfer,
  acknowledgements,
} from './model.mjs';
import { events, flows, outputs, results } from './parts.mjs';

const second = 1e9;

/** Three nodes around one router, with every section. */
export function report({ seed = 1, hostile = '', label = 'five' } = {}) {
  const dice = random(seed);
  const [stepNs, bins] = [100_000_000, 300];
  const web = `web${hostile}`;
  const net = network(
    [web, 'client', 'probe'],
    ['r'],
    [
      [web, 'r', 'ocean'],
      ['client', 'r', 'home'],
      ['probe', 'r', `lab${hostile}`],
    ],
    (k) => ({
      latency: k ? '1ms' : '20ms',
      rate: ['10mbit', '100mbit', null][k],
      loss: k ? 'none' : '0.1%',
      queue: '200p',
      discipline: 'drop-tail',
    }),
  );
  const up = transfer(bins, stepNs, 1e7, dice, {
    from: 4,
    until: 280,
    loss: 0.02,
    cut: [120, 135],
  });
  const down = acknowledgements(up);
  const near = {
    ...up,
    dropped: {},
    queue_max_packets: undefined,
    queue_max_bytes: undefined,
    lateness_max_ns: up.lateness_max_ns.map((n) => n * 2),
  };
  const run = {
    id: 'five-20261124-201811',
    label: label + hostile,
    group: 0,
    folder: 'runs/five-20261124-201811',
    elapsed_ns: bins * stepNs,
    ...net,
    series: {
      step_ns: stepNs,
      bins,
      samples_per_bin: 1,
      lanes: [up, down, down, near, null, null],
    },
    events: events(bins * stepNs, 'ocean', web),
    lateness: [
      distribution('all packets', dice, { scale: 2e4 }),
      distribution('ocean web-r', dice, { scale: 6e4, lane: 0 }),
      distribution('home r-client', dice, { scale: 9e3, lane: 3 }),
    ],
    rtt: [
      distribution('client:40112 → web:80', dice, { scale: 6e7, count: 3000 }),
      distribution('probe → web, echo', dice, { scale: 4.4e7, count: 300 }),
    ],
    outputs: outputs(web, hostile),
    flows: flows(web),
    flows_in_all: 812,
    requests: requests(dice),
    modulation: modulation(),
    notes: ['captures are not part of a report'],
    limits_series: [
      {
        node: web,
        what: 'cpu',
        asked: new Array(30).fill(0.25),
        delivered: Array.from({ length: 30 }, () => 0.2 + dice() * 0.05),
        at_ns: Array.from({ length: 30 }, (_, k) => (k + 1) * second),
      },
    ],
  };
  return document([finish(run, results(web))]);
}

/** A tree of routers with as many links as asked; a run of ten minutes, merged 8 to 1. */
export function large({ links = 100, bins = 750, seed = 2 } = {}) {
  const dice = random(seed);
  const routers = Array.from({ length: Math.max(1, Math.round(links / 12)) }, (_, k) => `r${k}`);
  const nodes = Array.from({ length: links - routers.length + 1 }, (_, k) => `n${k}`);
  const pairs = [
    ...routers.slice(1).map((name, k) => [name, routers[Math.floor(k / 3)]]),
    ...nodes.map((name, k) => [name, routers[k % routers.length]]),
  ];
  const rates = [10, 100, 50];
  const net = network(nodes, routers, pairs, (k) => ({
    latency: '5ms',
    rate: `${rates[k % 3]}mbit`,
    loss: 'none',
  }));
  const lanes = net.lanes.map((_, k) => {
    if (k % 5 === 4) return null;
    const made = transfer(bins, 8e8, rates[Math.floor(k / 2) % 3] * 1e6 * (0.1 + dice()), dice, {
      from: Math.floor(dice() * 80),
    });
    return k % 2 ? acknowledgements(made) : made;
  });
  const run = {
    id: 'tree',
    label: 'tree',
    group: 0,
    folder: 'runs/tree',
    elapsed_ns: bins * 8e8,
    ...net,
    series: { step_ns: 8e8, bins, samples_per_bin: 8, lanes },
    events: events(bins * 8e8, net.map.links[0].name, 'n0'),
    lateness: [distribution('all packets', dice)],
    outputs: [],
    notes: [],
  };
  return document([
    finish(run, {
      programs: nodes.slice(0, 30).map((name) => program(name, ['python3', 'chord.py'])),
    }),
  ]);
}

/** Two groups of five runs: drop-tail and CoDel. */
export function comparison({ seed = 3 } = {}) {
  const names = ['drop-tail', 'codel'];
  const runs = names.flatMap((name, group) =>
    Array.from({ length: 5 }, (_, k) => {
      const [run] = report({ seed: seed + k + group * 10 }).runs;
      for (const lane of run.series.lanes) {
        if (group && lane?.queue_max_packets)
          lane.queue_max_packets = lane.queue_max_packets.map((n) => Math.round(n / 5));
      }
      for (const one of run.rtt)
        one.bins = one.bins.map(([value, n]) => [Math.round(value * (group ? 0.55 : 1)), n]);
      return { ...run, id: `${name}-${k}`, label: `${name} ${k + 1}`, group };
    }),
  );
  const measure = (what, unit, about, a, b, half) => ({
    what,
    unit,
    about,
    link: 'ocean',
    values: [
      [a * 0.98, a, a * 1.02, a, a],
      [b * 0.97, b, b * 1.03, b, b],
    ],
    mean: [a, b],
    difference: [
      {
        group: 1,
        against: 0,
        mean: b - a,
        low: b - a - half,
        high: b - a + half,
        confident: Math.abs(b - a) > half,
      },
    ],
  });
  return document(runs, {
    groups: names.map((name, group) => ({ name, runs: [0, 1, 2, 3, 4].map((k) => k + 5 * group) })),
    measures: [
      measure('goodput', 'bit/s', 'ocean web-r', 9.1e6, 8.8e6, 5e5),
      measure('queue max', 'packets', 'ocean web-r', 52, 11, 6),
      measure('queue delay', 'ns', 'ocean web-r', 6.2e7, 9.1e6, 4e6),
      measure('rtt p50', 'ns', 'client → web', 8.1e7, 4.4e7, 6e6),
      measure('rtt p99', 'ns', 'client → web', 2.1e8, 1.4e8, 8e7),
      measure('dropped', 'packets', 'ocean web-r', 120, 180, 30),
      measure('lateness p99', 'ns', 'all packets', 3.8e5, 3.7e5, 9e4),
      measure('passed', '1', 'share of runs', 0.8, 1, 0.4),
    ],
  });
}

function document(runs, comparison) {
  return {
    format: 'windtunnel-report',
    version: 1,
    generator: 'windtunnel 0.1.0',
    mode: 'report',
    runs,
    ...(comparison ? { comparison } : {}),
  };
}
