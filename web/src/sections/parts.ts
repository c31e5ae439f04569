/** Parts of a request's time: their names, colours and bars. */
import type { Part } from '../document/types';
import { h } from '../dom/element';
import { ns, percent } from '../format';

interface PartKind {
  colour: string;
  text: string;
}

const kinds: Record<string, PartKind> = {
  client_thinking: { colour: 'part-client', text: 'client thinks' },
  server_thinking: { colour: 'part-server', text: 'server thinks' },
  send_buffer: { colour: 'part-buffer', text: 'send buffer' },
  cwnd: { colour: 'part-cwnd', text: 'congestion window' },
  receive_window: { colour: 'part-rwnd', text: 'receive window' },
  acknowledgement: { colour: 'part-ack', text: 'acknowledgement' },
  queue: { colour: 'part-queue', text: 'queue' },
  transmission: { colour: 'part-transmission', text: 'transmission' },
  propagation: { colour: 'part-propagation', text: 'propagation' },
  recovery: { colour: 'part-recovery', text: 'recovery of a loss' },
  unread: { colour: 'part-unread', text: 'arrived, not read yet' },
  kernel: { colour: 'part-kernel', text: 'kernel' },
  not_recorded: { colour: 'part-none', text: 'not recorded' },
  network: { colour: 'part-none', text: 'network, not recorded' },
};

export function partKind(part: string): PartKind {
  if (part in kinds) return kinds[part];
  return { colour: 'part-none', text: part.replace(/_/g, ' ') };
}

/** `queue of line (a → b)`, `client: kernel`. */
export function partText(part: Part): string {
  const { text } = partKind(part.part);
  if (part.lane) return `${text} of ${part.lane.link} (${part.lane.from} → ${part.lane.to})`;
  return part.side && !part.part.startsWith(part.side) ? `${part.side}: ${text}` : text;
}

/** One bar of parts that follow one another, as long as its share of the longest. */
export function bar(parts: Part[], whole: number, longest: number): HTMLElement {
  return h(
    'div',
    { class: 'bar', style: { width: `${Math.max(0.5, (whole / longest) * 100)}%` } },
    merged(parts)
      .filter((part) => part.ns > 0)
      .map((part) =>
        h('i', {
          class: 'bar-part',
          title: `${partText(part)}: ${ns(part.ns)} (${percent(part.ns / whole)})`,
          style: {
            'flex-grow': String(part.ns),
            'background': `var(--${partKind(part.part).colour})`,
          },
        }),
      ),
  );
}

/** Parts of the same kind beside one another, in the order of the legend. */
function merged(parts: Part[]): Part[] {
  const order = Object.keys(kinds);
  return [...parts].sort((a, b) => order.indexOf(a.part) - order.indexOf(b.part) || b.ns - a.ns);
}

/** The kinds that occur, with their colours. */
export function partLegend(parts: Part[]): HTMLElement {
  const present = new Set(parts.filter((part) => part.ns > 0).map((part) => part.part));
  return h(
    'ul',
    { class: 'legend' },
    Object.keys(kinds)
      .filter((kind) => present.has(kind))
      .map((kind) =>
        h(
          'li',
          null,
          h('i', { class: 'swatch', style: { '--c': `var(--${partKind(kind).colour})` } }),
          partKind(kind).text,
        ),
      ),
  );
}
