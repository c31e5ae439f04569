/** The document that the page shows: format "windtunnel-report", version 1. Absent fields are unknown. */

export interface Document {
  format: string;
  version: number;
  generator: string;
  mode: 'report' | 'live' | 'edit';
  runs: Run[];
  comparison?: Comparison;
}

export interface Run {
  id: string;
  label: string;
  group: number;
  folder: string;
  summary?: Summary;
  incomplete?: string;
  elapsed_ns: number;
  map: { vertices: Vertex[]; links: MapLink[] };
  lanes: Lane[];
  series: Series;
  events: Mark[];
  lateness?: Distribution[];
  rtt?: Distribution[];
  outputs: Output[];
  flows?: Flow[];
  flows_in_all?: number;
  requests?: Explained;
  modulation?: Modulation[];
  notes: string[];
  limits_series?: LimitSeries[];
}

export interface Vertex {
  name: string;
  kind: 'node' | 'router' | 'lan';
  group?: string;
  addresses: string[];
  programs?: string[];
  absent?: boolean;
}

export interface MapLink {
  name: string;
  ends: [number, number];
  lanes: [number, number];
  lan?: number;
  asked: [Profile, Profile];
}

/** Properties of a link direction as the scenario file writes them. */
export interface Profile {
  latency?: string;
  rate?: string | null;
  loss?: string;
  queue?: string | null;
  discipline?: string;
  mtu?: number;
  [key: string]: unknown;
}

export interface Lane {
  link: string;
  direction: string;
  from: number;
  to: number;
}

export interface Series {
  step_ns: number;
  bins: number;
  samples_per_bin: number;
  lanes: (LaneSeries | null)[];
}

export interface LaneSeries {
  offered_bytes?: number[];
  delivered_bytes?: number[];
  delivered_wire_bytes?: number[];
  delivered_packets?: number[];
  queue_max_packets?: number[];
  queue_max_bytes?: number[];
  lateness_max_ns?: number[];
  marked_packets?: number[];
  dropped?: Record<string, number[]>;
}

export type MarkKind =
  'run' | 'program' | 'fault' | 'change' | 'service' | 'late' | 'limit' | 'other';

export interface Mark {
  at_ns: number;
  intended_ns?: number;
  event: string;
  kind: MarkKind;
  text: string;
  links: string[];
  nodes: string[];
}

export interface Distribution {
  name: string;
  lane?: number;
  flow?: number;
  count: number;
  max_ns: number;
  bins: [number, number][];
}

export interface Output {
  node: string;
  program?: number;
  stream: string;
  bytes: number;
  head: string;
  tail?: string;
}

export interface Flow {
  flow: number;
  protocol: string;
  from: string;
  to: string;
  first_ns: number;
  last_ns: number;
  forward: Way;
  reverse: Way;
  rtt_ns?: { p50: number; p99: number; max: number };
}

export interface Way {
  payload_bytes: number;
  packets: number;
  resent_bytes: number;
  dropped_packets: number;
  marked_packets: number;
  goodput_bit_per_s: number;
}

export interface LimitSeries {
  node: string;
  what: string;
  asked: number[];
  delivered: number[];
  at_ns: number[];
}

export interface Part {
  part: string;
  side?: string;
  lane?: { link: string; from: string; to: string };
  ns: number;
  begin_ns?: number;
  requests?: number;
}

export interface Explained {
  requests_in_all: number;
  duration_ns: number;
  parts: Part[];
  requests: Request[];
  problems: unknown[];
}

export interface Request {
  request: string;
  kind: string;
  protocol: string;
  client: string;
  server: string;
  begin_ns: number;
  duration_ns: number;
  asked: number;
  answered: number;
  parts: Part[];
  timeline: Part[];
  losses: Loss[];
}

export interface Loss {
  sender: string;
  offset: number;
  sent_ns: number;
  resent_ns: number;
  notice: string;
  dropped?: { lane?: { link: string; from: string; to: string }; reason?: string; at_ns?: number };
}

export interface Quantiles {
  min: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
  mean: number;
}

export interface Stage {
  count: number;
  bytes: number;
  size: Quantiles | null;
  spacing_ns: Quantiles | null;
}

export interface Modulation {
  protocol: string;
  from: string;
  to: string;
  flow: number;
  sender: string;
  writes?: Stage | null;
  packets?: Stage | null;
  reads?: Stage | null;
  to_wire_ns?: Quantiles | null;
  to_program_ns?: Quantiles | null;
}

export interface Comparison {
  groups: { name: string; runs: number[] }[];
  measures: Measure[];
}

export interface Measure {
  what: string;
  unit: string;
  about: string;
  link?: string;
  direction?: string;
  values: (number | null)[][];
  mean: (number | null)[];
  /** 95 % confidence intervals of the means. */
  interval?: ([number, number] | null)[];
  difference?: Difference[];
}

export interface Difference {
  group: number;
  against: number;
  mean: number;
  /** Absent where a group has one run only. */
  low?: number;
  high?: number;
  confident: boolean;
}

export * from './summary';
import type { Summary } from './summary';
