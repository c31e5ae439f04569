/** Edit mode: the text of a scenario file beside its map. The file stays the source. */
import type { Document } from '../document/types';
import { announce, button, fill, h } from '../dom/element';
import { section } from '../dom/section';
import { table } from '../dom/table';
import { plural } from '../format';
import { Api, ApiError, failureText } from '../live/api';
import { Stream } from '../live/stream';
import { show } from '../page';
import { PlanMap } from './map';
import { TextEditor, type Mistake } from './text';

interface FileState {
  path?: string;
  text: string;
  version: unknown;
}

interface Check {
  document?: Document;
  errors: Mistake[];
  paths?: Record<string, unknown>[];
}

const pauseMs = 300;

export async function startEdit(token: string, theme: HTMLElement): Promise<void> {
  const api = new Api(token);
  const file = await api.json<FileState>('GET', '/api/file');
  await new EditPage(api, file, theme).check();
}

class EditPage {
  private readonly editor = new TextEditor(() => {
    this.typed();
  });
  private readonly plan = new PlanMap((name) => {
    this.editor.find(name);
  });
  private readonly state = h('span', { class: 'file-state', role: 'status' });
  private readonly save = button(
    'Save',
    () => {
      void this.store();
    },
    { 'class': 'primary', 'title': 'Ctrl+S', 'aria-keyshortcuts': 'Control+S' },
  );
  private readonly mistakes = h('ol', { 'class': 'mistakes', 'aria-live': 'polite' });
  private readonly conflict = h('div', {
    class: 'conflict reason warn',
    role: 'alert',
    hidden: true,
  });
  private readonly paths = h('div');
  private readonly mapNote = h('p', { class: 'hint' });
  private saved: FileState;
  /** What happened last, until something is typed. */
  private notice = '';
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked = 0;
  /** Mistakes of the last check; absent before it. */
  private wrong: number | undefined;

  constructor(
    private readonly api: Api,
    file: FileState,
    theme: HTMLElement,
  ) {
    this.saved = file;
    this.editor.setText(file.text);
    const name = file.path || 'scenario';
    const edit = section(
      'edit',
      name,
      h('div', { class: 'toolbar' }, this.save, this.state),
      this.conflict,
      h(
        'div',
        { class: 'edit-panes' },
        h('div', { class: 'edit-left' }, this.editor.element, this.mistakes),
        h('div', { class: 'edit-right' }, this.plan.map.element, this.mapNote),
      ),
    );
    const ways = section('paths', 'Paths', this.paths);
    show(name, theme, [edit, ways]);
    addEventListener('keydown', (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 's') return;
      event.preventDefault();
      void this.store();
    });
    addEventListener('beforeunload', (event) => {
      if (this.changed()) event.preventDefault();
    });
    new Stream(
      () => api.fileStream(),
      {
        changed: (data) => {
          this.changedOnDisk(data as FileState);
        },
      },
      (state) => {
        if (state === 'lost') this.say('connection lost, trying again…');
        else this.showState();
      },
    );
    this.showState();
  }

  /** Asks for what the text means, and shows it. */
  async check(): Promise<void> {
    const serial = (this.asked += 1);
    try {
      const checked = await this.api.json<Check>('POST', '/api/check', { text: this.editor.text });
      if (serial === this.asked) this.showCheck(checked);
    } catch (cause) {
      if (serial === this.asked) this.say(failureText(cause));
    }
  }

  private typed(): void {
    this.notice = '';
    this.showState();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      void this.check();
    }, pauseMs);
  }

  private changed(): boolean {
    return this.editor.text !== this.saved.text;
  }

  private showCheck(checked: Check): void {
    this.editor.setMistakes(checked.errors);
    fill(
      this.mistakes,
      checked.errors.map((one) =>
        h(
          'li',
          null,
          button(
            `${one.line}:${one.column}`,
            () => {
              this.editor.goTo(one.line, one.column);
            },
            { 'class': 'plain', 'aria-label': `Line ${one.line}, column ${one.column}` },
          ),
          h('span', null, one.message),
          one.hint ? h('span', { class: 'hint' }, `hint: ${one.hint}`) : null,
        ),
      ),
    );
    const plan = checked.document?.runs.at(0)?.map;
    this.plan.map.element.classList.toggle('stale', !plan);
    if (plan) {
      this.plan.set(plan);
      this.mapNote.textContent = `${plural(plan.vertices.length, 'vertex', 'vertices')}, ${plural(plan.links.length, 'link')}. A press on one leads to its name in the text.`;
    } else {
      this.mapNote.textContent = 'The map is of the last text without mistakes.';
    }
    this.showPaths(checked.paths || []);
    this.wrong = checked.errors.length;
    this.showState();
  }

  private showPaths(rows: Record<string, unknown>[]): void {
    const text = (value: unknown) =>
      Array.isArray(value)
        ? value.join(', ')
        : typeof value === 'object'
          ? JSON.stringify(value)
          : (value as string | number);
    const names = ['from', 'to', 'latency', 'bottleneck', 'loss', 'hops', 'via'].filter((name) =>
      rows.some((row) => name in row),
    );
    if (!rows.length) fill(this.paths, h('p', { class: 'absent' }, 'No paths between nodes.'));
    else
      fill(
        this.paths,
        table<Record<string, unknown>>({
          caption: 'Paths between nodes',
          filter: true,
          limit: 20,
          rows,
          columns: names.map((name) => ({ title: name, value: (row) => text(row[name]) })),
        }),
      );
  }

  private async store(): Promise<void> {
    const { text } = this.editor;
    try {
      const { version } = await this.api.json<{ version: unknown }>('PUT', '/api/file', {
        text,
        version: this.saved.version,
      });
      this.saved = { ...this.saved, text, version };
      this.conflict.hidden = true;
      this.notice = '';
      this.showState();
      announce('saved');
    } catch (cause) {
      if (cause instanceof ApiError && cause.status === 409)
        this.showConflict(cause.body as FileState);
      else this.say(failureText(cause));
    }
  }

  /** Another program wrote the file. */
  private changedOnDisk(file: FileState): void {
    if (file.text === this.saved.text) {
      this.saved.version = file.version;
      return;
    }
    if (this.changed() && file.text !== this.editor.text) {
      this.showConflict(file);
      return;
    }
    this.take(file, 'read again: the file was changed by another program');
  }

  private take(file: FileState, why: string): void {
    this.saved = { ...this.saved, text: file.text, version: file.version };
    this.editor.setText(file.text);
    this.conflict.hidden = true;
    this.notice = `${why}; `;
    this.showState();
    void this.check();
  }

  private showConflict(file: FileState): void {
    fill(
      this.conflict,
      h('h3', null, 'The file was changed by another program, and here as well'),
      h('details', null, h('summary', null, 'What the file says now'), h('pre', null, file.text)),
      h(
        'div',
        { class: 'buttons' },
        button('Take the file, drop what was typed here', () => {
          this.take(file, 'the text of the file was taken');
        }),
        button('Keep this text, write over the file', () => {
          this.saved.version = file.version;
          void this.store();
        }),
      ),
    );
    this.conflict.hidden = false;
    this.say('not saved: conflict');
  }

  private showState(): void {
    this.save.disabled = !this.changed();
    const wrong =
      this.wrong === undefined
        ? ''
        : this.wrong
          ? `, ${plural(this.wrong, 'mistake')}`
          : ', no mistakes';
    if (this.conflict.hidden)
      this.say(this.notice + (this.changed() ? 'changed, not saved' : 'saved') + wrong);
  }

  private say(text: string): void {
    this.state.textContent = text;
  }
}
