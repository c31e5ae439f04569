/** The time lines: four charts of the whole network, or four for each direction of a link. */
import type { Context } from '../context';
import type { MarkKind } from '../document/types';
import { button, fill, h } from '../dom/element';
import { choices, section, type Section } from '../dom/section';
import {
  chartData,
  chartKinds,
  resolution,
  type ChartKind,
  type QueueUnit,
} from '../charts/lane-data';
import { TimeChart } from '../charts/time-chart';
import { markKinds, type Timeline } from '../charts/timeline';
import { at, ns } from '../format';

interface Shown {
  kind: ChartKind;
  lane: number | undefined;
  chart: TimeChart;
}

export interface Timelines extends Section {
  /** Shows the present data. */
  update: (visibleOnly: boolean) => void;
}

export function timelines(context: Context): Timelines {
  let unit: QueueUnit = 'packets';
  let shown: Shown[] = [];
  const grid = h('div', { class: 'charts' });
  const update = (visibleOnly: boolean) => {
    for (const { kind, lane, chart } of shown) {
      if (!visibleOnly || chart.plot.visible) chart.set(chartData(kind, context.view, lane, unit));
    }
  };
  const queueUnit = (one: TimeChart) => {
    one.plot.tools.append(
      choices(
        'Queue in',
        [
          { value: 'packets', label: 'packets' },
          { value: 'bytes', label: 'bytes' },
        ],
        unit,
        (value) => {
          unit = value;
          update(false);
        },
      ),
    );
  };
  const build = () => {
    for (const { chart } of shown) chart.remove();
    const columns = lanesShown(context);
    shown = columns.flatMap((lane) => makeCharts(lane, context.timeline));
    for (const one of shown) if (one.kind === 'queue') queueUnit(one.chart);
    fill(
      grid,
      columns.map((lane) => chartGroup(context, lane, shown)),
    );
    update(false);
  };
  const made = section(
    'timelines',
    'Time lines',
    h(
      'div',
      { class: 'toolbar sticky' },
      scope(context),
      zoomButtons(context.timeline),
      rangeText(context.timeline),
    ),
    kindFilter(context.timeline),
    grid,
    h('p', { class: 'hint' }, resolution(context.view)),
    h(
      'p',
      { class: 'hint controls' },
      'Drag over a chart to zoom, double click to see the whole run. With the keyboard: arrow keys move the cursor, Shift with them the range, + and − zoom, 0 resets.',
    ),
  );
  context.onChoose(build);
  build();
  return { ...made, update };
}

/** The four charts of a link direction, or of the whole network. */
function makeCharts(lane: number | undefined, timeline: Timeline): Shown[] {
  const heightRem = lane === undefined ? 12 : 10;
  return chartKinds.map(({ kind, options }) => ({
    kind,
    lane,
    chart: new TimeChart({ ...options, heightRem }, timeline),
  }));
}

function chartGroup(context: Context, lane: number | undefined, shown: Shown[]): HTMLElement {
  return h(
    'div',
    {
      'class': lane === undefined ? 'chart-group whole' : 'chart-group',
      'role': 'group',
      'aria-label': groupName(context, lane),
    },
    lane === undefined ? null : h('h3', { class: 'direction' }, groupName(context, lane)),
    shown.filter((one) => one.lane === lane).map((one) => one.chart.element),
  );
}

function lanesShown(context: Context): (number | undefined)[] {
  return context.chosen === undefined
    ? [undefined]
    : [...context.view.run.map.links[context.chosen].lanes];
}

function groupName(context: Context, lane: number | undefined): string {
  if (lane === undefined) return 'whole network';
  const { run } = context.view;
  const { from, to } = run.lanes[lane];
  return `${run.map.vertices[from].name} → ${run.map.vertices[to].name}`;
}

/** The whole network or one link. */
export function scope(context: Context): HTMLElement {
  const whole = h('option', { value: '' }, 'Whole network (all link directions together)');
  const select = h(
    'select',
    {
      'id': 'scope',
      'aria-label': 'What the charts show',
      'on': {
        change: () => {
          context.choose(select.value === '' ? undefined : Number(select.value));
        },
      },
    },
    whole,
    context.view.run.map.links.map((link, index) => h('option', { value: index }, link.name)),
  );
  const back = button(
    'Whole network',
    () => {
      context.choose(undefined);
    },
    { class: 'plain', hidden: true },
  );
  context.onChoose(() => {
    select.value = context.chosen === undefined ? '' : String(context.chosen);
    back.hidden = context.chosen === undefined;
  });
  return h('span', { class: 'scope' }, h('label', { for: 'scope' }, 'Show '), select, back);
}

export function zoomButtons(timeline: Timeline): HTMLElement {
  return h(
    'span',
    { 'class': 'buttons controls', 'role': 'group', 'aria-label': 'Range of time' },
    button(
      '◂',
      () => {
        timeline.pan(-0.5);
      },
      { 'aria-label': 'Earlier', 'title': 'Earlier' },
    ),
    button(
      '▸',
      () => {
        timeline.pan(0.5);
      },
      { 'aria-label': 'Later', 'title': 'Later' },
    ),
    button(
      '+',
      () => {
        timeline.zoom(0.5);
      },
      { 'aria-label': 'Zoom in', 'title': 'Zoom in' },
    ),
    button(
      '−',
      () => {
        timeline.zoom(2);
      },
      { 'aria-label': 'Zoom out', 'title': 'Zoom out' },
    ),
    button('Whole run', () => {
      timeline.reset();
    }),
  );
}

export function rangeText(timeline: Timeline): HTMLElement {
  const text = h('output', { 'class': 'range', 'aria-live': 'polite' });
  const show = () => {
    const [from, until] = timeline.range;
    text.textContent = `${at(from * 1e9)} – ${at(until * 1e9)} (${ns((until - from) * 1e9)})`;
  };
  timeline.onRange(show);
  show();
  return text;
}

/** Which kinds of events are marked. */
export function kindFilter(timeline: Timeline): HTMLElement {
  const none = h('span', { class: 'hint' }, 'none yet');
  const kinds = markKinds.map((kind) => ({ kind, ...kindBox(timeline, kind) }));
  const show = () => {
    for (const { kind, box, count } of kinds) {
      const number = timeline.marks.filter((mark) => mark.kind === kind).length;
      box.hidden = number === 0;
      if (count.textContent !== String(number)) count.textContent = String(number);
    }
    none.hidden = timeline.marks.length > 0;
  };
  timeline.onMarks(show);
  show();
  return h(
    'fieldset',
    { class: 'kinds' },
    h('legend', null, 'Events marked'),
    kinds.map((one) => one.box),
    none,
  );
}

function kindBox(timeline: Timeline, kind: MarkKind): { box: HTMLElement; count: HTMLElement } {
  const count = h('small');
  const box = h(
    'label',
    { class: `kind mark-${kind}` },
    h('input', {
      'type': 'checkbox',
      'checked': !timeline.hidden.has(kind),
      'data-kind': kind,
      'on': {
        change: (event) => {
          timeline.toggle(kind, (event.target as HTMLInputElement).checked);
        },
      },
    }),
    h('i', { 'class': 'flag', 'aria-hidden': 'true' }),
    kind,
    count,
  );
  return { box, count };
}
