// What happened, was written and came out in the report of three nodes.
import { program } from './model.mjs';

const second = 1e9;

export function events(end, link, web) {
  const s = second;
  return [
    { at_ns: 4_492_699, event: 'run-began', kind: 'run', text: 'run began', links: [], nodes: [] },
    {
      at_ns: 11_057_367,
      event: 'program-started',
      kind: 'program',
      text: `${web}: program 0 started: python3 app.py serve 80`,
      links: [],
      nodes: [web],
    },
    {
      at_ns: 6 * s,
      intended_ns: 6 * s - 26_000,
      event: 'link-set',
      kind: 'change',
      text: `link ${link}: latency 40ms (due at 6.000s, 26us late)`,
      links: [link],
      nodes: [],
    },
    {
      at_ns: 12 * s,
      intended_ns: 12 * s - 31_000,
      event: 'link-state',
      kind: 'fault',
      text: `link ${link}: down`,
      links: [link],
      nodes: [],
    },
    {
      at_ns: 13.5 * s,
      intended_ns: 13.5 * s,
      event: 'link-state',
      kind: 'fault',
      text: `link ${link}: up`,
      links: [link],
      nodes: [],
    },
    {
      at_ns: 18.2 * s,
      event: 'late',
      kind: 'late',
      text: `link ${link}: packets left up to 6.66ms late`,
      links: [link],
      nodes: [],
    },
    {
      at_ns: 20 * s,
      event: 'service-lost',
      kind: 'service',
      text: `service kv: replica ${web} is lost`,
      links: [],
      nodes: [web],
    },
    {
      at_ns: end,
      event: 'run-ended',
      kind: 'run',
      text: 'run ended: every program has exited',
      links: [],
      nodes: [],
    },
  ];
}

export function outputs(web, hostile) {
  const line = (k) => `GET / 200 48213 bytes in 0.${200 + k * 7} s\n`;
  return [
    {
      node: web,
      program: 0,
      stream: 'stdout',
      bytes: 61,
      head: `serving on 0.0.0.0:80${hostile}\nlistening\n`,
    },
    {
      node: 'client',
      program: 0,
      stream: 'stdout',
      bytes: 90_000,
      head: Array.from({ length: 12 }, (_, k) => line(k)).join(''),
      tail: Array.from({ length: 6 }, (_, k) => line(30 + k)).join(''),
    },
    {
      node: 'probe',
      program: 0,
      stream: 'stderr',
      bytes: 44,
      head: 'warning: no answer for 1.4 s after 12.0 s\n',
    },
  ];
}

export function flows(web) {
  return Array.from({ length: 30 }, (_, k) => ({
    flow: k,
    protocol: 'tcp',
    from: `client:${40112 + k}`,
    to: `${web}:80`,
    first_ns: second + k * 8e8,
    last_ns: 2 * second + k * 8.5e8,
    forward: {
      payload_bytes: 120 * (k + 1),
      packets: 90,
      resent_bytes: 0,
      dropped_packets: 0,
      marked_packets: 0,
      goodput_bit_per_s: 4200 + k,
    },
    reverse: {
      payload_bytes: 48213 * (30 - k),
      packets: 910,
      resent_bytes: 1448 * (k % 7),
      dropped_packets: k % 7,
      marked_packets: 0,
      goodput_bit_per_s: 2.1e6 + k * 1e5,
    },
    rtt_ns: { p50: 4.1e7 + k * 1e6, p99: 1.9e8, max: 2.4e8 },
  }));
}

export function results(web) {
  return {
    programs: [
      program(web, ['python3', 'app.py', 'serve', '80'], {
        daemon: true,
        ended: 'ran until the end',
        exit: undefined,
        exited_ns: undefined,
      }),
      program('client', ['python3', 'app.py', 'ask', 'web', '80', '20 times']),
      program('probe', ['ping', '-c', '200', 'web'], {
        failed: true,
        exit: 1,
        ended: 'exited with 1',
      }),
    ],
    expectations: [
      {
        line: 32,
        about: 'node client exit',
        asked: '0',
        seen: 'exited with 0',
        met: true,
        look: 'nodes/client/stderr',
      },
      {
        line: 33,
        about: 'link ocean web-r rate',
        asked: 'min 4.5mbit',
        seen: '8.21mbit',
        met: true,
      },
      {
        line: 34,
        about: `path client to ${web} rtt p99, 10s to 20s`,
        asked: 'max 120ms',
        seen: '212ms',
        met: false,
        look: 'echoes.csv lines 100 to 200',
      },
    ],
    limits: [
      {
        node: web,
        mechanism: 'cgroup v1',
        asked_cpus: 0.25,
        windows: 30,
        bound_windows: 26,
        delivered_mean_cpus: 0.231,
        delivered_median_cpus: 0.232,
        delivered_max_cpus: 0.251,
        used_ns: 3.9e9,
        throttled_ns: 3.8e9,
      },
    ],
    received: [
      {
        node: web,
        came: 324168,
        delivered: 321900,
        dropped_full: 1314,
        dropped_early: 954,
        overflowed: 416,
        computed_ns: 2.2e9,
      },
    ],
    bounds: [
      {
        node: web,
        limit: 'memory',
        mechanism: 'cgroup v1',
        asked: 64e6,
        peak: 32.1e6,
        met: 0,
        ended: 0,
      },
    ],
    services: [
      {
        service: 'kv',
        addresses: ['10.0.0.17'],
        ports: ['6379/tcp'],
        policy: 'nearest',
        fail_over: 'new',
        unserved_packets: 0,
        lost_packets: 14,
        clamped: 514,
        replicas: [
          {
            replica: web,
            state: 'lost',
            connections: 406,
            flows: 0,
            packets: 2063,
            bytes: 111742,
            registrations: 1,
            withdrawals: 0,
            losses: 1,
          },
          {
            replica: 'probe',
            state: 'registered',
            connections: 80,
            flows: 0,
            packets: 512,
            bytes: 31742,
            registrations: 1,
            withdrawals: 0,
            losses: 0,
          },
        ],
      },
    ],
  };
}
