/** What programs write, as they write it. */
import { fill, h } from '../dom/element';
import { section, type Section } from '../dom/section';
import type { OutputLine } from './messages';

const linesAtMost = 1000;
/** More of one message is cut on the screen; the run folder has all. */
const textAtMost = 20_000;

export class OutputPanel {
  readonly section: Section;
  private readonly screen = h('div', {
    'class': 'screen tall',
    'tabindex': 0,
    'role': 'log',
    'aria-label': 'Output of programs',
  });
  private readonly select = h(
    'select',
    { 'aria-label': 'Output of' },
    h('option', { value: '' }, 'all nodes'),
  );
  private readonly kept: OutputLine[] = [];
  private readonly waiting: OutputLine[] = [];
  private readonly known = new Set<string>();

  constructor() {
    this.select.addEventListener('change', () => {
      this.rebuild();
    });
    this.section = section(
      'output',
      'Output',
      h('div', { class: 'toolbar' }, this.select),
      this.screen,
    );
  }

  add(line: OutputLine): void {
    this.waiting.push(line);
  }

  /** Shows what has come since the last time. */
  draw(): void {
    const lines = this.waiting.splice(0);
    if (!lines.length) return;
    for (const { node } of lines) this.option(node);
    this.kept.push(...lines);
    if (this.kept.length > linesAtMost) this.kept.splice(0, this.kept.length - linesAtMost);
    const atEnd = this.screen.scrollTop + this.screen.clientHeight >= this.screen.scrollHeight - 20;
    this.screen.append(...lines.filter((line) => this.chosen(line)).map(row));
    while (this.screen.childElementCount > linesAtMost) this.screen.firstElementChild?.remove();
    if (atEnd) this.screen.scrollTop = this.screen.scrollHeight;
  }

  private option(node: string): void {
    if (this.known.has(node)) return;
    this.known.add(node);
    this.select.append(h('option', { value: node }, node));
  }

  private chosen(line: OutputLine): boolean {
    return !this.select.value || this.select.value === line.node;
  }

  private rebuild(): void {
    fill(this.screen, this.kept.filter((line) => this.chosen(line)).map(row));
    this.screen.scrollTop = this.screen.scrollHeight;
  }
}

function row(line: OutputLine): HTMLElement {
  const text = line.text.length > textAtMost ? `${line.text.slice(0, textAtMost)}…\n` : line.text;
  return h(
    'div',
    { class: `output-line ${line.stream === 'stderr' ? 'stderr' : ''}` },
    h('span', { class: 'output-node' }, line.node),
    h('span', { class: 'output-text' }, text.replace(/\n$/, '')),
  );
}
