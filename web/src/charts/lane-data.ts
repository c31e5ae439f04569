/** What the four charts of a link direction, or of the whole network, show. */
import type { LaneSeries } from '../document/types';
import type { RateStep, RunView } from '../document/view';
import { bits, bytes, grouped, ns } from '../format';
import type { Column } from './scales';
import type { TimeData, TimeOptions } from './time-chart';
import type { Line } from './plot';

export type QueueUnit = 'packets' | 'bytes';

/** Reasons in the order in which they are stacked, each with a colour of its own. */
export const reasons = ['queue_full', 'aqm', 'loss', 'down', 'partition', 'mtu', 'memory', 'all'];

export const chartKinds: { kind: ChartKind; options: TimeOptions }[] = [
  { kind: 'throughput', options: { title: 'Throughput', format: bits } },
  { kind: 'queue', options: { title: 'Queue', format: (v) => grouped(v), whole: true } },
  {
    kind: 'drops',
    options: { title: 'Drops by reason', format: (v) => grouped(v), stacked: true, whole: true },
  },
  { kind: 'lateness', options: { title: 'Lateness, largest', format: ns, log: true } },
];

export type ChartKind = 'throughput' | 'queue' | 'drops' | 'lateness';

/** Data of one chart. Without a lane it is that of all lanes together. */
export function chartData(
  kind: ChartKind,
  view: RunView,
  lane: number | undefined,
  unit: QueueUnit,
): TimeData {
  const series = lane === undefined ? view.network() : view.lane(lane);
  const times = view.times();
  const data = {
    throughput: () => throughput(view, series, lane),
    queue: () => queue(view, series, unit),
    drops: () => drops(view, series),
    lateness: () => lateness(view, series),
  }[kind]();
  return { times, ...data };
}

type Content = { lines: Line[]; columns: Column[] };

function throughput(view: RunView, series: LaneSeries, lane: number | undefined): Content {
  const factor = 8 / view.stepS;
  const lines: Line[] = [
    { label: 'offered', colour: 'series-2', width: 1.25 },
    { label: 'delivered', colour: 'series-1', width: 1.75, fill: 0.14 },
  ];
  const columns: Column[] = [
    scaled(view, series.offered_bytes, factor),
    scaled(view, series.delivered_bytes, factor),
  ];
  const rates = lane === undefined ? [] : view.rates(lane);
  if (rates.some((step) => step.bits !== undefined)) {
    lines.push({
      label: 'asked rate',
      colour: 'series-asked',
      width: 1.25,
      dash: [6, 4],
      aside: true,
    });
    columns.push(rateColumn(view, rates));
  }
  return { lines, columns };
}

function queue(view: RunView, series: LaneSeries, unit: QueueUnit): Content {
  const column = unit === 'packets' ? series.queue_max_packets : series.queue_max_bytes;
  const format = unit === 'packets' ? grouped : bytes;
  return {
    lines: [{ label: `most ${unit} that waited`, colour: 'series-3', fill: 0.16, format }],
    columns: [scaled(view, column, 1)],
  };
}

function drops(view: RunView, series: LaneSeries): Content {
  const present = Object.keys(series.dropped || {}).filter((reason) =>
    series.dropped?.[reason].some((n) => n > 0),
  );
  const known = reasons.filter((reason) => present.includes(reason));
  const all = [...known, ...present.filter((reason) => !reasons.includes(reason)).sort()];
  if (!all.length)
    return {
      lines: [{ label: 'nothing was dropped', colour: 'drop-all', width: 1 }],
      columns: [scaled(view, undefined, 1)],
    };
  return {
    lines: all.map((reason) => ({
      label: reasonText(reason),
      colour: reasons.includes(reason) ? `drop-${reason}` : 'drop-all',
      fill: 0.75,
      width: 1,
    })),
    columns: all.map((reason) => scaled(view, series.dropped?.[reason], 1)),
  };
}

function lateness(view: RunView, series: LaneSeries): Content {
  const column = series.lateness_max_ns || [];
  // A logarithmic axis has no zero: what was not late at all is a gap.
  const values = Array.from({ length: view.run.series.bins }, (_, k) =>
    column[k] > 0 ? Math.max(100, column[k]) : null,
  );
  return { lines: [{ label: 'latest packet', colour: 'series-4', fill: 0.14 }], columns: [values] };
}

export function reasonText(reason: string): string {
  return reason === 'all' ? 'any reason' : reason.replace('_', ' ');
}

function scaled(view: RunView, column: number[] | undefined, factor: number): number[] {
  const { bins } = view.run.series;
  if (!column) return new Array<number>(bins).fill(0);
  return factor === 1 ? column : Array.from({ length: bins }, (_, k) => (column[k] || 0) * factor);
}

/** The asked rate in each bin; absent where there is none. */
export function rateColumn(view: RunView, rates: RateStep[]): (number | null)[] {
  let step = 0;
  return Array.from({ length: view.run.series.bins }, (_, k) => {
    const begin = k * view.stepS;
    while (step + 1 < rates.length && rates[step + 1].fromS <= begin + view.stepS / 2) step += 1;
    return rates[step].bits ?? null;
  });
}

/** How exact the series are, in words. */
export function resolution(view: RunView): string {
  const { samples_per_bin: samples, step_ns: step } = view.run.series;
  const each = ns(samples ? step / samples : step);
  if (samples <= 1) return `Each point is one sample of ${each}: nothing was merged.`;
  return `Each point sums ${samples} samples of ${each}; maxima stay maxima. links.csv in the run folder has every sample.`;
}
