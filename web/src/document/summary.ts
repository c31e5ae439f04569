/** `run.json`, as far as the page shows it: docs/reference/run-folder.md has every field. */
import type { Profile } from './types';

export interface Summary {
  windtunnel: string;
  name: string;
  seed: number;
  plan_hash: string;
  began_unix_s: number;
  kernel: string;
  elapsed_ns: number;
  setup_ns?: number;
  ended: string;
  verdict: Verdict;
  partial?: boolean;
  attempts?: { folder: string; verdict: string }[];
  lost?: { host: string; nodes: number; why: string }[];
  lateness?: LatenessFigures;
  machine?: Record<string, number | boolean>;
  hosts?: { host: string; kernel: string; nodes: number; lateness?: LatenessFigures }[];
  programs?: ProgramResult[];
  limits?: LimitResult[];
  received?: Received[];
  services?: ServiceResult[];
  shares?: Record<string, unknown>[];
  bounds?: Bound[];
  expectations?: Expectation[];
  links?: LinkResult[];
  routers?: { router: string; packets: Record<string, number> }[];
}

export interface Verdict {
  faithful: boolean;
  disturbed?: boolean;
  passed: boolean;
  exit_code?: number;
  text: string;
  unfaithful?: string[];
  failures?: string[];
  incomplete?: string[];
  warnings?: string[];
}

export interface LatenessFigures {
  packets: number;
  p50_ns: number;
  p99_ns: number;
  p999_ns: number;
  max_ns: number;
}

export interface ProgramResult {
  node: string;
  program: number;
  argv: string[];
  daemon?: boolean;
  failed?: boolean;
  starts?: number;
  started_ns?: number;
  ready_ns?: number;
  exited_ns?: number;
  exit?: number;
  ended?: string;
  output_bytes?: number;
  output_discarded_bytes?: number;
}

export interface LimitResult {
  node: string;
  program?: number;
  mechanism?: string;
  asked_cpus: number;
  windows?: number;
  bound_windows?: number;
  delivered_mean_cpus?: number;
  delivered_median_cpus?: number;
  delivered_max_cpus?: number;
  used_ns?: number;
  throttled_ns?: number;
  failure?: string;
}

export interface Received {
  node: string;
  came: number;
  delivered: number;
  dropped_full: number;
  dropped_early: number;
  overflowed?: number;
  computed_ns?: number;
}

export interface Bound {
  node: string;
  program?: number;
  limit: string;
  mechanism?: string;
  asked: number;
  peak?: number;
  met?: number;
  ended?: number;
  failure?: string;
}

export interface ServiceResult {
  service: string;
  addresses?: string[];
  ports?: string[];
  policy?: string;
  fail_over?: string;
  replicas?: ReplicaResult[];
  [counter: string]: unknown;
}

export interface ReplicaResult {
  replica: string;
  state: string;
  connections?: number;
  flows?: number;
  packets?: number;
  bytes?: number;
  registrations?: number;
  withdrawals?: number;
  losses?: number;
}

export interface Expectation {
  line: number;
  about: string;
  asked: string;
  seen: string;
  met: boolean;
  look?: string;
}

export interface LinkResult {
  link: string;
  direction: string;
  asked: Profile;
  queue?: string | null;
  offered_packets: number;
  offered_bytes: number;
  delivered_packets: number;
  delivered_bytes: number;
  dropped_packets: Record<string, number>;
  marked_packets?: number;
  queue_max_packets?: number;
  queue_max_bytes?: number;
  achieved?: Achieved;
  lateness?: LatenessFigures;
  late_packets?: number;
  phases?: { from_ns: number; until_ns: number; asked: Profile; achieved?: Achieved }[];
}

export interface Achieved {
  latency_mean_ns?: number | null;
  rate_busy_bit_per_s?: number | null;
  rate_peak_bit_per_s?: number | null;
  loss_ppb?: number | null;
}
