/** Links: what was asked, and what was achieved. */
import type { Context } from '../context';
import type { LinkResult } from '../document/types';
import { button, h, type Child } from '../dom/element';
import { absent, section, type Section } from '../dom/section';
import { table, type Column } from '../dom/table';
import { bits, bytes, grouped, ns, parseRate, parseShare, parseTime, percent } from '../format';
import { reasonText } from '../charts/lane-data';
import { leadToLink } from './topology';

export function links(context: Context): Section {
  const rows = context.view.run.summary?.links;
  if (!rows?.length)
    return section(
      'links',
      'Links',
      absent('Figures of links are there when the run has ended with a summary.'),
    );
  return section(
    'links',
    'Links: asked and achieved',
    table<LinkResult>({
      caption: 'Link directions, asked and achieved',
      filter: true,
      limit: 60,
      rows,
      columns: [...names(context), ...properties, ...traffic],
    }),
    phases(rows),
  );
}

function names(context: Context): Column<LinkResult>[] {
  return [
    { title: 'Link', value: (row) => row.link, cell: (row) => leader(context, row) },
    { title: 'Direction', value: (row) => row.direction },
  ];
}

/** What was asked for, each beside what came of it. */
const properties: Column<LinkResult>[] = [
  {
    title: 'Latency asked',
    numeric: true,
    value: (row) => parseTime(row.asked.latency),
    cell: (row) => plain(row.asked.latency),
  },
  {
    title: 'achieved',
    numeric: true,
    hint: 'Mean time on the link after the end of transmission',
    value: (row) => row.achieved?.latency_mean_ns,
    cell: (row) => ns(row.achieved?.latency_mean_ns),
  },
  {
    title: 'Rate asked',
    numeric: true,
    value: (row) => parseRate(row.asked.rate),
    cell: (row) => plain(row.asked.rate),
  },
  {
    title: 'busy',
    numeric: true,
    hint: 'Wire bits a second while packets followed one another without a gap',
    value: (row) => row.achieved?.rate_busy_bit_per_s,
    cell: (row) => bits(row.achieved?.rate_busy_bit_per_s),
  },
  {
    title: 'best second',
    numeric: true,
    value: (row) => row.achieved?.rate_peak_bit_per_s,
    cell: (row) => bits(row.achieved?.rate_peak_bit_per_s),
  },
  {
    title: 'Loss asked',
    numeric: true,
    value: (row) => parseShare(row.asked.loss),
    cell: (row) => plain(row.asked.loss === 'none' ? '0 %' : row.asked.loss),
  },
  {
    title: 'achieved',
    numeric: true,
    value: (row) => row.achieved?.loss_ppb,
    cell: (row) => percent(share(row.achieved?.loss_ppb)),
  },
];

const traffic: Column<LinkResult>[] = [
  {
    title: 'Delivered',
    numeric: true,
    value: (row) => row.delivered_bytes,
    cell: (row) => bytes(row.delivered_bytes),
  },
  { title: 'Dropped', numeric: true, value: total, cell: dropped },
  {
    title: 'Queue',
    hint: 'The queue that holds, and the most packets that waited',
    numeric: true,
    value: (row) => row.queue_max_packets,
    cell: (row) => `${grouped(row.queue_max_packets)}${row.queue ? ` of ${row.queue}` : ''}`,
  },
  {
    title: 'Late p99',
    numeric: true,
    value: (row) => row.lateness?.p99_ns,
    cell: (row) => (row.lateness?.packets ? ns(row.lateness.p99_ns) : '–'),
  },
  {
    title: 'max',
    numeric: true,
    value: (row) => row.lateness?.max_ns,
    cell: (row) => (row.lateness?.packets ? ns(row.lateness.max_ns) : '–'),
  },
];

function leader(context: Context, row: LinkResult): Child {
  const index = context.view.run.map.links.findIndex((link) => link.name === row.link);
  return index < 0
    ? row.link
    : button(
        row.link,
        () => {
          leadToLink(context, index);
        },
        { class: 'plain' },
      );
}

function plain(text: unknown): string {
  return typeof text === 'string' || typeof text === 'number'
    ? String(text)
    : text
      ? JSON.stringify(text)
      : '–';
}

function share(ppb: number | null | undefined): number | null | undefined {
  return typeof ppb === 'number' ? ppb / 1e9 : ppb;
}

function total(row: LinkResult): number {
  return Object.values(row.dropped_packets).reduce((all, n) => all + n, 0);
}

function dropped(row: LinkResult): Child {
  const parts = Object.entries(row.dropped_packets).filter(([, count]) => count);
  return h(
    'span',
    {
      title: parts.map(([reason, count]) => `${reasonText(reason)}: ${grouped(count)}`).join(', '),
    },
    grouped(total(row)),
  );
}

/** Directions whose properties changed have a row for each time between changes. */
function phases(rows: LinkResult[]): HTMLElement | null {
  const all = rows.flatMap((row) => (row.phases || []).map((phase) => ({ row, phase })));
  if (!all.length) return null;
  return h(
    'details',
    { class: 'more' },
    h('summary', null, `Phases: properties changed during the run (${grouped(all.length)})`),
    table({
      caption: 'Phases of links',
      filter: true,
      rows: all,
      columns: [
        { title: 'Link', value: ({ row }) => row.link },
        { title: 'Direction', value: ({ row }) => row.direction },
        {
          title: 'From',
          numeric: true,
          value: ({ phase }) => phase.from_ns,
          cell: ({ phase }) => ns(phase.from_ns),
        },
        {
          title: 'Until',
          numeric: true,
          value: ({ phase }) => phase.until_ns,
          cell: ({ phase }) => ns(phase.until_ns),
        },
        { title: 'Latency asked', numeric: true, value: ({ phase }) => plain(phase.asked.latency) },
        {
          title: 'achieved',
          numeric: true,
          value: ({ phase }) => phase.achieved?.latency_mean_ns,
          cell: ({ phase }) => ns(phase.achieved?.latency_mean_ns),
        },
        { title: 'Rate asked', numeric: true, value: ({ phase }) => plain(phase.asked.rate) },
        {
          title: 'busy',
          numeric: true,
          value: ({ phase }) => phase.achieved?.rate_busy_bit_per_s,
          cell: ({ phase }) => bits(phase.achieved?.rate_busy_bit_per_s),
        },
        { title: 'Loss asked', numeric: true, value: ({ phase }) => plain(phase.asked.loss) },
        {
          title: 'achieved',
          numeric: true,
          value: ({ phase }) => phase.achieved?.loss_ppb,
          cell: ({ phase }) => percent(share(phase.achieved?.loss_ppb)),
        },
      ],
    }),
  );
}
