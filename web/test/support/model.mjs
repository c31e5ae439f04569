// The pieces of which fixtures are made.

/** Numbers from 0 to 1 by a linear congruential generator. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A TCP transfer: a window that grows until the queue is full, then halves. */
export function transfer(
  bins,
  stepNs,
  rate,
  dice,
  { from = 0, until = bins, loss = 0, cut = [0, 0] } = {},
) {
  const lane = {
    offered_bytes: [],
    delivered_bytes: [],
    delivered_wire_bytes: [],
    delivered_packets: [],
    queue_max_packets: [],
    queue_max_bytes: [],
    lateness_max_ns: [],
    dropped: { queue_full: [], loss: [], down: [] },
  };
  const capacity = ((rate / 8) * stepNs) / 1e9;
  let window = 0.2;
  for (let k = 0; k < bins; k += 1) {
    const active = k >= from && k < until;
    const dark = k >= cut[0] && k < cut[1];
    window = active ? (dark ? 0.1 : window + 0.012 + dice() * 0.006) : 0;
    const full = window > 1.25 ? 2 + Math.floor(dice() * 14) : 0;
    if (full) window = 0.62;
    const offered = active
      ? Math.round(capacity * Math.min(1.12, window) * (0.97 + dice() * 0.06))
      : 0;
    const delivered = dark ? 0 : Math.min(offered, Math.round(capacity));
    const queue = active && !dark ? Math.max(0, Math.round((window - 0.85) * 130)) : 0;
    push(lane, {
      offered_bytes: offered,
      delivered_bytes: delivered,
      delivered_wire_bytes: delivered,
      delivered_packets: Math.round(delivered / 1500),
      queue_max_packets: queue,
      queue_max_bytes: queue * 1500,
      lateness_max_ns:
        active && !dark ? Math.round(8e4 * (0.4 + dice()) * (dice() < 0.02 ? 12 : 1)) : 0,
    });
    push(lane.dropped, {
      queue_full: full,
      loss: active && !dark && dice() < loss ? 1 : 0,
      down: dark ? 18 - (k - cut[0]) : 0,
    });
  }
  return lane;
}

function push(columns, values) {
  for (const [name, value] of Object.entries(values)) columns[name].push(value);
}

/** What goes back for a transfer. */
export function acknowledgements(lane) {
  const bytes = lane.delivered_packets.map((n) => Math.round(n / 2) * 52);
  return {
    offered_bytes: bytes,
    delivered_bytes: bytes,
    delivered_wire_bytes: bytes,
    delivered_packets: lane.delivered_packets.map((n) => Math.round(n / 2)),
    lateness_max_ns: lane.lateness_max_ns.map((n) => Math.round(n * 0.7)),
  };
}

/** Values around a scale, with a long tail, in bins of two digits. */
export function distribution(name, dice, { scale = 2e4, count = 20000, ...more } = {}) {
  const counts = new Map();
  const draws = Math.min(count, 3000);
  for (let k = 0; k < draws; k += 1) {
    const value =
      scale * Math.exp((dice() + dice() + dice() + dice() - 2) * 1.4 + (dice() < 0.02 ? 1.5 : 0));
    const digit = 10 ** Math.floor(Math.log10(value) - 1);
    const bin = Math.round(value / digit) * digit;
    counts.set(bin, (counts.get(bin) || 0) + Math.ceil(count / draws));
  }
  const bins = [...counts].map(([value, n]) => [Math.round(value), n]).sort((a, b) => a[0] - b[0]);
  return {
    name,
    count: bins.reduce((all, [, n]) => all + n, 0),
    max_ns: bins.at(-1)[0],
    bins,
    ...more,
  };
}

/** Vertices, links and lanes of named pairs. */
export function network(nodes, routers, pairs, asked) {
  const vertices = [
    ...nodes.map((name, k) => ({
      name,
      kind: 'node',
      addresses: [`10.0.${k >> 8}.${(k & 255) + 1}`],
      programs: ['python3 app.py'],
    })),
    ...routers.map((name) => ({ name, kind: 'router', addresses: [] })),
  ];
  const index = new Map(vertices.map((vertex, k) => [vertex.name, k]));
  const links = pairs.map(([a, b, name], k) => ({
    name: name || `${a}--${b}`,
    ends: [index.get(a), index.get(b)],
    lanes: [2 * k, 2 * k + 1],
    asked: [asked(k, 0), asked(k, 1)],
  }));
  const lanes = links.flatMap(({ name, ends: [a, b] }) => [
    { link: name, direction: `${vertices[a].name}-${vertices[b].name}`, from: a, to: b },
    { link: name, direction: `${vertices[b].name}-${vertices[a].name}`, from: b, to: a },
  ]);
  return { map: { vertices, links }, lanes };
}

export function program(node, argv, more = {}) {
  return {
    node,
    program: 0,
    argv,
    daemon: false,
    failed: false,
    starts: 1,
    started_ns: 11_000_000,
    ready_ns: 30_000_000,
    exited_ns: 28_000_000_000,
    exit: 0,
    ended: 'exited with 0',
    output_bytes: 120,
    output_discarded_bytes: 0,
    ...more,
  };
}

const total = (column = []) => column.reduce((all, n) => all + n, 0);

function linkResult(lane, series, asked) {
  const dropped = Object.fromEntries(
    Object.entries(series?.dropped || {}).map(([reason, column]) => [reason, total(column)]),
  );
  const offered =
    total(series?.delivered_packets) + Object.values(dropped).reduce((a, b) => a + b, 0);
  return {
    link: lane.link,
    direction: lane.direction,
    asked,
    queue: '200p',
    offered_packets: offered,
    offered_bytes: total(series?.offered_bytes),
    delivered_packets: total(series?.delivered_packets),
    delivered_bytes: total(series?.delivered_bytes),
    dropped_packets: dropped,
    marked_packets: 0,
    queue_max_packets: Math.max(0, ...(series?.queue_max_packets || [0])),
    queue_max_bytes: 0,
    achieved: {
      latency_mean_ns: 20_004_100,
      rate_busy_bit_per_s: series ? 9_998_000 : null,
      rate_peak_bit_per_s: 9_990_000,
      loss_ppb: 0,
    },
    lateness: { packets: offered, p50_ns: 1200, p99_ns: 98_000, p999_ns: 410_000, max_ns: 960_000 },
    late_packets: 0,
  };
}

const verdict = {
  faithful: false,
  disturbed: true,
  passed: true,
  exit_code: 1,
  text: 'NOT FAITHFUL, PASSED',
  unfaithful: [
    '1528 of 328799 packets (0.46%) left more than 1ms late, at the worst 6.66ms, between 4.2s and 5.1s on ocean; the machine was busy to 99%',
  ],
  failures: [],
  warnings: ['the emulation fell behind once, for 308us together and by up to 2.18ms'],
  incomplete: ['41 events of the kernel layer were lost between 4.20s and 4.25s'],
};

/** Adds the summary, as far as it follows from map and series. */
export function finish(run, more = {}) {
  const asked = run.map.links.flatMap((link) => link.asked);
  run.summary = {
    windtunnel: '0.1.0',
    name: run.label,
    seed: 7,
    plan_hash: 'b34cc9e7d6a35b066cfa0b91371384e829f865c3adbb14a7b3f5153196087f9a',
    began_unix_s: 1795551512,
    kernel: '6.18.44',
    elapsed_ns: run.elapsed_ns,
    setup_ns: 412_000_000,
    ended: 'every program has exited',
    verdict,
    lateness: { packets: 328799, p50_ns: 1279, p99_ns: 385023, p999_ns: 3489791, max_ns: 6665947 },
    machine: {
      cpus: 2,
      kernel_drops: 0,
      overloads: 1,
      overloaded_ns: 308989,
      busy_percent: 99,
      real_time: true,
    },
    programs: [],
    expectations: [],
    links: run.lanes.map((lane, k) => linkResult(lane, run.series.lanes[k], asked[k])),
    ...more,
  };
  return run;
}

const ocean = { link: 'ocean', from: 'web', to: 'r' };

function loss(begin) {
  return {
    sender: 'server',
    offset: 1448,
    sent_ns: begin + 3e7,
    resent_ns: begin + 2.4e8,
    notice: 'retransmission timeout',
    dropped: { lane: ocean, reason: 'queue_full', at_ns: begin + 4e7 },
  };
}

function request(k, dice) {
  const begin = 2e9 + k * 1.1e9;
  const parts = [
    ['client_thinking', 2e5],
    ['kernel', 4e5 + dice() * 1e5],
    ['propagation', 2e7, ocean],
    ['queue', 1.4e8 * (1 - k / 24) * (0.8 + dice() * 0.4), ocean],
    ['transmission', 1.2e6, ocean],
    ['recovery', k < 3 ? 2.1e8 : 0, ocean],
    ['cwnd', 2e7 * dice()],
    ['server_thinking', 3e6 + dice() * 4e6],
    ['unread', 2e5],
  ]
    .filter(([, ns]) => ns)
    .map(([part, ns, lane]) => ({
      part,
      ns: Math.round(ns),
      ...(lane ? { lane } : { side: 'client' }),
    }));
  let at = begin;
  const timeline = parts.map((part) => {
    const placed = { ...part, begin_ns: at };
    at += part.ns;
    return placed;
  });
  return {
    request: `${k % 4}:${k}`,
    kind: 'request',
    protocol: 'tcp',
    client: 'client:40112',
    server: 'web:80',
    from: 'client',
    begin_ns: begin,
    duration_ns: at - begin,
    asked: 120,
    answered: 48213,
    parts,
    timeline,
    losses: k < 3 ? [loss(begin)] : [],
  };
}

export function requests(dice) {
  const list = Array.from({ length: 20 }, (_, k) => request(k, dice)).sort(
    (a, b) => b.duration_ns - a.duration_ns,
  );
  const sums = new Map();
  for (const { parts } of list)
    for (const part of parts)
      sums.set(part.part, {
        ...part,
        ns: (sums.get(part.part)?.ns || 0) + part.ns * 40,
        requests: 800,
      });
  return {
    requests_in_all: 1486,
    duration_ns: [...sums.values()].reduce((all, part) => all + part.ns, 0),
    parts: [...sums.values()],
    requests: list,
    problems: [],
  };
}

const quantiles = (min, p50, p90, p99, max) => ({ min, p50, p90, p99, max, mean: p50 });

export function modulation() {
  return Array.from({ length: 4 }, (_, k) => ({
    protocol: 'tcp',
    from: `client:${40112 + k}`,
    to: 'web:80',
    flow: k,
    sender: k % 2 ? 'client' : 'server',
    writes: {
      count: 400 + k,
      bytes: 4_000_000,
      size: quantiles(80, 8192, 65536, 65536, 131072),
      spacing_ns: quantiles(9e3, 2e6, 3e7, 2e8, 9e8),
    },
    packets: {
      count: 2900,
      bytes: 4_000_000,
      size: quantiles(52, 1448, 1448, 1448, 1448),
      spacing_ns: quantiles(1.2e6, 1.2e6, 1.3e6, 2e7, 8e8),
    },
    to_wire_ns: quantiles(2e4, 4e4, 1e7, 9e7, 2e8),
    to_program_ns: null,
    reads: null,
  }));
}
