/** The slowest requests and the parts of their time. */
import type { Explained, Part, Request, Run } from '../document/types';
import { button, fill, h } from '../dom/element';
import { absent, section, type Section } from '../dom/section';
import { table } from '../dom/table';
import { at, grouped, ns, percent, plural } from '../format';
import { bar, partKind, partLegend, partText } from './parts';

export function requests(run: Run): Section | null {
  const all = run.requests;
  if (!all) return null;
  if (!all.requests.length) return section('requests', 'Slowest requests', absent('The records have no requests.'));
  const detail = h('div', { class: 'panel request-detail', tabindex: -1 });
  const longest = all.requests[0].duration_ns;
  const rows = all.requests.map((request) => row(request, longest, () => {
    fill(detail, timeline(request));
    detail.focus({ preventScroll: true });
    detail.scrollIntoView({ block: 'nearest' });
  }));
  fill(detail, timeline(all.requests[0]));
  return section(
    'requests', 'Slowest requests',
    h('p', { class: 'hint' }, `The ${plural(all.requests.length, 'slowest request')} of ${grouped(all.requests_in_all)}. Each nanosecond has one cause, so the parts add up to the time that the client measures. A press on one shows its timeline.`),
    partLegend(all.requests.flatMap((request) => request.parts)),
    h('ol', { class: 'requests' }, rows),
    detail,
    together(all),
  );
}

function row(request: Request, longest: number, show: () => void): HTMLElement {
  const largest = request.parts.reduce((a, b) => (b.ns > a.ns ? b : a), request.parts[0]);
  return h(
    'li', null,
    button(`${request.client} → ${request.server}`, show, { class: 'plain request-name', 'aria-label': `Request ${request.request}: show its timeline` }),
    h('div', { class: 'bar-track' }, bar(request.parts, request.duration_ns, longest)),
    h('span', { class: 'request-time' }, ns(request.duration_ns)),
    h('span', { class: 'hint request-why' }, `${request.kind} ${request.request}: ${partText(largest)} ${percent(largest.ns / request.duration_ns)}`),
  );
}

/** Every part of one request at its time. */
function timeline(request: Request): HTMLElement {
  const from = request.begin_ns;
  const place = (part: Part) => ({
    left: `${((part.begin_ns || from) - from) / request.duration_ns * 100}%`,
    width: `${Math.max(0.2, part.ns / request.duration_ns * 100)}%`,
    background: `var(--${partKind(part.part).colour})`,
  });
  return h(
    'div', null,
    h('div', { class: 'panel-head' }, h('h3', null, `Timeline of request ${request.request}`), h('span', { class: 'hint' },
      `${request.protocol}, ${request.client} → ${request.server}, began at ${at(from)}, took ${ns(request.duration_ns)}; asked ${grouped(request.asked)} bytes, answered ${grouped(request.answered)}`)),
    h('ol', { class: 'gantt' }, request.timeline.map((part) => h(
      'li', null,
      h('span', { class: 'gantt-name' }, partText(part)),
      h('span', { class: 'gantt-track' }, h('i', { style: place(part) })),
      h('span', { class: 'gantt-time' }, ns(part.ns)),
    ))),
    request.losses.length ? h('ul', { class: 'losses' }, request.losses.map((loss) => h('li', null, lossText(loss)))) : null,
  );
}

/** Fields of a loss as `explain --json` has them. */
function lossText(loss: unknown): string {
  if (typeof loss !== 'object' || loss === null) return String(loss);
  return `Loss: ${Object.entries(loss).map(([name, value]) => {
    const shown = name.endsWith('_ns') && typeof value === 'number' ? ns(value) : typeof value === 'object' ? JSON.stringify(value) : String(value);
    return `${name.replace(/_ns$/, '').replace(/_/g, ' ')} ${shown}`;
  }).join(', ')}`;
}

function together(all: Explained): HTMLElement {
  const rows = [...all.parts].sort((a, b) => b.ns - a.ns);
  return h(
    'details', { class: 'more' },
    h('summary', null, `All ${grouped(all.requests_in_all)} requests together: ${ns(all.duration_ns)}`),
    h('div', { class: 'bar-track whole' }, bar(all.parts, all.duration_ns, all.duration_ns)),
    table<Part>({
      caption: 'Parts of the time of all requests', filter: true, limit: 20, rows,
      columns: [
        { title: 'Part', value: partText },
        { title: 'Time', numeric: true, value: (part) => part.ns, cell: (part) => ns(part.ns) },
        { title: 'Share', numeric: true, value: (part) => part.ns, cell: (part) => percent(part.ns / all.duration_ns) },
        { title: 'Requests', numeric: true, value: (part) => part.requests },
      ],
    }),
  );
}
