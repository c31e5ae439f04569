/** Packets that did not arrive, by where they were dropped. */
import type { Summary } from './summary';

export interface Drops {
  /** After a number of packets. */
  where: string;
  packets: number;
}

export const BY_MACHINE = 'by the machine';

/** What a router counts of packets that it did not send on. What it must not forward is no loss. */
const AT_ROUTERS = [
  'ttl_expired',
  'no_route',
  'malformed',
  'replica_lost',
  'filtered',
  'no_mapping',
  'exhausted',
  'untranslatable',
  'not_reassembled',
];

/** All places where some were dropped. */
export function drops(summary: Summary): Drops[] {
  const { links = [], routers = [], received = [], machine = {} } = summary;
  const places = [
    {
      where: 'on links',
      packets: sum(links, (one) => sum(Object.values(one.dropped_packets), (n) => n)),
    },
    {
      where: 'at routers',
      packets: sum(routers, (one) => sum(AT_ROUTERS, (key) => one.packets[key] || 0)),
    },
    {
      where: 'in receive queues',
      packets: sum(received, (one) => one.dropped_full + one.dropped_early),
    },
    { where: 'at full sockets', packets: sum(received, (one) => one.overflowed || 0) },
    {
      where: BY_MACHINE,
      packets: sum(['kernel_drops', 'kernel_refused'], (key) => Number(machine[key] || 0)),
    },
  ];
  return places.filter((one) => one.packets > 0);
}

function sum<T>(all: T[], of: (one: T) => number): number {
  return all.reduce((before, one) => before + of(one), 0);
}
