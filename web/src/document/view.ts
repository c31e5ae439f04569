/** What sections ask of a run: series of a lane or of the whole network, and figures of a span. */
import { parseRate } from '../format';
import type { LaneSeries, LinkResult, Run } from './types';

/** Figures of one link direction in a span of time. */
export interface Figures {
  seconds: number;
  offeredBits: number;
  deliveredBits: number;
  /** Share of the asked rate that was used; absent without a rate. */
  use?: number;
  dropped: number;
  /** Share of the packets that came to the link. */
  droppedShare: number;
  latenessNs: number;
  queueMax: number;
  active: boolean;
}

/** One rate that held from a time on. */
export interface RateStep {
  fromS: number;
  bits: number | undefined;
}

const sums = [
  'offered_bytes',
  'delivered_bytes',
  'delivered_wire_bytes',
  'delivered_packets',
  'marked_packets',
] as const;
const maxima = ['queue_max_packets', 'queue_max_bytes', 'lateness_max_ns'] as const;

export class RunView {
  readonly results = new Map<string, LinkResult>();
  /** Rates that were asked for since, by lane: what live mode knows. */
  readonly changedRates = new Map<number, RateStep[]>();
  private whole: LaneSeries | undefined;
  private starts: number[] | undefined;
  private readonly links = new Map<number, number>();

  /** `totals`: the network's series where something else keeps them, as in live mode. */
  constructor(
    readonly run: Run,
    totals?: LaneSeries,
  ) {
    this.whole = totals;
    for (const result of run.summary?.links || []) this.results.set(key(result), result);
  }

  get stepS(): number {
    return this.run.series.step_ns / 1e9;
  }

  /** The length of what the series cover, in seconds. */
  get endS(): number {
    return Math.max(this.run.series.bins * this.stepS, this.run.elapsed_ns / 1e9, this.stepS);
  }

  /** The begin of each bin, and the end of the last one, in seconds. */
  times(): number[] {
    const { bins } = this.run.series;
    if (this.starts?.length !== bins + 1 || this.starts[1] !== this.stepS) {
      this.starts = Array.from({ length: bins + 1 }, (_, k) => k * this.stepS);
    }
    return this.starts;
  }

  lane(index: number): LaneSeries {
    return this.run.series.lanes[index] || {};
  }

  result(index: number): LinkResult | undefined {
    const lane = this.run.lanes.at(index);
    return lane && this.results.get(key(lane));
  }

  /** The link that a lane belongs to. */
  linkOf(lane: number): number {
    if (!this.links.size)
      this.run.map.links.forEach(({ lanes }, index) => {
        for (const one of lanes) this.links.set(one, index);
      });
    return this.links.get(lane) ?? -1;
  }

  /** All lanes together: sums of counts, maxima of maxima. */
  network(): LaneSeries {
    this.whole ||= this.together();
    return this.whole;
  }

  /** The asked rate over time: a step for each phase of the run. */
  rates(index: number): RateStep[] {
    const phases = this.result(index)?.phases;
    if (phases?.length)
      return phases.map((p) => ({ fromS: p.from_ns / 1e9, bits: parseRate(p.asked.rate) }));
    return [{ fromS: 0, bits: this.rate(index) }, ...(this.changedRates.get(index) || [])];
  }

  /** The rate that was asked for when the run began. */
  rate(index: number): number | undefined {
    const link = this.run.map.links.at(this.linkOf(index));
    const asked = link?.lanes.includes(index)
      ? link.asked[link.lanes.indexOf(index)]
      : this.result(index)?.asked;
    return parseRate(asked?.rate);
  }

  figures(index: number, fromS: number, untilS: number): Figures {
    const { bins } = this.run.series;
    const from = Math.min(bins, Math.max(0, Math.floor(fromS / this.stepS + 1e-6)));
    const until = Math.min(bins, Math.max(from + 1, Math.ceil(untilS / this.stepS - 1e-6)));
    const lane = this.lane(index);
    const seconds = Math.max(1e-9, (until - from) * this.stepS);
    const delivered = sum(lane.delivered_bytes, from, until);
    const wire = lane.delivered_wire_bytes
      ? sum(lane.delivered_wire_bytes, from, until)
      : delivered;
    const packets = lane.delivered_packets
      ? sum(lane.delivered_packets, from, until)
      : delivered / this.packetBytes(index);
    const dropped = Object.values(lane.dropped || {}).reduce(
      (all, column) => all + sum(column, from, until),
      0,
    );
    const allowed = this.allowed(index, from * this.stepS, until * this.stepS);
    return {
      seconds,
      dropped,
      offeredBits: (sum(lane.offered_bytes, from, until) * 8) / seconds,
      deliveredBits: (delivered * 8) / seconds,
      use: allowed ? (wire * 8) / allowed : undefined,
      droppedShare: dropped / Math.max(1, dropped + packets),
      latenessNs: most(lane.lateness_max_ns, from, until),
      queueMax: most(lane.queue_max_packets, from, until),
      active: packets > 0 || dropped > 0 || delivered > 0,
    };
  }

  /** Bytes of a packet, on average: for series of which packets were left out. */
  private packetBytes(index: number): number {
    const result = this.result(index);
    return result?.delivered_packets ? result.delivered_bytes / result.delivered_packets : 1000;
  }

  /** Bits that the asked rate allowed in a span; absent where a part of it had no rate. */
  private allowed(index: number, fromS: number, untilS: number): number | undefined {
    const steps = this.rates(index);
    let all = 0;
    for (let k = 0; k < steps.length; k += 1) {
      const begin = Math.max(fromS, k ? steps[k].fromS : 0);
      const end = k + 1 < steps.length ? Math.min(untilS, steps[k + 1].fromS) : untilS;
      if (end <= begin) continue;
      const rate = steps[k].bits;
      if (rate === undefined) return undefined;
      all += rate * (end - begin);
    }
    return all;
  }

  private together(): LaneSeries {
    const { bins, lanes } = this.run.series;
    const all: LaneSeries = { dropped: {} };
    for (const name of [...sums, ...maxima]) all[name] = new Array<number>(bins).fill(0);
    for (const lane of lanes) if (lane) addLane(all, lane, bins);
    return all;
  }
}

/** Adds what a lane did to the totals of the network. */
export function addLane(all: LaneSeries, lane: LaneSeries, bins: number): void {
  for (const name of sums) addColumn(all[name] as number[], lane[name]);
  for (const name of maxima) {
    const [into, column] = [all[name] as number[], lane[name]];
    if (column)
      for (let k = 0; k < column.length; k += 1) if (column[k] > into[k]) into[k] = column[k];
  }
  const dropped = (all.dropped ||= {});
  for (const [reason, column] of Object.entries(lane.dropped || {})) {
    if (!(reason in dropped)) dropped[reason] = new Array<number>(bins).fill(0);
    addColumn(dropped[reason], column);
  }
}

function addColumn(into: number[], column?: number[]): void {
  if (column) for (let k = 0; k < column.length; k += 1) into[k] += column[k];
}

function key(lane: { link: string; direction: string }): string {
  return `${lane.link}\0${lane.direction}`;
}

function sum(column: number[] | undefined, from: number, until: number): number {
  let all = 0;
  if (column) for (let k = from; k < until; k += 1) all += column[k] || 0;
  return all;
}

function most(column: number[] | undefined, from: number, until: number): number {
  let all = 0;
  if (column) for (let k = from; k < until; k += 1) if (column[k] > all) all = column[k];
  return all;
}
