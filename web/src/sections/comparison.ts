/** Groups of runs against each other: differences of measures with their intervals. */
import type { Comparison, Difference, Document, Measure } from '../document/types';
import { fill, h, svg, type Child } from '../dom/element';
import { absent, section, type Section } from '../dom/section';
import { table } from '../dom/table';
import { grouped, inUnit, percent, plural } from '../format';
import { badges } from './verdict';

interface Row {
  measure: Measure;
  difference?: Difference;
}

interface Filter {
  what: string;
  confident: boolean;
}

export function comparedRuns(document: Document): Section {
  const groups = document.comparison?.groups || [
    { name: '', runs: document.runs.map((_, k) => k) },
  ];
  const made = section(
    'verdict',
    'Runs compared',
    h(
      'div',
      { class: 'verdict-head' },
      h(
        'h1',
        null,
        groups.map((group) => group.name).join(' against ') || 'Runs laid over each other',
      ),
    ),
    h(
      'div',
      { class: 'groups' },
      groups.map((group, index) =>
        h(
          'div',
          { class: 'panel', style: { '--c': `var(--group-${1 + (index % 6)})` } },
          h(
            'div',
            { class: 'panel-head' },
            h('i', { class: 'swatch' }),
            h('h3', null, group.name || 'runs'),
            h('span', { class: 'hint' }, plural(group.runs.length, 'run')),
          ),
          h(
            'ul',
            { class: 'run-list' },
            group.runs.map((run) =>
              h(
                'li',
                null,
                h('code', null, document.runs[run].label),
                ...badges(document.runs[run]),
              ),
            ),
          ),
        ),
      ),
    ),
    notes(document).map((text) => h('p', { class: 'hint' }, text)),
  );
  return made;
}

/** Notes of runs, each once. */
function notes(document: Document): string[] {
  const about = new Map<string, string[]>();
  for (const run of document.runs)
    for (const note of run.notes) about.set(note, [...(about.get(note) || []), run.label]);
  return [...about].map(
    ([note, runs]) =>
      `${runs.length === document.runs.length ? 'All runs' : runs.join(', ')}: ${note}`,
  );
}

export function comparison(document: Document): Section | null {
  const given = document.comparison;
  if (!given?.measures.length) return null;
  const rows = given.measures.flatMap((measure): Row[] =>
    measure.difference?.length
      ? measure.difference.map((difference) => ({ measure, difference }))
      : [{ measure }],
  );
  // What both have comes first.
  rows.sort((a, b) => Number(Boolean(b.difference)) - Number(Boolean(a.difference)));
  const filter: Filter = { what: '', confident: false };
  const holder = h('div');
  const draw = () => {
    fill(
      holder,
      measures(
        given,
        rows.filter(
          (row) =>
            (!filter.what || row.measure.what === filter.what) &&
            (!filter.confident || row.difference?.confident),
        ),
      ),
    );
  };
  draw();
  return section(
    'comparison',
    'Differences',
    h('p', { class: 'hint' }, introduction(given, rows)),
    controls(given, filter, draw),
    holder,
  );
}

function introduction(given: Comparison, rows: Row[]): string {
  const tested = rows.filter((row) => ends(row));
  const against = `Dots are differences of means against ${given.groups[0].name}, as a share of its mean`;
  if (!tested.length) {
    return `${against}. There are no confidence intervals: they need at least two runs in each group (windtunnel run --repeat 10).`;
  }
  const sure = tested.filter((row) => row.difference?.confident).length;
  return (
    `${against}; lines are 95 % confidence intervals (Welch). ` +
    `${grouped(sure)} of ${grouped(tested.length)} differences are confident: their interval does not contain zero. With many measures, one in twenty may be so without any cause.`
  );
}

function controls(given: Comparison, filter: Filter, draw: () => void): HTMLElement {
  const kinds = [...new Set(given.measures.map((measure) => measure.what))];
  const select = h(
    'select',
    {
      'aria-label': 'Measure',
      'on': {
        change: () => {
          filter.what = select.value;
          draw();
        },
      },
    },
    h('option', { value: '' }, 'All measures'),
    kinds.map((kind) => h('option', { value: kind }, kind)),
  );
  return h(
    'div',
    { class: 'toolbar' },
    select,
    h(
      'label',
      { class: 'kind' },
      h('input', {
        'type': 'checkbox',
        'data-filter': 'confident',
        'on': {
          change: (event) => {
            filter.confident = (event.target as HTMLInputElement).checked;
            draw();
          },
        },
      }),
      'only confident differences',
    ),
  );
}

function measures(given: Comparison, rows: Row[]): HTMLElement {
  if (!rows.length) return absent('No measure matches.');
  const extent = widest(rows);
  const several = given.groups.length > 2;
  return table<Row>({
    caption: 'Measures and their differences',
    filter: true,
    limit: 60,
    rows,
    rowClass: (row) => (row.difference?.confident ? 'confident' : ''),
    columns: [
      { title: 'Measure', value: ({ measure }) => measure.what },
      { title: 'About', value: ({ measure }) => measure.about },
      ...given.groups.map((group, index) => ({
        title: group.name,
        numeric: true,
        value: ({ measure }: Row) => measure.mean[index],
        cell: ({ measure }: Row) => mean(measure, index),
      })),
      ...(several
        ? [
            {
              title: 'Compared',
              value: ({ difference }: Row) =>
                difference ? given.groups[difference.group].name : '',
            },
          ]
        : []),
      { title: 'Difference', numeric: true, value: relative, cell: (row) => signed(row) },
      {
        title: '95 % interval',
        numeric: true,
        value: (row) => ends(row)?.[0],
        cell: interval,
      },
      {
        title: `−${percent(extent)} … 0 … +${percent(extent)}`,
        value: relative,
        cell: (row) => plot(row, extent),
      },
    ],
  });
}

/** A group's mean, with half of its interval. */
function mean(measure: Measure, group: number): Child {
  const interval = measure.interval?.[group];
  const text = inUnit(measure.mean[group], measure.unit);
  return interval
    ? [
        text,
        h(
          'small',
          { class: 'hint' },
          ` ± ${inUnit((interval[1] - interval[0]) / 2, measure.unit)}`,
        ),
      ]
    : text;
}

function base({ measure, difference }: Row): number | undefined {
  const mean = difference && measure.mean[difference.against];
  return mean ? Math.abs(mean) : undefined;
}

function relative(row: Row): number | undefined {
  const of = base(row);
  return row.difference && of ? row.difference.mean / of : undefined;
}

function signed(row: Row): string {
  const { difference, measure } = row;
  if (!difference) return '–';
  const plus = difference.mean > 0 ? '+' : '';
  const share = relative(row);
  return `${plus}${inUnit(difference.mean, measure.unit)}${share === undefined ? '' : ` (${plus}${percent(share)})`}`;
}

/** The ends of the interval of a difference. */
function ends({ difference }: Row): [number, number] | undefined {
  if (difference?.low === undefined || difference.high === undefined) return undefined;
  return [difference.low, difference.high];
}

function interval(row: Row): string {
  const found = ends(row);
  return found ? found.map((end) => inUnit(end, row.measure.unit)).join(' … ') : '–';
}

/** What the axis of all rows reaches to: most intervals fit, the rest has arrows. */
function widest(rows: Row[]): number {
  const reaches = rows
    .flatMap((row) => {
      const of = base(row);
      if (!row.difference || !of) return [];
      const values = ends(row) || [row.difference.mean];
      return [Math.max(...values.map(Math.abs)) / of];
    })
    .sort((a, b) => a - b);
  const end = reaches[Math.floor(reaches.length * 0.9)] || reaches[reaches.length - 1] || 1;
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
  return steps.find((step) => step >= end) ?? 10;
}

const size = { width: 260, height: 18, edge: 8 };

function plot(row: Row, extent: number) {
  const of = base(row);
  const { difference } = row;
  if (!difference || !of) return '';
  const half = size.width / 2 - size.edge;
  const x = (value: number) =>
    size.width / 2 + Math.max(-1, Math.min(1, value / of / extent)) * half;
  const y = size.height / 2;
  return svg(
    'svg',
    {
      'class': difference.confident ? 'difference confident' : 'difference',
      'viewBox': `0 0 ${size.width} ${size.height}`,
      'role': 'img',
      'aria-label': `${signed(row)}, interval ${interval(row)}${difference.confident ? ', confident' : ''}`,
    },
    svg('line', { class: 'zero', x1: size.width / 2, x2: size.width / 2, y1: 0, y2: size.height }),
    whiskers(ends(row), x, y, of * extent),
    svg('circle', { cx: x(difference.mean), cy: y, r: 4 }),
  );
}

/** The line of an interval, with a tip where it reaches beyond the axis. */
function whiskers(
  interval: [number, number] | undefined,
  x: (value: number) => number,
  y: number,
  most: number,
): Child {
  if (!interval) return null;
  const [low, high] = interval.map(x);
  return [
    svg('line', { class: 'interval', x1: low, x2: Math.max(low + 1, high), y1: y, y2: y }),
    interval[0] < -most ? svg('path', { class: 'beyond', d: `M${low - 5},${y}l6,-4v8z` }) : null,
    interval[1] > most ? svg('path', { class: 'beyond', d: `M${high + 5},${y}l-6,-4v8z` }) : null,
  ];
}
