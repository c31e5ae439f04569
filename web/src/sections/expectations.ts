/** Expectations: asked, seen, met. */
import type { Expectation, Run } from '../document/types';
import { h } from '../dom/element';
import { absent, section, type Section } from '../dom/section';
import { table } from '../dom/table';

export function expectations(run: Run): Section | null {
  const rows = run.summary?.expectations;
  if (!rows) return null;
  if (!rows.length) {
    return section(
      'expectations',
      'Expectations',
      absent(
        'The scenario file expects nothing; ',
        h('code', null, 'expect:'),
        ' is where it would say so.',
      ),
    );
  }
  return section(
    'expectations',
    'Expectations',
    table<Expectation>({
      caption: 'Expectations: asked, seen, met',
      filter: true,
      rows,
      rowClass: (row) => (row.met ? '' : 'row-bad'),
      columns: [
        {
          title: 'Met',
          value: (row) => (row.met ? 1 : 0),
          cell: (row) =>
            h('span', { class: row.met ? 'yes' : 'no' }, row.met ? '✓ met' : '✕ not met'),
        },
        { title: 'About', value: (row) => row.about },
        { title: 'Asked', value: (row) => row.asked },
        { title: 'Seen', value: (row) => row.seen },
        { title: 'Line', numeric: true, value: (row) => row.line || undefined },
        { title: 'Where to look', value: (row) => row.look || '' },
      ],
    }),
  );
}
