/** Limits of nodes: what was asked, what was delivered, and how it went over time. */
import type { Context } from '../context';
import type { Bound, LimitResult, LimitSeries, Received } from '../document/types';
import { h, type Child } from '../dom/element';
import { section, type Section } from '../dom/section';
import { table } from '../dom/table';
import { TimeChart } from '../charts/time-chart';
import { bytes, digits, grouped, ns, percent } from '../format';

export function limits(context: Context): Section | null {
  const summary = context.view.run.summary;
  const series = context.view.run.limits_series || [];
  const parts: Child[] = [
    summary?.limits?.length ? ['Processor time', cpu(summary.limits)] : null,
    summary?.bounds?.length
      ? ['Memory, processes, descriptors, disks', bounds(summary.bounds)]
      : null,
    summary?.received?.length ? ['Receiving', received(summary.received)] : null,
    summary?.shares?.length ? ['Shares of links', shares(summary.shares)] : null,
  ].flatMap((one) => (one ? [h('h3', null, one[0]), one[1]] : []));
  if (!parts.length && !series.length) return null;
  const charts = series.map((one) => chart(context, one));
  return section(
    'limits',
    'Limits: asked and delivered',
    charts.length ? h('div', { class: 'charts' }, charts) : null,
    parts,
  );
}

function chart(context: Context, one: LimitSeries): HTMLElement {
  const made = new TimeChart(
    {
      title: `${one.node}: ${one.what === 'cpu' ? 'processors' : one.what}`,
      format: (v) => digits(v),
      heightRem: 8,
    },
    context.timeline,
  );
  // Each value is that of the time before it.
  const times = [0, ...one.at_ns.map((t) => t / 1e9)];
  made.set({
    times,
    lines: [
      { label: 'delivered', colour: 'series-1', fill: 0.16 },
      { label: 'asked', colour: 'series-asked', dash: [6, 4], width: 1.25, aside: true },
    ],
    columns: [one.delivered, one.asked],
  });
  return made.element;
}

function owner(row: { node: string; program?: number }): string {
  return row.program === undefined ? row.node : `${row.node}, program ${row.program}`;
}

function cpu(rows: LimitResult[]): HTMLElement {
  return table<LimitResult>({
    caption: 'Limits of processor time',
    filter: true,
    rows,
    columns: [
      { title: 'Of', value: owner },
      {
        title: 'Held by',
        value: (row) => row.mechanism || '',
        cell: (row) => row.failure || row.mechanism,
      },
      {
        title: 'Asked',
        numeric: true,
        value: (row) => row.asked_cpus,
        cell: (row) => digits(row.asked_cpus),
      },
      {
        title: 'Delivered, mean',
        numeric: true,
        hint: 'In the seconds in which programs wanted more',
        value: (row) => row.delivered_mean_cpus,
        cell: (row) => amount(row.delivered_mean_cpus),
      },
      {
        title: 'median',
        numeric: true,
        value: (row) => row.delivered_median_cpus,
        cell: (row) => amount(row.delivered_median_cpus),
      },
      {
        title: 'most',
        numeric: true,
        value: (row) => row.delivered_max_cpus,
        cell: (row) => amount(row.delivered_max_cpus),
      },
      {
        title: 'Mean of asked',
        numeric: true,
        value: (row) => (row.delivered_mean_cpus || 0) / row.asked_cpus,
        cell: (row) => percent((row.delivered_mean_cpus || 0) / row.asked_cpus),
      },
      {
        title: 'Seconds bound',
        numeric: true,
        value: (row) => row.bound_windows,
        cell: (row) => `${grouped(row.bound_windows)} of ${grouped(row.windows)}`,
      },
      {
        title: 'Throttled',
        numeric: true,
        value: (row) => row.throttled_ns,
        cell: (row) => ns(row.throttled_ns),
      },
    ],
  });
}

function amount(value: number | undefined): string {
  return value === undefined ? '–' : digits(value);
}

function bounds(rows: Bound[]): HTMLElement {
  const size = (row: Bound, value: number | undefined) =>
    row.limit === 'memory'
      ? bytes(value)
      : row.limit === 'disk'
        ? `${bytes(value)}/s`
        : grouped(value);
  return table<Bound>({
    caption: 'Limits of memory, processes, descriptors and disks',
    filter: true,
    rows,
    columns: [
      { title: 'Of', value: owner },
      { title: 'Limit', value: (row) => row.limit },
      {
        title: 'Held by',
        value: (row) => row.mechanism || '',
        cell: (row) => row.failure || row.mechanism,
      },
      {
        title: 'Asked',
        numeric: true,
        value: (row) => row.asked,
        cell: (row) => size(row, row.asked),
      },
      {
        title: 'Most used',
        numeric: true,
        value: (row) => row.peak,
        cell: (row) => size(row, row.peak),
      },
      { title: 'Times met', numeric: true, value: (row) => row.met },
      { title: 'Processes ended', numeric: true, value: (row) => row.ended },
    ],
  });
}

function received(rows: Received[]): HTMLElement {
  return table<Received>({
    caption: 'What came to nodes that pay for receiving',
    filter: true,
    rows,
    columns: [
      { title: 'Node', value: (row) => row.node },
      { title: 'Came', numeric: true, value: (row) => row.came },
      { title: 'Delivered', numeric: true, value: (row) => row.delivered },
      { title: 'Dropped: queue full', numeric: true, value: (row) => row.dropped_full },
      { title: 'Dropped early', numeric: true, value: (row) => row.dropped_early },
      { title: 'No room in sockets', numeric: true, value: (row) => row.overflowed },
      {
        title: 'Processor time',
        numeric: true,
        value: (row) => row.computed_ns,
        cell: (row) => ns(row.computed_ns),
      },
    ],
  });
}

/** Fields of shares differ with what was asked, so their names are the headings. */
function shares(rows: Record<string, unknown>[]): HTMLElement {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return table<Record<string, unknown>>({
    caption: 'What programs had of links that they shared',
    filter: true,
    rows,
    columns: names.map((name) => ({
      title: name.replace(/_/g, ' '),
      numeric: rows.some((row) => typeof row[name] === 'number'),
      value: (row) => plain(row[name]),
    })),
  });
}

function plain(value: unknown): string | number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' || typeof value === 'string') return value;
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
    ? value.join(' ')
    : JSON.stringify(value);
}
