/** Several runs over each other: series of the same link, and distributions, one colour for each group. */
import type { Document, Distribution, LaneSeries } from '../document/types';
import { RunView } from '../document/view';
import { CdfChart, together } from '../charts/cdf';
import { TimeChart, type TimeOptions } from '../charts/time-chart';
import type { Context } from '../context';
import type { Line } from '../charts/plot';
import { fill, h } from '../dom/element';
import { section, type Section } from '../dom/section';
import { bits, digits, grouped, ns } from '../format';
import { rangeText, zoomButtons } from './timelines';

interface Kind {
  options: TimeOptions;
  /** A value of a bin; `step` is its length in seconds. */
  value: (series: LaneSeries, bin: number, step: number) => number | null;
}

const kinds: Kind[] = [
  {
    options: { title: 'Delivered', format: bits },
    value: (s, k, step) => ((s.delivered_bytes?.[k] || 0) * 8) / step,
  },
  {
    options: { title: 'Queue, most packets', format: grouped },
    value: (s, k) => s.queue_max_packets?.[k] || 0,
  },
  {
    options: { title: 'Dropped packets a second', format: digits },
    value: (s, k, step) =>
      Object.values(s.dropped || {}).reduce((all, c) => all + (c[k] || 0), 0) / step,
  },
  {
    options: { title: 'Lateness, largest', format: ns, log: true },
    value: (s, k) => s.lateness_max_ns?.[k] || null,
  },
];

export function overlay(document: Document, views: RunView[], context: Context): Section {
  const { timeline } = context;
  const names = [...new Set(views.flatMap((view) => view.run.lanes.map((lane) => laneName(lane))))];
  const select = h(
    'select',
    { 'id': 'overlay-lane', 'aria-label': 'Link direction' },
    h('option', { value: '' }, 'Whole network'),
    names.map((name) => h('option', { value: name }, name)),
  );
  const charts = kinds.map((kind) => new TimeChart({ ...kind.options, heightRem: 12 }, timeline));
  const distributions = h('div', { class: 'panels' });
  const update = () => {
    kinds.forEach((kind, k) => {
      charts[k].set(laidOver(document, views, kind, select.value));
    });
    fill(
      distributions,
      cdf(
        document,
        'Lateness: share of packets at or below',
        (run) => run.lateness,
        select.value,
        views,
      ),
      cdf(document, 'Round trip time: share of samples at or below', (run) => run.rtt, '', views),
    );
  };
  select.addEventListener('change', update);
  context.onChoose(() => {
    const lane =
      context.chosen === undefined
        ? undefined
        : context.view.run.map.links[context.chosen].lanes[0];
    select.value = lane === undefined ? '' : laneName(context.view.run.lanes[lane]);
    update();
  });
  const made = section(
    'timelines',
    'Runs over each other',
    h(
      'div',
      { class: 'toolbar sticky' },
      h('label', { for: 'overlay-lane' }, 'Show '),
      select,
      zoomButtons(timeline),
      rangeText(timeline),
    ),
    h(
      'div',
      { class: 'charts' },
      h(
        'div',
        { class: 'chart-group whole' },
        charts.map((chart) => chart.element),
      ),
    ),
    distributions,
  );
  update();
  return made;
}

function laneName(lane: { link: string; direction: string }): string {
  return `${lane.link}: ${lane.direction}`;
}

function lines(document: Document, views: RunView[]): Line[] {
  return views.map(({ run }) => ({
    label:
      groupSize(document, run.group) > 1
        ? run.label
        : document.comparison?.groups[run.group]?.name || run.label,
    colour: `group-${1 + (run.group % 6)}`,
    width: 1.1,
    group: document.comparison?.groups[run.group]?.name,
  }));
}

function groupSize(document: Document, group: number): number {
  return document.runs.filter((run) => run.group === group).length;
}

/** Columns of all runs over the bins of the finest one. */
function laidOver(document: Document, views: RunView[], kind: Kind, name: string) {
  const step = Math.min(...views.map((view) => view.stepS));
  const bins = Math.max(
    ...views.map((view) => Math.ceil((view.run.series.bins * view.stepS) / step - 1e-6)),
  );
  const columns = views.map((view) => {
    const lane = view.run.lanes.findIndex((one) => laneName(one) === name);
    const series = name ? view.lane(lane) : view.network();
    return Array.from({ length: bins }, (_, k) => {
      const bin = Math.floor((k * step) / view.stepS + 1e-6);
      return bin < view.run.series.bins ? kind.value(series, bin, view.stepS) : null;
    });
  });
  return {
    times: Array.from({ length: bins + 1 }, (_, k) => k * step),
    lines: lines(document, views),
    columns,
  };
}

function cdf(
  document: Document,
  title: string,
  of: (run: RunView['run']) => Distribution[] | undefined,
  name: string,
  views: RunView[],
): HTMLElement | null {
  const all = lines(document, views).flatMap((line, k) => {
    const { run } = views[k];
    const given = of(run) || [];
    const lane = run.lanes.findIndex((one) => laneName(one) === name);
    const found = name
      ? given.find((one) => one.lane === lane)
      : title.startsWith('Lateness')
        ? given.at(0)
        : together('all', given);
    return found?.count
      ? [{ label: line.label, colour: line.colour, group: line.group, distribution: found }]
      : [];
  });
  if (!all.length) return null;
  const chart = new CdfChart(title);
  chart.set(all, 'tail');
  return h('div', { class: 'panel' }, chart.plot.element);
}
