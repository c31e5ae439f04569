/** The slowest requests and the parts of their time. */
import type { Explained, Loss, Part, Request, Run } from '../document/types';
import { button, fill, h } from '../dom/element';
import { absent, choices, section, type Section } from '../dom/section';
import { table } from '../dom/table';
import { at, grouped, ns, percent, plural } from '../format';
import { bar, partKind, partLegend, partText } from './parts';

type Length = 'time' | 'share';

const lengths: { value: Length; label: string }[] = [
  { value: 'time', label: 'bars by time' },
  { value: 'share', label: 'by share' },
];

export function requests(run: Run): Section | null {
  const all = run.requests;
  if (!all) return null;
  if (!all.requests.length)
    return section('requests', 'Slowest requests', absent('The records have no requests.'));
  const detail = h('div', { class: 'panel request-detail', tabindex: -1 });
  const rows = h('ol', { class: 'requests' });
  const show = (request: Request) => {
    fill(detail, timeline(request));
    detail.focus({ preventScroll: true });
    detail.scrollIntoView({ block: 'nearest' });
  };
  const draw = (length: Length) => {
    const longest = all.requests[0].duration_ns;
    const list = all.requests.map((request) =>
      row(request, length === 'time' ? longest : request.duration_ns, () => {
        show(request);
      }),
    );
    fill(rows, list);
  };
  draw('time');
  fill(detail, timeline(all.requests[0]));
  return section(
    'requests',
    'Slowest requests',
    h(
      'p',
      { class: 'hint' },
      `The ${plural(all.requests.length, 'slowest request')} of ${grouped(all.requests_in_all)}. Each nanosecond has one cause, so the parts add up to the time that the client measures. A press on one shows its timeline.`,
    ),
    h('div', { class: 'toolbar' }, choices('Length of bars', lengths, 'time', draw)),
    partLegend(all.requests.flatMap((request) => request.parts)),
    rows,
    detail,
    together(all),
  );
}

function row(request: Request, longest: number, show: () => void): HTMLElement {
  const largest = request.parts.reduce((a, b) => (b.ns > a.ns ? b : a), request.parts[0]);
  return h(
    'li',
    null,
    button(`${request.client} → ${request.server}`, show, {
      'class': 'plain request-name',
      'aria-label': `Request ${request.request}: show its timeline`,
    }),
    h('div', { class: 'bar-track' }, bar(request.parts, request.duration_ns, longest)),
    h('span', { class: 'request-time' }, ns(request.duration_ns)),
    h(
      'span',
      { class: 'hint request-why' },
      `${request.kind} ${request.request}: ${partText(largest)} ${percent(largest.ns / request.duration_ns)}`,
    ),
  );
}

const partsAtMost = 120;

/** Every part of one request at its time. */
function timeline(request: Request): HTMLElement {
  const from = request.begin_ns;
  const place = (part: Part) => ({
    left: `${(((part.begin_ns || from) - from) / request.duration_ns) * 100}%`,
    width: `${Math.max(0.2, (part.ns / request.duration_ns) * 100)}%`,
    background: `var(--${partKind(part.part).colour})`,
  });
  return h(
    'div',
    null,
    h(
      'div',
      { class: 'panel-head' },
      h('h3', null, `Timeline of request ${request.request}`),
      h(
        'span',
        { class: 'hint' },
        `${request.protocol}, ${request.client} → ${request.server}, began at ${at(from)}, took ${ns(request.duration_ns)}; asked ${grouped(request.asked)} bytes, answered ${grouped(request.answered)}`,
      ),
    ),
    h(
      'ol',
      { class: 'gantt' },
      request.timeline
        .slice(0, partsAtMost)
        .map((part) =>
          h(
            'li',
            null,
            h('span', { class: 'gantt-name' }, partText(part)),
            h('span', { class: 'gantt-track' }, h('i', { style: place(part) })),
            h('span', { class: 'gantt-time' }, ns(part.ns)),
          ),
        ),
    ),
    request.timeline.length > partsAtMost
      ? h(
          'p',
          { class: 'hint' },
          `The first ${partsAtMost} of ${grouped(request.timeline.length)} parts; all of them: `,
          h('code', null, `windtunnel explain --request ${request.request}`),
        )
      : null,
    request.losses.length
      ? h(
          'ul',
          { class: 'losses' },
          request.losses.map((loss) => h('li', null, lossText(loss))),
        )
      : null,
  );
}

/** What was lost, where, and what repaired it. */
function lossText(loss: Loss): string {
  const { dropped } = loss;
  const lane = dropped?.lane;
  const where = lane ? ` on ${lane.link} (${lane.from} → ${lane.to})` : '';
  const why = dropped?.reason ? `: ${dropped.reason.replace('_', ' ')}` : '';
  const when = dropped?.at_ns === undefined ? '' : ` at ${at(dropped.at_ns)}`;
  return (
    `Byte ${grouped(loss.offset)} of the ${loss.sender} was lost${where}${why}${when}; ` +
    `sent again after ${ns(loss.resent_ns - loss.sent_ns)} (${loss.notice})`
  );
}

function together(all: Explained): HTMLElement {
  const rows = [...all.parts].sort((a, b) => b.ns - a.ns);
  return h(
    'details',
    { class: 'more' },
    h(
      'summary',
      null,
      `All ${grouped(all.requests_in_all)} requests together: ${ns(all.duration_ns)}`,
    ),
    h('div', { class: 'bar-track whole' }, bar(all.parts, all.duration_ns, all.duration_ns)),
    table<Part>({
      caption: 'Parts of the time of all requests',
      filter: true,
      limit: 20,
      rows,
      columns: [
        { title: 'Part', value: partText },
        { title: 'Time', numeric: true, value: (part) => part.ns, cell: (part) => ns(part.ns) },
        {
          title: 'Share',
          numeric: true,
          value: (part) => part.ns,
          cell: (part) => percent(part.ns / all.duration_ns),
        },
        { title: 'Requests', numeric: true, value: (part) => part.requests },
      ],
    }),
  );
}
