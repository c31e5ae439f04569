/** One link of a live run: sliders and fields for its properties, and a switch that cuts it. */
import { button, fill, h } from '../dom/element';
import { choices } from '../dom/section';
import { digits, parseRate, parseShare, parseTime } from '../format';
import type { Commands } from './commands';
import type { LaneProperties } from './messages';
import type { LiveStore } from './store';

type Way = 'both' | 'up' | 'down';

interface Knob {
  key: string;
  title: string;
  /** From a property's text to a place from 0 to 1, and back. */
  place: (text: unknown) => number;
  text: (place: number) => string;
}

/** Places follow a square, so that small values have room. */
function time(key: string, title: string, mostMs: number): Knob {
  return {
    key,
    title,
    place: (text) => Math.sqrt(Math.min(1, (parseTime(text) ?? 0) / 1e6 / mostMs)),
    text: (place) => `${Number((place ** 2 * mostMs).toPrecision(2))}ms`,
  };
}

const slowest = 1e4;
const decades = 6;
const knobs: Knob[] = [
  time('latency', 'Latency', 1000),
  time('jitter', 'Jitter', 200),
  {
    key: 'loss',
    title: 'Loss',
    place: (text) => Math.sqrt(Math.min(1, (parseShare(text) ?? 0) / 0.5)),
    text: (place) => (place === 0 ? 'none' : `${Number((place ** 2 * 50).toPrecision(2))}%`),
  },
  {
    key: 'rate',
    title: 'Rate',
    place: (text) => {
      const rate = parseRate(text);
      return rate ? Math.min(1, Math.max(0, Math.log10(rate / slowest) / decades)) : 1;
    },
    text: (place) => (place >= 1 ? 'none' : rateText(slowest * 10 ** (place * decades))),
  },
];

function rateText(bits: number): string {
  const round = Number(bits.toPrecision(2));
  if (round >= 1e9) return `${digits(round / 1e9)}gbit`;
  return round >= 1e6 ? `${digits(round / 1e6)}mbit` : `${digits(round / 1e3)}kbit`;
}

export class LinkPanel {
  readonly element = h('section', {
    'class': 'section side-panel',
    'aria-label': 'Link',
    'tabindex': -1,
    'hidden': true,
  });
  private link = '';
  private way: Way = 'both';
  private readonly rows = new Map<
    string,
    { slider: HTMLInputElement; field: HTMLInputElement; was: HTMLElement }
  >();
  private readonly state = h('span', { class: 'state' });
  private readonly reset = button('As at the beginning', () => {
    this.restore();
  });

  constructor(
    private readonly store: LiveStore,
    private readonly commands: Commands,
    private readonly close: () => void,
  ) {}

  show(link: string): void {
    this.link = link;
    this.way = 'both';
    this.rows.clear();
    fill(
      this.element,
      h(
        'div',
        { class: 'panel-head' },
        h('h2', null, `Link ${link}`),
        this.state,
        button('Close', this.close, { class: 'plain' }),
      ),
      choices<Way>('Direction', this.ways(), 'both', (way) => {
        this.way = way;
        this.refresh();
      }),
      h(
        'div',
        { class: 'knobs' },
        knobs.map((knob) => this.knob(knob)),
      ),
      h(
        'div',
        { class: 'buttons' },
        button(
          'Cut',
          () => {
            this.send('down');
          },
          { class: 'danger' },
        ),
        button('Heal', () => {
          this.send('up');
        }),
        this.reset,
      ),
    );
    this.element.hidden = false;
    this.refresh();
  }

  hide(): void {
    this.element.hidden = true;
    this.link = '';
  }

  /** What is asked for now; a field that is being changed is left alone. */
  refresh(): void {
    if (!this.link) return;
    const lanes = this.lanes();
    const state = [...new Set(lanes.map((lane) => lane.state))].join(' and ') || 'unknown';
    this.state.textContent = state;
    this.state.classList.toggle('no', state !== 'up');
    this.reset.disabled = !lanes.some((lane) => Object.keys(lane.changed_from).length);
    for (const knob of knobs) {
      const row = this.rows.get(knob.key);
      if (!row || document.activeElement === row.field || row.slider.matches(':active')) continue;
      const values = [...new Set(lanes.map((lane) => plain(lane.properties[knob.key], knob.key)))];
      row.field.value = values.join(' / ');
      row.slider.value = String(knob.place(values[0]));
      row.slider.setAttribute('aria-valuetext', row.field.value);
      const before = lanes.flatMap((lane) =>
        knob.key in lane.changed_from ? [plain(lane.changed_from[knob.key], knob.key)] : [],
      );
      row.was.textContent = before.length ? `was ${[...new Set(before)].join(' / ')}` : '';
    }
  }

  private ways(): { value: Way; label: string }[] {
    const [up, down] = this.store.directions(this.link);
    return [
      { value: 'both', label: 'both ways' },
      { value: 'up', label: arrow(up) },
      { value: 'down', label: arrow(down) },
    ];
  }

  private lanes(): LaneProperties[] {
    const all = this.store.directions(this.link);
    return this.way === 'both'
      ? all
      : all.slice(this.way === 'up' ? 0 : 1, this.way === 'up' ? 1 : 2);
  }

  private knob(knob: Knob): HTMLElement {
    const field = h('input', {
      'type': 'text',
      'class': 'knob-field',
      'aria-label': `${knob.title} of ${this.link}`,
      'spellcheck': 'false',
      'data-knob': knob.key,
      'on': {
        change: () => {
          this.set(knob.key, field.value.trim());
        },
      },
    });
    const slider = h('input', {
      'type': 'range',
      'min': 0,
      'max': 1,
      'step': 0.01,
      'aria-label': `${knob.title} of ${this.link}, slider`,
      'data-slider': knob.key,
      'on': {
        input: () => {
          field.value = knob.text(Number(slider.value));
          slider.setAttribute('aria-valuetext', field.value);
        },
        change: () => {
          this.set(knob.key, knob.text(Number(slider.value)));
        },
      },
    });
    const was = h('span', { class: 'hint' });
    this.rows.set(knob.key, { slider, field, was });
    return h(
      'div',
      { class: 'knob' },
      h('span', { class: 'knob-name' }, knob.title),
      slider,
      field,
      was,
    );
  }

  private set(key: string, value: string): void {
    if (value)
      void this.commands.perform(['set', this.link, `${key}=${value}`, ...this.direction()]);
  }

  private send(verb: 'up' | 'down'): void {
    void this.commands.perform([verb, this.link, ...this.direction()]);
  }

  private direction(): string[] {
    return this.way === 'both' ? [] : ['--direction', this.way];
  }

  /** Sets back whatever was changed since the run began; both ways by one command where they agree. */
  private restore(): void {
    const lanes = this.lanes();
    const settings = (lane: LaneProperties) =>
      Object.entries(lane.changed_from).map(([key, value]) => `${key}=${argument(value, key)}`);
    const texts = lanes.map((lane) => settings(lane).join(' '));
    if (lanes.length === 2 && texts[0] === texts[1]) {
      void this.commands.perform(['set', this.link, ...settings(lanes[0])]);
      return;
    }
    for (const lane of lanes) {
      if (settings(lane).length)
        void this.commands.perform([
          'set',
          this.link,
          ...settings(lane),
          '--direction',
          lane.direction,
        ]);
    }
  }
}

function arrow(lane: LaneProperties | undefined): string {
  return lane ? lane.direction : 'one way';
}

/** A property as one would write it. */
function plain(value: unknown, key: string): string {
  if (value === null || value === undefined) return key === 'rate' ? 'none' : '';
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  const { spread, distribution } = value as { spread?: unknown; distribution?: unknown };
  if (typeof spread === 'string')
    return distribution === 'uniform' || distribution === undefined
      ? spread
      : `{spread: ${spread}, distribution: ${distribution as string}}`;
  return JSON.stringify(value);
}

function argument(value: unknown, key: string): string {
  return value === null ? (key === 'queue' ? 'default' : 'none') : plain(value, key);
}
