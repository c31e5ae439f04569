/** The head of a report: may the run be believed, did it do what was asked, and what run it was. */
import type { Document, Run, Summary } from '../document/types';
import { BY_MACHINE, drops, type Drops } from '../document/drops';
import type { RunView } from '../document/view';
import { bytes, grouped, moment, ns, percent, plural } from '../format';
import { h, type Child } from '../dom/element';
import { facts, section, type Section } from '../dom/section';

export function verdict(document: Document, view: RunView): Section {
  const { run } = view;
  const summary = run.summary;
  const made = section(
    'verdict',
    'Verdict',
    h(
      'div',
      { class: 'verdict-head' },
      h('h1', null, summary?.name || run.label),
      h('div', { class: 'badges' }, badges(run)),
    ),
    tiles(view),
    h('div', { class: 'reasons' }, reasons(run)),
    summary
      ? origin(document, run, summary)
      : facts([
          ['Folder', h('code', null, run.folder)],
          ['Ran for', ns(run.elapsed_ns)],
        ]),
  );
  made.element.classList.add('verdict');
  return made;
}

/** The two judgements as words with a sign: colour alone says nothing. */
export function badges(run: Run): HTMLElement[] {
  const given = run.summary?.verdict;
  if (!given)
    return [h('span', { class: 'badge unknown' }, run.incomplete ? 'INCOMPLETE' : 'RUNNING')];
  return [
    badge(given.faithful, 'FAITHFUL', 'NOT FAITHFUL'),
    badge(given.passed, 'PASSED', 'FAILED'),
  ];
}

function badge(good: boolean, yes: string, no: string): HTMLElement {
  return h(
    'span',
    { class: `badge ${good ? 'good' : 'bad'}` },
    h('span', { 'aria-hidden': 'true' }, good ? '✓ ' : '✕ '),
    good ? yes : no,
  );
}

function reasons(run: Run): Child[] {
  const given = run.summary?.verdict;
  return [
    run.incomplete ? list('bad', 'The run has no summary', [run.incomplete]) : null,
    list('bad', 'Why it is not faithful', given?.unfaithful),
    list('bad', 'What failed', given?.failures),
    list('warn', 'Warnings', given?.warnings),
    list('warn', 'Incomplete evidence', given?.incomplete),
    list(
      'warn',
      'Lost machines',
      run.summary?.lost?.map(
        (host) => `${host.host} with ${plural(host.nodes, 'node')}: ${host.why}`,
      ),
    ),
    list(
      'note',
      'Attempts before',
      run.summary?.attempts?.map((a) => `${a.folder}: ${a.verdict}`),
    ),
    list('note', 'Notes of this report', run.notes),
  ];
}

function list(kind: string, title: string, texts: string[] | undefined): HTMLElement | null {
  if (!texts?.length) return null;
  return h(
    'div',
    { class: `reason ${kind}` },
    h('h3', null, title),
    h(
      'ul',
      null,
      texts.map((text) => h('li', null, text)),
    ),
  );
}

function tiles(view: RunView): HTMLElement {
  const { summary, elapsed_ns: elapsed } = view.run;
  const expectations = summary?.expectations || [];
  const programs = summary?.programs || [];
  const met = expectations.filter((one) => one.met).length;
  const failed = programs.filter((one) => one.failed).length;
  const links = summary?.links || [];
  const dropped = summary ? drops(summary) : [];
  const offered = links.reduce((all, one) => all + one.offered_packets, 0);
  return h(
    'div',
    { class: 'tiles' },
    tile('Ran for', ns(elapsed), summary ? summary.ended : ''),
    expectations.length
      ? tile('Expectations', `${met} of ${expectations.length}`, 'met', met < expectations.length)
      : null,
    programs.length
      ? tile(
          'Programs',
          grouped(programs.length),
          failed ? `${failed} failed` : 'none failed',
          failed > 0,
        )
      : null,
    tile(
      'Network',
      plural(view.run.map.links.length, 'link'),
      plural(view.run.map.vertices.filter((v) => v.kind === 'node').length, 'node'),
    ),
    links.length
      ? tile(
          'Delivered',
          bytes(links.reduce((all, one) => all + one.delivered_bytes, 0)),
          'summed over link directions',
        )
      : null,
    links.length ? droppedTile(dropped, offered) : null,
    summary?.lateness
      ? tile('Lateness', ns(summary.lateness.p99_ns), `p99; at most ${ns(summary.lateness.max_ns)}`)
      : null,
  );
}

function droppedTile(places: Drops[], offered: number): HTMLElement {
  const all = places.reduce((before, one) => before + one.packets, 0);
  // What the machine dropped was offered to no link.
  const early = places.find((one) => one.where === BY_MACHINE)?.packets || 0;
  const each = places.map((one) => `${grouped(one.packets)} ${one.where}`).join(', ');
  const onLinksOnly = places.every((one) => one.where === 'on links');
  return tile(
    'Dropped',
    percent(all ? all / (offered + early) : 0),
    onLinksOnly ? plural(all, 'packet') : each,
  );
}

function tile(name: string, value: string, more: string, bad = false): HTMLElement {
  return h(
    'div',
    { class: bad ? 'tile bad' : 'tile' },
    h('span', { class: 'tile-name' }, name),
    h('span', { class: 'tile-value' }, value),
    h('span', { class: 'tile-more' }, more),
  );
}

function origin(document: Document, run: Run, summary: Summary): HTMLElement {
  const machine = summary.machine || {};
  const rows: [string, Child][] = [
    ['Seed', h('code', null, String(summary.seed))],
    [
      'Plan',
      h(
        'code',
        {
          class: 'hash',
          title: 'SHA-256 of the resolved plan: equal hashes mean equal experiments',
        },
        summary.plan_hash,
      ),
    ],
    ['Began', moment(summary.began_unix_s)],
    ['Version', `windtunnel ${summary.windtunnel}`],
    ['Kernel', summary.kernel],
    ['Set-up', summary.setup_ns === undefined ? undefined : ns(summary.setup_ns)],
    ['Folder', h('code', null, run.folder)],
    ['Report by', document.generator],
  ];
  const details: [string, Child][] = [
    ...Object.entries(machine).map(([name, value]): [string, Child] => [
      words(name),
      machineValue(name, value),
    ]),
    ...lateness(summary),
    ...(summary.hosts || []).map((host): [string, Child] => [
      `Machine ${host.host}`,
      `${plural(host.nodes, 'node')}, kernel ${host.kernel}`,
    ]),
  ];
  return h(
    'div',
    null,
    facts(rows),
    details.length
      ? h(
          'details',
          { class: 'more' },
          h('summary', null, 'The machine meanwhile, and lateness of all packets'),
          facts(details),
        )
      : null,
  );
}

function lateness(summary: Summary): [string, Child][] {
  const late = summary.lateness;
  if (!late) return [];
  return [
    ['Packets to nodes', grouped(late.packets)],
    [
      'Lateness',
      `p50 ${ns(late.p50_ns)}, p99 ${ns(late.p99_ns)}, p99.9 ${ns(late.p999_ns)}, largest ${ns(late.max_ns)}`,
    ],
  ];
}

function words(name: string): string {
  const plain = name.replace(/_(ns|percent)$/, '').replace(/_/g, ' ');
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

function machineValue(name: string, value: number | boolean): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (name.endsWith('_ns')) return ns(value);
  return name.endsWith('_percent') ? `${value} %` : grouped(value);
}
