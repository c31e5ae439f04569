/** A text area with line numbers, and marks where mistakes are. */
import { fill, h } from '../dom/element';

export interface Mistake {
  line: number;
  column: number;
  end_line?: number;
  end_column?: number;
  message: string;
  hint?: string;
}

export class TextEditor {
  readonly element: HTMLElement;
  readonly area = h('textarea', {
    'class': 'editor-text',
    'spellcheck': 'false',
    'autocapitalize': 'off',
    'autocomplete': 'off',
    'wrap': 'off',
    'aria-label': 'Scenario file',
  });
  private readonly numbers = h('div', { 'class': 'editor-numbers', 'aria-hidden': 'true' });
  private readonly under = h('pre', { 'class': 'editor-under', 'aria-hidden': 'true' });
  private mistakes: Mistake[] = [];
  private lines = 0;

  constructor(changed: () => void) {
    this.element = h(
      'div',
      { class: 'editor' },
      this.numbers,
      h('div', { class: 'editor-body' }, this.under, this.area),
    );
    this.area.addEventListener('input', () => {
      this.decorate();
      changed();
    });
    this.area.addEventListener('scroll', () => {
      this.scrolled();
    });
  }

  get text(): string {
    return this.area.value;
  }

  /** Another text, with the caret where it was. */
  setText(text: string): void {
    const { selectionStart, scrollTop, scrollLeft } = this.area;
    this.area.value = text;
    this.area.setSelectionRange(selectionStart, selectionStart);
    this.area.scrollTo(scrollLeft, scrollTop);
    this.decorate();
  }

  setMistakes(mistakes: Mistake[]): void {
    this.mistakes = mistakes;
    this.lines = 0;
    this.area.setAttribute('aria-invalid', String(mistakes.length > 0));
    this.decorate();
  }

  /** Moves the caret to a line and column, both from 1. */
  goTo(line: number, column: number): void {
    this.select(this.offset(line, column), 0);
  }

  /** Selects the first place where a name stands as a word. */
  find(name: string): void {
    const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const found = new RegExp(`(?<![\\w.-])${escaped}(?![\\w.-])`).exec(this.text);
    if (found) this.select(found.index, name.length);
  }

  private select(offset: number, length: number): void {
    this.area.focus();
    this.area.setSelectionRange(offset, offset + length);
    const line = this.text.slice(0, offset).split('\n').length;
    this.area.scrollTop = (line - 1) * this.lineHeight() - this.area.clientHeight / 3;
  }

  private offset(line: number, column: number): number {
    const lines = this.text.split('\n');
    const before = lines.slice(0, line - 1).reduce((all, one) => all + one.length + 1, 0);
    return before + Math.min(lines[line - 1]?.length || 0, Math.max(0, column - 1));
  }

  private lineHeight(): number {
    return parseFloat(getComputedStyle(this.area).lineHeight) || 18;
  }

  private decorate(): void {
    this.under.replaceChildren(
      ...marked(
        this.text,
        this.mistakes.map((one) => this.span(one)),
      ),
      '\n',
    );
    const count = this.text.split('\n').length;
    if (count !== this.lines) {
      this.lines = count;
      const wrong = new Set(this.mistakes.map((one) => one.line));
      fill(
        this.numbers,
        Array.from({ length: count }, (_, k) =>
          h('span', { class: wrong.has(k + 1) ? 'wrong' : '' }, String(k + 1)),
        ),
      );
    }
    this.scrolled();
  }

  /** From its first character to its end; to the end of the word where no end is known. */
  private span(mistake: Mistake): [number, number] {
    const from = this.offset(mistake.line, mistake.column);
    if (mistake.end_line && mistake.end_column)
      return [from, Math.max(from + 1, this.offset(mistake.end_line, mistake.end_column))];
    const word = /^[^\s:,{}[\]]+/.exec(this.text.slice(from));
    return [from, from + Math.max(1, word?.[0].length ?? 1)];
  }

  private scrolled(): void {
    this.under.style.transform = `translate(${-this.area.scrollLeft}px, ${-this.area.scrollTop}px)`;
    this.numbers.scrollTop = this.area.scrollTop;
  }
}

/** The text in pieces, those in spans marked. */
function marked(text: string, spans: [number, number][]): (string | Node)[] {
  const pieces: (string | Node)[] = [];
  let at = 0;
  for (const [from, until] of [...spans].sort((a, b) => a[0] - b[0])) {
    if (from < at) continue;
    pieces.push(text.slice(at, from), h('mark', null, text.slice(from, until)));
    at = until;
  }
  return [...pieces, text.slice(at)];
}
