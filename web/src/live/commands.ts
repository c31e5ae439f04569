/** What a click does is a command: it is shown as one, ready to be copied, with its answer. */
import { announce, button, fill, h } from '../dom/element';
import { section, type Section } from '../dom/section';
import { failureText, type Api } from './api';

interface Entry {
  line: string;
  state: 'running' | 'done' | 'failed';
  answer: string;
}

const keptAtMost = 100;

export class Commands {
  readonly section: Section;
  private readonly list = h('ol', { 'class': 'commands', 'aria-live': 'polite' });
  private readonly entries: Entry[] = [];

  constructor(
    private readonly api: Api,
    private readonly run: string,
  ) {
    this.section = section(
      'commands',
      'Commands',
      h(
        'p',
        { class: 'hint' },
        'Everything that is done on this page, as the command that does the same. The newest is first.',
      ),
      this.list,
    );
    this.draw();
  }

  /** Runs a command and shows it with what came of it; says whether it went well. */
  async perform(argv: string[]): Promise<boolean> {
    const entry = this.add(commandLine(argv));
    try {
      const { exit, stdout, stderr } = await this.api.command(this.run, argv);
      this.finish(
        entry,
        exit === 0,
        [stderr, stdout]
          .map((text) => text.trim())
          .filter(Boolean)
          .join('\n') || (exit === 0 ? '' : `exit ${exit}`),
      );
      return exit === 0;
    } catch (cause) {
      this.finish(entry, false, failureText(cause));
      return false;
    }
  }

  /** A command whose output is shown elsewhere. */
  add(line: string): Entry {
    const entry: Entry = { line, state: 'running', answer: '' };
    this.entries.unshift(entry);
    if (this.entries.length > keptAtMost) this.entries.pop();
    this.draw();
    return entry;
  }

  finish(entry: Entry, good: boolean, answer: string): void {
    entry.state = good ? 'done' : 'failed';
    entry.answer = answer;
    this.draw();
    announce(good ? `done: ${entry.line}` : `failed: ${entry.line}: ${answer}`);
  }

  private draw(): void {
    if (!this.entries.length) fill(this.list, h('li', { class: 'absent' }, 'Nothing yet.'));
    else fill(this.list, this.entries.map(row));
  }
}

function row(entry: Entry): HTMLElement {
  const sign = { running: '…', done: '✓', failed: '✕' }[entry.state];
  return h(
    'li',
    { class: `command ${entry.state}` },
    h('span', { 'class': 'command-sign', 'role': 'img', 'aria-label': entry.state }, sign),
    h('code', null, entry.line),
    copyButton(entry.line),
    entry.answer ? h('pre', null, entry.answer) : null,
  );
}

export function copyButton(text: string): HTMLButtonElement {
  const made = button(
    'Copy',
    () => {
      navigator.clipboard.writeText(text).then(
        () => {
          made.textContent = 'Copied';
        },
        () => {
          // The browser may refuse: then the text is selected, for Ctrl+C.
          const code = made.previousElementSibling;
          if (code) getSelection()?.selectAllChildren(code);
          made.textContent = 'Press Ctrl+C';
        },
      );
    },
    { 'class': 'copy', 'aria-label': `Copy: ${text}` },
  );
  return made;
}

/** What one would type into a shell. */
export function commandLine(argv: string[]): string {
  return ['windtunnel', ...argv].map(shellWord).join(' ');
}

export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** A name inside of an event's YAML. */
export function yamlName(name: string): string {
  return /^[A-Za-z_][\w.-]*$/.test(name) ? name : JSON.stringify(name);
}
