/** Programs with how they ended and what they wrote. */
import type { Output, ProgramResult, Run } from '../document/types';
import { h, type Child } from '../dom/element';
import { absent, section, type Section } from '../dom/section';
import { bytes, grouped, ns } from '../format';

interface Entry {
  node: string;
  program?: number;
  result?: ProgramResult;
  outputs: Output[];
}

export function programs(run: Run): Section {
  const entries = gather(run);
  if (!entries.length) return section('programs', 'Programs', absent('The run has no programs.'));
  const open = entries.length <= 4;
  return section(
    'programs',
    'Programs',
    h(
      'div',
      { class: 'programs' },
      entries.map((entry) => program(entry, open)),
    ),
  );
}

/** Each program with its output; output of commands that were run from outside has no program. */
function gather(run: Run): Entry[] {
  const entries: Entry[] = (run.summary?.programs || []).map((result) => ({
    node: result.node,
    program: result.program,
    result,
    outputs: [],
  }));
  for (const output of run.outputs) {
    let entry = entries.find((one) => one.node === output.node && one.program === output.program);
    if (!entry) {
      entry = { node: output.node, program: output.program, outputs: [] };
      entries.push(entry);
    }
    entry.outputs.push(output);
  }
  return entries;
}

function program(entry: Entry, open: boolean): HTMLElement {
  const { result } = entry;
  const failed = Boolean(result?.failed);
  return h(
    'details',
    {
      'class': failed ? 'program failed' : 'program',
      'open': open || failed,
      'data-node': entry.node,
      'tabindex': -1,
    },
    h(
      'summary',
      null,
      h('span', { class: 'program-node' }, entry.node),
      h('code', { class: 'program-words' }, result ? result.argv.map(quoted).join(' ') : 'output'),
      h('span', { class: `exit ${failed ? 'bad' : ''}` }, ending(result)),
    ),
    result ? h('p', { class: 'hint' }, lifetime(result)) : null,
    entry.outputs.length ? entry.outputs.map(output) : absent('It wrote nothing.'),
  );
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

function ending(result: ProgramResult | undefined): string {
  if (!result) return '';
  const words =
    result.ended ||
    (result.exit === undefined ? 'ran until the end' : `exited with ${result.exit}`);
  return result.failed ? `✕ failed: ${words}` : words;
}

function lifetime(result: ProgramResult): string {
  const parts = [
    result.daemon ? 'daemon' : null,
    result.started_ns === undefined ? 'never started' : `started at ${ns(result.started_ns)}`,
    result.ready_ns === undefined ? null : `ready at ${ns(result.ready_ns)}`,
    result.exited_ns === undefined ? null : `exited at ${ns(result.exited_ns)}`,
    (result.starts || 0) > 1 ? `${grouped(result.starts)} starts` : null,
    result.output_discarded_bytes
      ? `${bytes(result.output_discarded_bytes)} of output were not kept`
      : null,
  ];
  return parts.filter(Boolean).join(' · ');
}

function output(one: Output): Child {
  if (!one.bytes && !one.head) return null;
  const label = `${one.stream} of ${one.node}, ${bytes(one.bytes)}`;
  const cut = one.tail === undefined ? 0 : one.bytes - one.head.length - one.tail.length;
  return h(
    'figure',
    { class: `output ${one.stream}` },
    h('figcaption', null, `${one.stream} · ${bytes(one.bytes)}`),
    h(
      'pre',
      { 'tabindex': 0, 'role': 'region', 'aria-label': label },
      one.head,
      one.tail === undefined
        ? null
        : h(
            'span',
            { class: 'cut' },
            `\n… about ${bytes(Math.max(0, cut))} are left out here: the run folder has all …\n`,
          ),
      one.tail,
    ),
  );
}
