/** Flows between programs, where the run was recorded. */
import type { Flow, Run } from '../document/types';
import { h } from '../dom/element';
import { absent, section, type Section } from '../dom/section';
import { table, type Column } from '../dom/table';
import { bits, bytes, grouped, ns } from '../format';

export function flows(run: Run): Section {
  const rows = run.flows;
  if (!rows) {
    return section(
      'flows',
      'Flows',
      absent(
        'Goodput, retransmits and round trip times of each flow are there for runs with ',
        h('code', null, 'windtunnel run --record'),
        '.',
      ),
    );
  }
  const all = run.flows_in_all ?? rows.length;
  return section(
    'flows',
    'Flows',
    all > rows.length
      ? h(
          'p',
          { class: 'hint' },
          `The ${grouped(rows.length)} flows with most bytes of ${grouped(all)}.`,
        )
      : null,
    table<Flow>({
      caption: 'Flows: goodput, retransmits, round trip time',
      filter: true,
      limit: 20,
      rows,
      columns: columns(),
    }),
  );
}

function columns(): Column<Flow>[] {
  return [
    { title: 'Flow', numeric: true, value: (row) => row.flow },
    { title: 'Protocol', value: (row) => row.protocol },
    { title: 'From', value: (row) => row.from },
    { title: 'To', value: (row) => row.to },
    {
      title: 'Began',
      numeric: true,
      value: (row) => row.first_ns,
      cell: (row) => ns(row.first_ns),
    },
    {
      title: 'Payload →',
      numeric: true,
      value: (row) => row.forward.payload_bytes,
      cell: (row) => bytes(row.forward.payload_bytes),
    },
    {
      title: '←',
      numeric: true,
      value: (row) => row.reverse.payload_bytes,
      cell: (row) => bytes(row.reverse.payload_bytes),
    },
    {
      title: 'Goodput →',
      numeric: true,
      value: (row) => row.forward.goodput_bit_per_s,
      cell: (row) => bits(row.forward.goodput_bit_per_s),
    },
    {
      title: '←',
      numeric: true,
      value: (row) => row.reverse.goodput_bit_per_s,
      cell: (row) => bits(row.reverse.goodput_bit_per_s),
    },
    {
      title: 'Resent',
      numeric: true,
      hint: 'Bytes sent again, both directions',
      value: (row) => row.forward.resent_bytes + row.reverse.resent_bytes,
      cell: (row) => bytes(row.forward.resent_bytes + row.reverse.resent_bytes),
    },
    {
      title: 'Dropped',
      numeric: true,
      hint: 'Packets, both directions',
      value: (row) => row.forward.dropped_packets + row.reverse.dropped_packets,
    },
    {
      title: 'RTT p50',
      numeric: true,
      value: (row) => row.rtt_ns?.p50,
      cell: (row) => ns(row.rtt_ns?.p50),
    },
    {
      title: 'p99',
      numeric: true,
      value: (row) => row.rtt_ns?.p99,
      cell: (row) => ns(row.rtt_ns?.p99),
    },
    {
      title: 'max',
      numeric: true,
      value: (row) => row.rtt_ns?.max,
      cell: (row) => ns(row.rtt_ns?.max),
    },
  ];
}
