/** The map with its legend. Links lead to their charts, nodes to their programs. */
import type { Context } from '../context';
import { button, fill, h } from '../dom/element';
import { choices, goTo, section, type Section } from '../dom/section';
import { bits, grouped, ns } from '../format';
import { tooltipRows } from '../charts/tooltip';
import { TopologyMap, type MapActions } from '../map/map';
import { amountOf, levelOf, levels, paints, valueOf, type Paint } from '../map/paint';

export interface Topology extends Section {
  map: TopologyMap;
  /** Colours the links anew. */
  paint: () => void;
}

export interface TopologyActions {
  link: (index: number) => void;
  vertex: (index: number) => void;
  hint: string;
  /** Whether a link is cut. */
  down: (link: string) => boolean;
}

export function topology(context: Context, act?: TopologyActions): Topology {
  let paint: Paint = 'use';
  const { run } = context.view;
  const legend = h('ul', { class: 'map-legend' });
  const map = new TopologyMap(mapActions(context, act, () => paint));
  const ranking = h('ol', { class: 'ranking' });
  let rankedAt = 0;
  const colour = (rank = true) => {
    colourLinks(context, map, paint, act?.down);
    // While a run goes the list would change under the hand: once a second is enough, and not while it is used.
    if (!rank && (performance.now() - rankedAt < 1000 || ranking.matches(':hover, :focus-within')))
      return;
    rankedAt = performance.now();
    fill(
      ranking,
      ranked(context, paint).map((row) => rankRow(context, row, act?.link)),
    );
  };
  const choose = (value: Paint) => {
    paint = value;
    fill(legend, levels(paint).map(levelRow));
    colour();
    map.relabel();
  };
  const made = section(
    'map',
    'Map',
    h(
      'div',
      { class: 'toolbar' },
      choices('Colour of links', paints, paint, choose),
      h('span', { class: 'hint' }, act?.hint || reportHint),
    ),
    h('div', { class: 'map-panel' }, map.element, rankPanel(ranking, act !== undefined)),
    legend,
  );
  map.set(run.map.vertices, run.map.links);
  run.map.vertices.forEach((vertex, index) => {
    map.mark(index, vertex.absent ? 'absent' : failed(context, vertex.name) ? 'failed' : '');
  });
  choose(paint);
  if (!act)
    context.timeline.onRange(
      later(() => {
        colour();
      }),
    );
  context.onChoose(() => {
    map.select(context.chosen);
  });
  return {
    ...made,
    map,
    paint: () => {
      colour(!act);
    },
  };
}

const reportHint =
  'A link leads to its charts, a node to its programs. Each half of a link is the direction that ' +
  'its arrow shows. Colours follow the range of the time lines.';

function mapActions(
  context: Context,
  act: TopologyActions | undefined,
  paint: () => Paint,
): MapActions {
  const { vertices } = context.view.run.map;
  const toLink = (index: number) => {
    leadToLink(context, index);
  };
  const toNode = (index: number) => {
    leadToNode(vertices[index].name);
  };
  return {
    link: act?.link || toLink,
    vertex: act?.vertex || toNode,
    linkTip: (index) => linkTip(context, index),
    vertexTip: (index) => vertexTip(context, index),
    linkLabel: (index) => linkLabel(context, index, paint()),
  };
}

function levelRow([level, text]: [string, string]): HTMLElement {
  return h('li', null, h('i', { 'class': 'level', 'data-level': level }), text);
}

function rankPanel(ranking: HTMLElement, live: boolean): HTMLElement {
  const title = live ? 'Highest at present' : 'Highest in the range shown';
  return h('div', { class: 'ranks' }, h('h3', null, title), ranking);
}

interface Rank {
  lane: number;
  amount: number;
  level: string;
  text: string;
}

const rankedAtMost = 8;

/** The link directions with the highest figures of the present kind. */
function ranked(context: Context, paint: Paint): Rank[] {
  const [from, until] = context.span();
  return context.view.run.lanes
    .flatMap((_, lane): Rank[] => {
      const figures = context.view.figures(lane, from, until);
      const amount = amountOf(paint, figures);
      return amount === undefined
        ? []
        : [{ lane, amount, level: levelOf(paint, figures), text: valueOf(paint, figures) }];
    })
    .sort((a, b) => b.amount - a.amount)
    .slice(0, rankedAtMost);
}

function rankRow(
  context: Context,
  row: Rank,
  lead = (index: number) => {
    leadToLink(context, index);
  },
): HTMLElement {
  const lane = context.view.run.lanes[row.lane];
  return h(
    'li',
    null,
    h('i', { 'class': 'level', 'data-level': row.level }),
    button(
      lane.link,
      () => {
        lead(context.view.linkOf(row.lane));
      },
      { class: 'plain' },
    ),
    h('span', { class: 'hint' }, lane.direction),
    h('span', { class: 'rank-value' }, row.text),
  );
}

function later(act: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      act();
    });
  };
}

function colourLinks(
  context: Context,
  map: TopologyMap,
  paint: Paint,
  isDown: (link: string) => boolean = () => false,
): void {
  const [from, until] = context.span();
  context.view.run.map.links.forEach((link, index) => {
    const [up, down] = link.lanes.map((lane) =>
      levelOf(paint, context.view.figures(lane, from, until)),
    );
    map.paint(index, [up, down], isDown(link.name));
  });
}

export function leadToLink(context: Context, index: number): void {
  context.choose(index);
  const target = document.getElementById('timelines');
  if (target) goTo(target);
}

export function leadToNode(name: string): void {
  const row = document.querySelector<HTMLElement>(`[data-node="${CSS.escape(name)}"]`);
  const target = row || document.getElementById('programs');
  if (!target) return;
  goTo(target);
  row?.classList.add('found');
}

function failed(context: Context, node: string): boolean {
  return Boolean(
    context.view.run.summary?.programs?.some((program) => program.node === node && program.failed),
  );
}

export function linkTip(context: Context, index: number): Node[] {
  const { view } = context;
  const link = view.run.map.links[index];
  return [
    h('b', null, link.name),
    ...link.lanes.map((lane, way) => {
      const figures = view.figures(lane, ...context.span());
      const asked = link.asked[way];
      return h(
        'div',
        null,
        h('span', { class: 'tip-way' }, view.run.lanes[lane].direction),
        tooltipRows([
          [
            'asked',
            [
              asked.latency,
              asked.rate,
              asked.loss && asked.loss !== 'none' ? `loss ${asked.loss}` : null,
            ]
              .filter(Boolean)
              .join(', ') || '–',
          ],
          [
            'delivered',
            figures.use === undefined
              ? bits(figures.deliveredBits)
              : `${bits(figures.deliveredBits)} (${valueOf('use', figures)})`,
          ],
          ['dropped', `${grouped(figures.dropped)} packets`],
          ['queue', `${grouped(figures.queueMax)} packets at most`],
          ['lateness', `${ns(figures.latenessNs)} at most`],
        ]),
      );
    }),
  ];
}

export function vertexTip(context: Context, index: number): Node[] {
  const vertex = context.view.run.map.vertices[index];
  return [
    h('b', null, `${vertex.name} `),
    h('span', null, `${vertex.kind}${vertex.absent ? ', absent' : ''}`),
    h('div', null, vertex.addresses.join(', ')),
    ...(vertex.programs || [])
      .slice(0, 6)
      .map((program) => h('code', { class: 'tip-program' }, program)),
  ];
}

function linkLabel(context: Context, index: number, paint: Paint): string {
  const { view } = context;
  const link = view.run.map.links[index];
  const ways = link.lanes.map(
    (lane) =>
      `${view.run.lanes[lane].direction} ${valueOf(paint, view.figures(lane, ...context.span()))}`,
  );
  return `link ${link.name}: ${ways.join('; ')}`;
}
