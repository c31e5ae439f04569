/** Tables that sort by their headings and filter by a text. */
import { announce, button, fill, h, type Child } from './element';
import { grouped } from '../format';

export type Value = string | number | boolean | null | undefined;

export interface Column<T> {
  title: string;
  /** What sorts and filters; also what is shown where there is no `cell`. */
  value: (row: T) => Value;
  cell?: (row: T) => Child;
  numeric?: boolean;
  hint?: string;
}

export interface TableOptions<T> {
  caption: string;
  columns: Column<T>[];
  rows: T[];
  /** With a field that filters rows. */
  filter?: boolean;
  /** Rows that are shown before "show all". */
  limit?: number;
  sort?: { column: number; descending?: boolean };
  rowClass?: (row: T) => string;
  rowId?: (row: T) => string | undefined;
}

interface State<T> {
  options: TableOptions<T>;
  body: HTMLElement;
  foot: HTMLElement;
  heads: HTMLElement[];
  sort: { column: number; descending: boolean } | null;
  words: string;
  all: boolean;
}

export function table<T>(options: TableOptions<T>): HTMLElement {
  return changingTable(options).element;
}

/** A table whose rows change; what was sorted and filtered stays so. */
export function changingTable<T>(options: TableOptions<T>): {
  element: HTMLElement;
  set: (rows: T[]) => void;
} {
  const state: State<T> = {
    options,
    body: h('tbody'),
    foot: h('p', { class: 'table-foot' }),
    heads: [],
    sort: options.sort
      ? { column: options.sort.column, descending: Boolean(options.sort.descending) }
      : null,
    words: '',
    all: false,
  };
  state.heads = options.columns.map((column, index) => heading(state, column, index));
  const sheet = h(
    'table',
    null,
    h('caption', { class: 'unseen' }, options.caption),
    h('thead', null, h('tr', null, state.heads)),
    state.body,
  );
  const filter = options.filter ? filterField(state) : null;
  const set = (rows: T[]) => {
    options.rows = rows;
    if (filter) {
      filter.hidden = rows.length <= 5 && !state.words;
      filter.placeholder = `Filter ${grouped(rows.length)} rows`;
    }
    draw(state);
  };
  set(options.rows);
  return {
    element: h(
      'div',
      { class: 'table' },
      filter,
      h(
        'div',
        { 'class': 'table-scroll', 'role': 'region', 'aria-label': options.caption, 'tabindex': 0 },
        sheet,
      ),
      state.foot,
    ),
    set,
  };
}

function heading<T>(state: State<T>, column: Column<T>, index: number): HTMLElement {
  const sort = () => {
    const same = state.sort?.column === index;
    state.sort = {
      column: index,
      descending: same ? !state.sort?.descending : Boolean(column.numeric),
    };
    draw(state);
    announce(`sorted by ${column.title}, ${state.sort.descending ? 'descending' : 'ascending'}`);
  };
  return h(
    'th',
    { scope: 'col', class: column.numeric ? 'numeric' : '', title: column.hint },
    button(column.title, sort, { class: 'sort' }),
  );
}

function filterField<T>(state: State<T>): HTMLInputElement {
  return h('input', {
    'type': 'search',
    'class': 'filter',
    'aria-label': `Filter: ${state.options.caption}`,
    'on': {
      input: (event) => {
        state.words = (event.target as HTMLInputElement).value.toLowerCase();
        draw(state);
      },
    },
  });
}

function draw<T>(state: State<T>): void {
  const { options } = state;
  const limit = state.all ? Infinity : (options.limit ?? 100);
  const chosen = sorted(
    state,
    options.rows.filter((row) => matches(state, row)),
  );
  fill(
    state.body,
    chosen.slice(0, limit).map((row) =>
      h(
        'tr',
        { class: options.rowClass?.(row), id: options.rowId?.(row) },
        options.columns.map((column) =>
          h(
            'td',
            { 'class': column.numeric ? 'numeric' : '', 'data-title': column.title },
            column.cell ? column.cell(row) : text(column.value(row)),
          ),
        ),
      ),
    ),
  );
  state.heads.forEach((head, index) => {
    const order =
      state.sort?.column === index ? (state.sort.descending ? 'descending' : 'ascending') : 'none';
    head.setAttribute('aria-sort', order);
  });
  showRest(state, chosen.length, limit);
}

function showRest<T>(state: State<T>, found: number, limit: number): void {
  const showAll = () => {
    state.all = true;
    draw(state);
  };
  if (found > limit) {
    fill(
      state.foot,
      `${grouped(limit)} of ${grouped(found)} rows are shown. `,
      button('Show all', showAll, { class: 'plain' }),
    );
  } else if (state.words) {
    fill(
      state.foot,
      found
        ? `${grouped(found)} of ${grouped(state.options.rows.length)} rows match.`
        : 'No row matches.',
    );
  } else {
    fill(state.foot);
  }
}

function matches<T>(state: State<T>, row: T): boolean {
  if (!state.words) return true;
  const all = state.options.columns
    .map((column) => text(column.value(row)))
    .join(' ')
    .toLowerCase();
  return state.words.split(/\s+/).every((word) => all.includes(word));
}

function sorted<T>(state: State<T>, rows: T[]): T[] {
  const { sort } = state;
  if (!sort) return rows;
  const { value } = state.options.columns[sort.column];
  const sign = sort.descending ? -1 : 1;
  return [...rows].sort((a, b) => compare(value(a), value(b), sign));
}

/** Rows without a value come last in either order. */
function compare(a: Value, b: Value, sign: number): number {
  const empty = (value: Value) => Number(value === null || value === undefined);
  if (empty(a) || empty(b)) return empty(a) - empty(b);
  if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
  return sign * text(a).localeCompare(text(b), 'en', { numeric: true });
}

function text(value: Value): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'number' ? grouped(value) : String(value);
}
