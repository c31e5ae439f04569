/** Services: replicas, counters, and what happened to them. */
import type { Context } from '../context';
import type { Mark, ReplicaResult, ServiceResult } from '../document/types';
import { h } from '../dom/element';
import { facts, section, type Section } from '../dom/section';
import { table } from '../dom/table';
import { at, bytes, grouped } from '../format';

const known = new Set([
  'service',
  'addresses',
  'ports',
  'policy',
  'fail_over',
  'replicas',
  'origin',
  'at',
]);

export function services(context: Context): Section | null {
  const all = context.view.run.summary?.services;
  if (!all?.length) return null;
  const marks = context.view.run.events.filter((mark) => mark.kind === 'service');
  return section('services', 'Services', all.map(service), marks.length ? failOvers(marks) : null);
}

function service(one: ServiceResult): HTMLElement {
  const counters = Object.entries(one)
    .filter(([name, value]) => !known.has(name) && typeof value === 'number' && value > 0)
    .map(([name, value]): [string, string] => [name.replace(/_/g, ' '), grouped(value as number)]);
  return h(
    'div',
    { class: 'panel' },
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, one.service),
      h(
        'span',
        { class: 'hint' },
        [
          one.addresses?.join(', '),
          one.ports?.join(', '),
          one.policy && `policy ${one.policy}`,
          one.fail_over && `fail-over ${one.fail_over}`,
        ]
          .filter(Boolean)
          .join(' · '),
      ),
    ),
    table<ReplicaResult>({
      caption: `Replicas of ${one.service}`,
      filter: true,
      rows: one.replicas || [],
      columns: [
        { title: 'Replica', value: (row) => row.replica },
        {
          title: 'State',
          value: (row) => row.state,
          cell: (row) =>
            h(
              'span',
              { class: `state ${row.state === 'lost' || row.state === 'unhealthy' ? 'no' : ''}` },
              row.state,
            ),
        },
        { title: 'Connections', numeric: true, value: (row) => row.connections },
        { title: 'UDP flows', numeric: true, value: (row) => row.flows },
        { title: 'Packets', numeric: true, value: (row) => row.packets },
        {
          title: 'Bytes',
          numeric: true,
          value: (row) => row.bytes,
          cell: (row) => bytes(row.bytes),
        },
        { title: 'Registered', numeric: true, value: (row) => row.registrations },
        { title: 'Withdrawn', numeric: true, value: (row) => row.withdrawals },
        { title: 'Lost', numeric: true, value: (row) => row.losses },
      ],
    }),
    counters.length ? facts(counters) : null,
  );
}

function failOvers(marks: Mark[]): HTMLElement {
  return h(
    'details',
    { class: 'more', open: marks.length <= 12 },
    h('summary', null, `What happened to services (${grouped(marks.length)})`),
    table<Mark>({
      caption: 'Events of services',
      filter: true,
      limit: 40,
      rows: marks,
      columns: [
        {
          title: 'Time',
          numeric: true,
          value: (mark) => mark.at_ns,
          cell: (mark) => at(mark.at_ns),
        },
        { title: 'Event', value: (mark) => mark.text },
      ],
    }),
  );
}
