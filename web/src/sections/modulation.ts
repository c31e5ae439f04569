/** What the stacks made of the programs' writes: sizes and spacing of writes against those of packets. */
import type { Modulation, Quantiles, Run, Stage } from '../document/types';
import { h, svg } from '../dom/element';
import { section, type Section } from '../dom/section';
import { bytes, grouped, ns } from '../format';

interface Row {
  label: string;
  colour: string;
  quantiles: Quantiles | null | undefined;
}

export function modulation(run: Run): Section | null {
  const all = (run.modulation || []).filter((one) => one.writes?.size && one.packets?.size);
  if (!all.length) return null;
  const sizes = range(all.flatMap((one) => [one.writes?.size, one.packets?.size, one.reads?.size]));
  const spacings = range(
    all.flatMap((one) => [one.writes?.spacing_ns, one.packets?.spacing_ns, one.reads?.spacing_ns]),
  );
  return section(
    'modulation',
    'Modulation: from writes to packets',
    h(
      'p',
      { class: 'hint' },
      "What the network stacks made of the programs' writes. Lines go from the least to the largest value, bars from p50 to p90, the tick is p99. All flows share the axes.",
    ),
    h(
      'div',
      { class: 'modulation' },
      all.slice(0, 20).map((one) =>
        h(
          'div',
          { class: 'panel' },
          h(
            'div',
            { class: 'panel-head' },
            h('h3', null, `${one.from} → ${one.to}`),
            h('span', { class: 'hint' }, counts(one)),
          ),
          h(
            'div',
            { class: 'modulation-pair' },
            picture(
              'Size',
              rows(one, (stage) => stage.size),
              sizes,
              (v) => bytes(v),
            ),
            picture(
              'Spacing',
              rows(one, (stage) => stage.spacing_ns),
              spacings,
              (v) => ns(v),
            ),
          ),
        ),
      ),
    ),
  );
}

function counts(one: Modulation): string {
  return `${one.protocol}, ${one.sender} sends: ${grouped(one.writes?.count)} writes became ${grouped(one.packets?.count)} packets`;
}

function rows(one: Modulation, of: (stage: Stage) => Quantiles | null): Row[] {
  const row = (label: string, colour: string, stage: Stage | null | undefined): Row => ({
    label,
    colour,
    quantiles: stage && of(stage),
  });
  return [
    row('writes', 'series-1', one.writes),
    row('packets', 'series-2', one.packets),
    row('reads', 'series-3', one.reads),
  ].filter((shown) => shown.quantiles);
}

/** Whole powers of ten around all quantiles. */
function range(all: (Quantiles | null | undefined)[]): [number, number] {
  const there = all.filter((one): one is Quantiles => Boolean(one));
  const low = Math.max(1, Math.min(...there.map((one) => one.min || 1)));
  const high = Math.max(10, ...there.map((one) => one.max));
  return [
    Math.floor(Math.log10(low)),
    Math.max(Math.floor(Math.log10(low)) + 1, Math.ceil(Math.log10(high))),
  ];
}

const box = { width: 420, left: 58, right: 12, row: 22, axis: 20 };

function picture(
  title: string,
  shown: Row[],
  [low, high]: [number, number],
  format: (value: number) => string,
): HTMLElement {
  const height = shown.length * box.row + box.axis;
  const x = (value: number) =>
    box.left +
    ((Math.log10(Math.max(10 ** low, value)) - low) / (high - low)) *
      (box.width - box.left - box.right);
  const step = Math.max(1, Math.ceil((high - low) / 4));
  const ticks = Array.from(
    { length: Math.floor((high - low) / step) + 1 },
    (_, k) => 10 ** (low + k * step),
  );
  const text = shown
    .map(
      ({ label, quantiles: q }) =>
        `${label} ${q ? `${format(q.min)} to ${format(q.max)}, p50 ${format(q.p50)}` : ''}`,
    )
    .join('; ');
  return h(
    'figure',
    { class: 'quantiles' },
    h('figcaption', null, title),
    svg(
      'svg',
      { 'viewBox': `0 0 ${box.width} ${height}`, 'role': 'img', 'aria-label': `${title}: ${text}` },
      ticks.map((tick) => [
        svg('line', { class: 'grid', x1: x(tick), x2: x(tick), y1: 0, y2: height - box.axis + 2 }),
        svg(
          'text',
          { 'class': 'tick', 'x': x(tick), 'y': height - 5, 'text-anchor': 'middle' },
          format(tick),
        ),
      ]),
      shown.map((row, k) => quantileRow(row, k * box.row + box.row / 2, x, format)),
    ),
  );
}

function quantileRow(
  { label, colour, quantiles: q }: Row,
  y: number,
  x: (v: number) => number,
  format: (v: number) => string,
) {
  if (!q) return null;
  const style = { stroke: `var(--${colour})`, fill: `var(--${colour})` };
  return svg(
    'g',
    null,
    svg(
      'title',
      null,
      `${label}: least ${format(q.min)}, p50 ${format(q.p50)}, p90 ${format(q.p90)}, p99 ${format(q.p99)}, largest ${format(q.max)}`,
    ),
    svg(
      'text',
      { 'class': 'row-name', 'x': box.left - 8, 'y': y + 4, 'text-anchor': 'end' },
      label,
    ),
    svg('line', { style, 'x1': x(q.min), 'x2': x(q.max), 'y1': y, 'y2': y, 'stroke-width': 1.5 }),
    svg('rect', {
      style,
      x: x(q.p50),
      width: Math.max(3, x(q.p90) - x(q.p50)),
      y: y - 5,
      height: 10,
      rx: 1.5,
    }),
    svg('line', {
      style,
      'x1': x(q.p99),
      'x2': x(q.p99),
      'y1': y - 6,
      'y2': y + 6,
      'stroke-width': 2,
    }),
  );
}
