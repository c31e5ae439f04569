/** What the stream of a live run says. */

/** lane, offered, delivered, delivered wire bytes, delivered packets, dropped, queue, queue max packets, queue max bytes, lateness max. */
export type LaneSample = [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

export interface Sample {
  at_ns: number;
  window_ns: number;
  lanes: LaneSample[];
  /** Of drops in `lanes`, where reasons are known: lane, reason, packets. */
  dropped?: [number, string, number][];
}

export interface OutputLine {
  node: string;
  program?: number;
  stream: string;
  text: string;
}

export interface ProgramStatus {
  argv: string[];
  state: string;
  pid?: number;
  exit?: number;
}

export interface NodeStatus {
  node: string;
  addresses: string[];
  init_pid?: number;
  absent?: boolean;
  limits?: Record<string, number>;
  programs: ProgramStatus[];
}

export interface ReplicaStatus {
  replica: string;
  state: string;
  ports?: string[];
  live_connections?: number;
  live_flows?: number;
  connections?: number;
}

export interface ServiceStatus {
  service: string;
  addresses?: string[];
  ports?: string[];
  policy?: string;
  replicas?: ReplicaStatus[];
}

export interface Status {
  elapsed_ns: number;
  nodes: NodeStatus[];
  services?: ServiceStatus[];
}

/** What one link direction is asked to be like at present. */
export interface LaneProperties {
  link: string;
  direction: string;
  state: string;
  properties: Record<string, unknown>;
  changed_from: Record<string, unknown>;
}
