/** A run that goes on: its document, to which samples are added as they come. */
import type { LaneSeries, Mark, Run } from '../document/types';
import { addLane, RunView } from '../document/view';
import { parseRate } from '../format';
import type { LaneProperties, LaneSample, Sample, Status } from './messages';

const sums = [
  'offered_bytes',
  'delivered_bytes',
  'delivered_wire_bytes',
  'delivered_packets',
] as const;
const maxima = ['queue_max_packets', 'queue_max_bytes', 'lateness_max_ns'] as const;
const columns = [...sums, ...maxima];

/** Beyond so many bins two become one, so that a run of days does not fill memory. */
const binsAtMost = 6000;
const recentEvents = 200;

export class LiveStore {
  readonly view: RunView;
  status: Status | undefined;
  links: LaneProperties[] = [];
  elapsedNs: number;
  /** What is known without a gap: what comes after it is asked for again. */
  sampledNs: number;
  private readonly totals: LaneSeries = emptyLane();
  /** Bins that have been begun; the last one may not be complete yet. */
  private begun: number;

  constructor(readonly run: Run) {
    const { series } = run;
    this.begun = series.bins;
    this.elapsedNs = run.elapsed_ns;
    this.sampledNs = run.elapsed_ns;
    extend(this.totals, this.begun);
    series.lanes = run.lanes.map((_, index) =>
      complete(series.lanes.at(index) ?? undefined, this.begun),
    );
    for (const lane of series.lanes) if (lane) addLane(this.totals, lane, this.begun);
    this.view = new RunView(run, this.totals);
  }

  /** Adds a sample; one that is known already is left out. */
  sample(sample: Sample): void {
    const { series } = this.run;
    if (sample.at_ns <= this.sampledNs) return;
    this.sampledNs = sample.at_ns;
    const bin = Math.max(0, Math.floor((sample.at_ns - sample.window_ns / 2) / series.step_ns));
    this.grow(bin + 1);
    for (const values of sample.lanes) this.lane(values, bin);
    this.drops(sample, bin);
    this.elapsedNs = Math.max(this.elapsedNs, sample.at_ns);
    this.run.elapsed_ns = this.elapsedNs;
    // A bin is shown when it is over: half of one would look like a dip.
    series.bins = Math.max(
      series.bins,
      Math.min(this.begun, Math.floor((sample.at_ns + sample.window_ns / 2) / series.step_ns)),
    );
    if (this.begun > binsAtMost) this.halve();
  }

  /** Adds an event; a stream that begins anew may send one twice. */
  mark(mark: Mark): void {
    const newest = this.run.events.slice(-recentEvents);
    if (newest.some((one) => one.at_ns === mark.at_ns && one.text === mark.text)) return;
    this.run.events.push(mark);
    this.elapsedNs = Math.max(this.elapsedNs, mark.at_ns);
  }

  /** New properties of links; changes of rates are kept with their times. */
  setLinks(links: LaneProperties[]): void {
    this.links = links;
    const bits = new Map(
      links.map((lane) => [`${lane.link}\0${lane.direction}`, parseRate(lane.properties.rate)]),
    );
    this.run.lanes.forEach((lane, index) => {
      const name = `${lane.link}\0${lane.direction}`;
      if (!bits.has(name) || this.view.rates(index).at(-1)?.bits === bits.get(name)) return;
      const steps = this.view.changedRates.get(index) || [];
      this.view.changedRates.set(index, [
        ...steps,
        { fromS: this.elapsedNs / 1e9, bits: bits.get(name) },
      ]);
    });
  }

  /** Whether any direction of a link is cut. */
  isDown(link: string): boolean {
    return this.links.some((lane) => lane.link === link && lane.state !== 'up');
  }

  directions(link: string): LaneProperties[] {
    return this.links.filter((lane) => lane.link === link);
  }

  private lane(values: LaneSample, bin: number): void {
    const [index, offered, delivered, wire, packets, , , queuePackets, queueBytes, late] = values;
    const lane = this.run.series.lanes.at(index);
    if (!lane) return;
    for (const series of [lane, this.totals]) {
      const add = [offered, delivered, wire, packets];
      sums.forEach((name, k) => {
        (series[name] as number[])[bin] += add[k];
      });
      const most = [queuePackets, queueBytes, late];
      maxima.forEach((name, k) => {
        const column = series[name] as number[];
        column[bin] = Math.max(column[bin], most[k]);
      });
    }
  }

  /** Drops by reason; a run over a cluster says only how many until it has ended. */
  private drops(sample: Sample, bin: number): void {
    const all = sample.lanes.map((lane): [number, string, number] => [lane[0], 'all', lane[5]]);
    for (const [index, reason, packets] of sample.dropped || all) {
      const lane = this.run.series.lanes.at(index);
      if (!lane || !packets) continue;
      for (const series of [lane, this.totals])
        dropColumn(series, reason, this.begun)[bin] += packets;
    }
  }

  private grow(bins: number): void {
    if (bins <= this.begun) return;
    this.begun = bins;
    for (const lane of this.run.series.lanes) if (lane) extend(lane, bins);
    extend(this.totals, bins);
  }

  private halve(): void {
    const { series } = this.run;
    for (const lane of [...series.lanes, this.totals]) if (lane) halveLane(lane);
    series.step_ns *= 2;
    series.samples_per_bin *= 2;
    this.begun = Math.ceil(this.begun / 2);
    series.bins = Math.floor(series.bins / 2);
  }
}

function emptyLane(): LaneSeries {
  const lane: LaneSeries = { dropped: {} };
  for (const name of columns) lane[name] = [];
  return lane;
}

/** All columns, as long as asked: what was absent was zero. */
function complete(lane: LaneSeries | undefined, bins: number): LaneSeries {
  const made: LaneSeries = { ...lane, dropped: { ...lane?.dropped } };
  for (const name of columns) made[name] = [...(made[name] || [])];
  extend(made, bins);
  return made;
}

function extend(lane: LaneSeries, bins: number): void {
  for (const column of every(lane)) while (column.length < bins) column.push(0);
}

function every(lane: LaneSeries): number[][] {
  return [...columns.map((name) => lane[name] as number[]), ...Object.values(lane.dropped || {})];
}

function dropColumn(lane: LaneSeries, reason: string, bins: number): number[] {
  const dropped = (lane.dropped ||= {});
  if (!(reason in dropped)) dropped[reason] = new Array<number>(bins).fill(0);
  return dropped[reason];
}

function halveLane(lane: LaneSeries): void {
  for (const name of sums) lane[name] = pairs(lane[name] as number[], (a, b) => a + b);
  for (const name of maxima) lane[name] = pairs(lane[name] as number[], Math.max);
  for (const [reason, column] of Object.entries(lane.dropped || {}))
    (lane.dropped as Record<string, number[]>)[reason] = pairs(column, (a, b) => a + b);
}

function pairs(column: number[], join: (a: number, b: number) => number): number[] {
  return Array.from({ length: Math.ceil(column.length / 2) }, (_, k) =>
    join(column[2 * k], 2 * k + 1 < column.length ? column[2 * k + 1] : 0),
  );
}
