/** Live mode: the list of runs, and the one that is shown. */
import type { Document } from '../document/types';
import { button, fill, h } from '../dom/element';
import type { Section } from '../dom/section';
import { show } from '../page';
import { report } from '../report';
import { Api, failureText, type RunEntry } from './api';
import { LiveRun } from './live';

const listEveryMs = 3000;

export async function startLive(token: string, theme: HTMLElement): Promise<void> {
  const live = new LivePage(new Api(token), theme);
  await live.start();
}

class LivePage {
  private readonly select = h('select', { 'class': 'run-select', 'aria-label': 'Run' });
  private readonly notice = h('span', { class: 'notice', role: 'status' });
  private runs: RunEntry[] = [];
  private chosen = '';
  private shown: LiveRun | undefined;

  constructor(
    private readonly api: Api,
    private readonly theme: HTMLElement,
  ) {
    this.select.addEventListener('change', () => {
      void this.open(this.select.value);
    });
  }

  async start(): Promise<void> {
    show('live', this.theme, [], this.notice, this.select);
    await this.list();
    const first = this.runs.find((run) => run.alive) || this.runs.at(0);
    if (first) await this.open(first.id);
    else fill(this.notice, 'no run yet: it is shown when one begins');
    setInterval(() => {
      if (!document.hidden) void this.list();
    }, listEveryMs);
  }

  private async list(): Promise<void> {
    try {
      this.runs = await this.api.runs();
    } catch (cause) {
      if (!this.shown) fill(this.notice, failureText(cause));
      return;
    }
    const options = this.runs.map((run) =>
      h('option', { value: run.id }, `${run.name} · ${run.id}${run.alive ? ' · live' : ''}`),
    );
    const text = options.map((one) => one.textContent).join('\n');
    if (text !== [...this.select.options].map((one) => one.textContent).join('\n')) {
      fill(this.select, options);
      this.select.value = this.chosen;
    }
    const waiting = !this.chosen && this.runs.find((run) => run.alive);
    if (waiting) await this.open(waiting.id);
  }

  private async open(id: string): Promise<void> {
    this.chosen = id;
    this.shown?.stop();
    this.shown = undefined;
    try {
      const read = await this.api.document(id);
      if (this.chosen !== id) return;
      this.select.value = id;
      fill(this.notice);
      if (this.runs.find((run) => run.id === id)?.alive) this.showLive(id, read);
      else this.showReport(read);
    } catch (cause) {
      fill(
        this.notice,
        failureText(cause),
        ' ',
        button(
          'Again',
          () => {
            void this.open(id);
          },
          { class: 'plain' },
        ),
      );
    }
  }

  private showLive(id: string, read: Document): void {
    const live = new LiveRun(read, this.api, {
      ended: (last) => {
        fill(this.notice, 'the run has ended: this is its report');
        this.showReport(last);
      },
      reload: () => {
        void this.open(id);
      },
    });
    this.shown = live;
    this.put(read.runs[0].label, live.sections, live.connection, live.clock);
  }

  private showReport(read: Document): void {
    this.shown = undefined;
    this.put(read.runs[0].label, report(read));
  }

  private put(title: string, sections: Section[], ...more: HTMLElement[]): void {
    show(title, this.theme, sections, this.notice, ...more, this.select);
  }
}
