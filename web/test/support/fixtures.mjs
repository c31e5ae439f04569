// Documents for tests: what run folders would give, from a small model of TCP over a bottleneck.
// No clock and no entropy: the same arguments give the same document.
import { distribution, finish, modulation, network, program, random, requests, transfer, acknowledgements } from './model.mjs';

const second = 1e9;

/** Three nodes around one router, with every section. */
export function report({ seed = 1, hostile = '', label = 'five' } = {}) {
  const dice = random(seed);
  const [stepNs, bins] = [100_000_000, 300];
  const web = `web${hostile}`;
  const net = network([web, 'client', 'probe'], ['r'], [[web, 'r', 'ocean'], ['client', 'r', 'home'], ['probe', 'r', `lab${hostile}`]], (k) => ({
    latency: k ? '1ms' : '20ms', rate: ['10mbit', '100mbit', null][k], loss: k ? 'none' : '0.1%', queue: '200p', discipline: 'drop-tail',
  }));
  const up = transfer(bins, stepNs, 1e7, dice, { from: 4, until: 280, loss: 0.02, cut: [120, 135] });
  const down = acknowledgements(up);
  const near = { ...up, dropped: {}, queue_max_packets: undefined, queue_max_bytes: undefined, lateness_max_ns: up.lateness_max_ns.map((n) => n * 2) };
  const run = {
    id: 'five-20261124-201811', label: label + hostile, group: 0, folder: 'runs/five-20261124-201811', elapsed_ns: bins * stepNs, ...net,
    series: { step_ns: stepNs, bins, samples_per_bin: 1, lanes: [up, down, down, near, null, null] },
    events: events(bins * stepNs, 'ocean', web),
    lateness: [distribution('all packets', dice, { scale: 2e4 }), distribution('ocean web-r', dice, { scale: 6e4, lane: 0 }), distribution('home r-client', dice, { scale: 9e3, lane: 3 })],
    rtt: [distribution('client:40112 → web:80', dice, { scale: 6e7, count: 3000 }), distribution('probe → web, echo', dice, { scale: 4.4e7, count: 300 })],
    outputs: outputs(web, hostile), flows: flows(web), flows_in_all: 812, requests: requests(dice), modulation: modulation(),
    notes: ['captures are not part of a report'],
    limits_series: [{
      node: web, what: 'cpu', asked: new Array(30).fill(0.25), delivered: Array.from({ length: 30 }, () => 0.2 + dice() * 0.05),
      at_ns: Array.from({ length: 30 }, (_, k) => (k + 1) * second),
    }],
  };
  return document([finish(run, results(web))]);
}

function events(end, link, web) {
  const s = second;
  return [
    { at_ns: 4_492_699, event: 'run-began', kind: 'run', text: 'run began', links: [], nodes: [] },
    { at_ns: 11_057_367, event: 'program-started', kind: 'program', text: `${web}: program 0 started: python3 app.py serve 80`, links: [], nodes: [web] },
    { at_ns: 6 * s, intended_ns: 6 * s - 26_000, event: 'link-set', kind: 'change', text: `link ${link}: latency 40ms (due at 6.000s, 26us late)`, links: [link], nodes: [] },
    { at_ns: 12 * s, intended_ns: 12 * s - 31_000, event: 'link-state', kind: 'fault', text: `link ${link}: down`, links: [link], nodes: [] },
    { at_ns: 13.5 * s, intended_ns: 13.5 * s, event: 'link-state', kind: 'fault', text: `link ${link}: up`, links: [link], nodes: [] },
    { at_ns: 18.2 * s, event: 'late', kind: 'late', text: `link ${link}: packets left up to 6.66ms late`, links: [link], nodes: [] },
    { at_ns: 20 * s, event: 'service-lost', kind: 'service', text: `service kv: replica ${web} is lost`, links: [], nodes: [web] },
    { at_ns: end, event: 'run-ended', kind: 'run', text: 'run ended: every program has exited', links: [], nodes: [] },
  ];
}

function outputs(web, hostile) {
  const line = (k) => `GET / 200 48213 bytes in 0.${200 + k * 7} s\n`;
  return [
    { node: web, program: 0, stream: 'stdout', bytes: 61, head: `serving on 0.0.0.0:80${hostile}\nlistening\n` },
    { node: 'client', program: 0, stream: 'stdout', bytes: 90_000, head: Array.from({ length: 12 }, (_, k) => line(k)).join(''), tail: Array.from({ length: 6 }, (_, k) => line(30 + k)).join('') },
    { node: 'probe', program: 0, stream: 'stderr', bytes: 44, head: 'warning: no answer for 1.4 s after 12.0 s\n' },
  ];
}

function flows(web) {
  return Array.from({ length: 30 }, (_, k) => ({
    flow: k, protocol: 'tcp', from: `client:${40112 + k}`, to: `${web}:80`, first_ns: second + k * 8e8, last_ns: 2 * second + k * 8.5e8,
    forward: { payload_bytes: 120 * (k + 1), packets: 90, resent_bytes: 0, dropped_packets: 0, marked_packets: 0, goodput_bit_per_s: 4200 + k },
    reverse: { payload_bytes: 48213 * (30 - k), packets: 910, resent_bytes: 1448 * (k % 7), dropped_packets: k % 7, marked_packets: 0, goodput_bit_per_s: 2.1e6 + k * 1e5 },
    rtt_ns: { p50: 4.1e7 + k * 1e6, p99: 1.9e8, max: 2.4e8 },
  }));
}

function results(web) {
  return {
    programs: [
      program(web, ['python3', 'app.py', 'serve', '80'], { daemon: true, ended: 'ran until the end', exit: undefined, exited_ns: undefined }),
      program('client', ['python3', 'app.py', 'ask', 'web', '80', '20 times']),
      program('probe', ['ping', '-c', '200', 'web'], { failed: true, exit: 1, ended: 'exited with 1' }),
    ],
    expectations: [
      { line: 32, about: 'node client exit', asked: '0', seen: 'exited with 0', met: true, look: 'nodes/client/stderr' },
      { line: 33, about: 'link ocean web-r rate', asked: 'min 4.5mbit', seen: '8.21mbit', met: true },
      { line: 34, about: `path client to ${web} rtt p99, 10s to 20s`, asked: 'max 120ms', seen: '212ms', met: false, look: 'echoes.csv lines 100 to 200' },
    ],
    limits: [{ node: web, mechanism: 'cgroup v1', asked_cpus: 0.25, windows: 30, bound_windows: 26, delivered_mean_cpus: 0.231, delivered_median_cpus: 0.232, delivered_max_cpus: 0.251, used_ns: 3.9e9, throttled_ns: 3.8e9 }],
    received: [{ node: web, came: 324168, delivered: 321900, dropped_full: 1314, dropped_early: 954, overflowed: 416, computed_ns: 2.2e9 }],
    bounds: [{ node: web, limit: 'memory', mechanism: 'cgroup v1', asked: 64e6, peak: 32.1e6, met: 0, ended: 0 }],
    services: [{
      service: 'kv', addresses: ['10.0.0.17'], ports: ['6379/tcp'], policy: 'nearest', fail_over: 'new', unserved_packets: 0, lost_packets: 14, clamped: 514,
      replicas: [
        { replica: web, state: 'lost', connections: 406, flows: 0, packets: 2063, bytes: 111742, registrations: 1, withdrawals: 0, losses: 1 },
        { replica: 'probe', state: 'registered', connections: 80, flows: 0, packets: 512, bytes: 31742, registrations: 1, withdrawals: 0, losses: 0 },
      ],
    }],
  };
}

/** A tree of routers with as many links as asked; a run of ten minutes, merged 8 to 1. */
export function large({ links = 100, bins = 750, seed = 2 } = {}) {
  const dice = random(seed);
  const routers = Array.from({ length: Math.max(1, Math.round(links / 12)) }, (_, k) => `r${k}`);
  const nodes = Array.from({ length: links - routers.length + 1 }, (_, k) => `n${k}`);
  const pairs = [...routers.slice(1).map((name, k) => [name, routers[Math.floor(k / 3)]]), ...nodes.map((name, k) => [name, routers[k % routers.length]])];
  const rates = [10, 100, 50];
  const net = network(nodes, routers, pairs, (k) => ({ latency: '5ms', rate: `${rates[k % 3]}mbit`, loss: 'none' }));
  const lanes = net.lanes.map((_, k) => {
    if (k % 5 === 4) return null;
    const made = transfer(bins, 8e8, rates[Math.floor(k / 2) % 3] * 1e6 * (0.1 + dice()), dice, { from: Math.floor(dice() * 80) });
    return k % 2 ? acknowledgements(made) : made;
  });
  const run = {
    id: 'tree', label: 'tree', group: 0, folder: 'runs/tree', elapsed_ns: bins * 8e8, ...net,
    series: { step_ns: 8e8, bins, samples_per_bin: 8, lanes }, events: events(bins * 8e8, net.map.links[0].name, 'n0'),
    lateness: [distribution('all packets', dice)], outputs: [], notes: [],
  };
  return document([finish(run, { programs: nodes.slice(0, 30).map((name) => program(name, ['python3', 'chord.py'])) })]);
}

/** Two groups of five runs: drop-tail and CoDel. */
export function comparison({ seed = 3 } = {}) {
  const names = ['drop-tail', 'codel'];
  const runs = names.flatMap((name, group) => Array.from({ length: 5 }, (_, k) => {
    const [run] = report({ seed: seed + k + group * 10 }).runs;
    for (const lane of run.series.lanes) {
      if (group && lane?.queue_max_packets) lane.queue_max_packets = lane.queue_max_packets.map((n) => Math.round(n / 5));
    }
    for (const one of run.rtt) one.bins = one.bins.map(([value, n]) => [Math.round(value * (group ? 0.55 : 1)), n]);
    return { ...run, id: `${name}-${k}`, label: `${name} ${k + 1}`, group };
  }));
  const measure = (what, unit, about, a, b, half) => ({
    what, unit, about, link: 'ocean', values: [[a * 0.98, a, a * 1.02, a, a], [b * 0.97, b, b * 1.03, b, b]], mean: [a, b],
    difference: [{ group: 1, against: 0, mean: b - a, low: b - a - half, high: b - a + half, confident: Math.abs(b - a) > half }],
  });
  return document(runs, {
    groups: names.map((name, group) => ({ name, runs: [0, 1, 2, 3, 4].map((k) => k + 5 * group) })),
    measures: [
      measure('goodput', 'bit/s', 'ocean web-r', 9.1e6, 8.8e6, 5e5), measure('queue max', 'packets', 'ocean web-r', 52, 11, 6),
      measure('queue delay', 'ns', 'ocean web-r', 6.2e7, 9.1e6, 4e6), measure('rtt p50', 'ns', 'client → web', 8.1e7, 4.4e7, 6e6),
      measure('rtt p99', 'ns', 'client → web', 2.1e8, 1.4e8, 8e7), measure('dropped', 'packets', 'ocean web-r', 120, 180, 30),
      measure('lateness p99', 'ns', 'all packets', 3.8e5, 3.7e5, 9e4), measure('passed', '1', 'share of runs', 0.8, 1, 0.4),
    ],
  });
}

function document(runs, comparison) {
  return { format: 'windtunnel-report', version: 1, generator: 'windtunnel 0.1.0', mode: 'report', runs, ...(comparison ? { comparison } : {}) };
}
