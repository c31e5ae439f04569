/** Lateness and round trip times as cumulative shares, with the usual percentiles. */
import type { RunView } from '../document/view';
import type { Distribution } from '../document/types';
import { CdfChart, quantile, together, type CdfScale, type Curve } from '../charts/cdf';
import { h } from '../dom/element';
import { absent, choices, section, type Section } from '../dom/section';
import { table } from '../dom/table';
import { ns } from '../format';

const shownAtFirst = 5;

export function distributions(view: RunView): Section {
  const { lateness, rtt, flows } = view.run;
  return section(
    'distributions',
    'Distributions',
    h(
      'div',
      { class: 'panels' },
      panel(
        'Round trip time',
        'smoothed samples of the kernel for each TCP flow, and echo requests',
        withSum(rtt),
        flows
          ? absent('No round trip times were measured.')
          : absent(
              'Round trip times of TCP flows are there for runs with ',
              h('code', null, '--record'),
              '.',
            ),
      ),
      panel(
        'Lateness',
        'how much later than asked packets left',
        lateness,
        absent(
          view.run.summary?.lateness?.packets
            ? 'The run folder has no lateness.csv: the run was killed, or made by an older version.'
            : 'No packet has left a link.',
        ),
      ),
    ),
  );
}

function panel(
  title: string,
  about: string,
  all: Distribution[] | undefined,
  nothing: HTMLElement,
): HTMLElement {
  const head = h(
    'div',
    { class: 'panel-head' },
    h('h3', null, title),
    h('span', { class: 'hint' }, about),
  );
  const filled = (all || []).filter((one) => one.count > 0 && one.bins.length);
  if (!filled.length) return h('div', { class: 'panel' }, head, nothing);
  const chart = new CdfChart(
    `${title}: share of ${title === 'Lateness' ? 'packets' : 'samples'} at or below`,
  );
  let scale: CdfScale = 'tail';
  const chosen = new Set(initially(filled));
  const draw = () => {
    chart.set(curves(filled, chosen), scale);
  };
  chart.plot.tools.append(
    choices<CdfScale>(
      'Axis of shares',
      [
        { value: 'tail', label: 'tail' },
        { value: 'linear', label: 'linear' },
      ],
      scale,
      (value) => {
        scale = value;
        draw();
      },
    ),
  );
  const toggle = (one: Distribution, on: boolean) => {
    if (on) chosen.add(one);
    else chosen.delete(one);
    draw();
  };
  draw();
  return h(
    'div',
    { class: 'panel' },
    head,
    chart.plot.element,
    percentiles(title, filled, chosen, toggle),
  );
}

/** Many flows have few samples each: all of them together come first. */
function withSum(all: Distribution[] | undefined): Distribution[] | undefined {
  return all && all.length > 1 ? [together('all samples', all), ...all] : all;
}

/** The first one (that of all packets), and those with the longest tails. */
function initially(all: Distribution[]): Distribution[] {
  const [first, ...rest] = all;
  const longest = [...rest]
    .sort((a, b) => quantile(b, 0.99) - quantile(a, 0.99))
    .slice(0, shownAtFirst - 1);
  return all.filter((one) => one === first || longest.includes(one));
}

export function curves(all: Distribution[], chosen: Set<Distribution>): Curve[] {
  return all
    .filter((one) => chosen.has(one))
    .map((distribution, k) => ({
      label: distribution.name,
      colour: `series-${1 + (k % 6)}`,
      dash: k >= 6 ? [5, 3] : undefined,
      distribution,
    }));
}

function percentiles(
  title: string,
  all: Distribution[],
  chosen: Set<Distribution>,
  toggle: (one: Distribution, on: boolean) => void,
): HTMLElement {
  return table<Distribution>({
    caption: `Percentiles: ${title}`,
    filter: true,
    limit: 12,
    rows: all,
    columns: [
      {
        title: 'Of',
        value: (one) => one.name,
        cell: (one) =>
          h(
            'label',
            null,
            h('input', {
              'type': 'checkbox',
              'checked': chosen.has(one),
              'aria-label': `Show ${one.name} in the chart`,
              'on': {
                change: (event) => {
                  toggle(one, (event.target as HTMLInputElement).checked);
                },
              },
            }),
            ' ',
            one.name,
          ),
      },
      { title: 'Count', numeric: true, value: (one) => one.count },
      ...(
        [
          ['p50', 0.5],
          ['p99', 0.99],
          ['p99.9', 0.999],
        ] as const
      ).map(([name, share]) => ({
        title: name,
        numeric: true,
        value: (one: Distribution) => quantile(one, share),
        cell: (one: Distribution) => ns(quantile(one, share)),
      })),
      {
        title: 'Largest',
        numeric: true,
        value: (one) => one.max_ns,
        cell: (one) => ns(one.max_ns),
      },
    ],
  });
}
