/** One node of a live run: its programs, what is done to them, and a shell. */
import { button, fill, h } from '../dom/element';
import { bytes, digits, grouped } from '../format';
import { failureText, type Api } from './api';
import { shellWord, yamlName, type Commands } from './commands';
import type { NodeStatus, ProgramStatus } from './messages';
import type { LiveStore } from './store';

const verbs = [
  { verb: 'kill', label: 'Kill', about: 'SIGKILL to its programs, and no restart' },
  {
    verb: 'restart',
    label: 'Restart',
    about: 'SIGKILL to its programs, which are then started again',
  },
  { verb: 'pause', label: 'Pause', about: 'SIGSTOP to its programs' },
  { verb: 'resume', label: 'Resume', about: 'SIGCONT to its programs' },
];

const outputAtMost = 200_000;

export class NodePanel {
  readonly element = h('section', {
    'class': 'section side-panel',
    'aria-label': 'Node',
    'tabindex': -1,
    'hidden': true,
  });
  private node = '';
  private readonly about = h('p', { class: 'hint' });
  private readonly programs = h('ul', { class: 'node-programs' });
  private readonly screen = h('pre', {
    'class': 'screen',
    'tabindex': 0,
    'role': 'log',
    'aria-label': 'Output of shell commands',
  });
  private readonly command = h('input', {
    type: 'text',
    class: 'shell-field',
    spellcheck: 'false',
    autocapitalize: 'off',
    autocomplete: 'off',
  });
  private readonly history: string[] = [];
  private back = 0;
  private shown = '';

  constructor(
    private readonly store: LiveStore,
    private readonly commands: Commands,
    private readonly api: Api,
    private readonly run: string,
    private readonly close: () => void,
  ) {
    this.command.addEventListener('keydown', (event) => {
      this.key(event);
    });
  }

  show(node: string): void {
    this.node = node;
    this.shown = '';
    this.command.placeholder = 'ss -tn';
    this.command.setAttribute('aria-label', `Shell command in ${node}`);
    fill(this.screen);
    fill(
      this.element,
      h(
        'div',
        { class: 'panel-head' },
        h('h2', null, `Node ${node}`),
        button('Close', this.close, { class: 'plain' }),
      ),
      this.about,
      this.programs,
      h(
        'div',
        { class: 'buttons' },
        verbs.map(({ verb, label, about }) =>
          button(
            label,
            () => {
              void this.commands.perform(['do', `{node: ${yamlName(this.node)}, do: ${verb}}`]);
            },
            { title: about, class: verb === 'kill' ? 'danger' : '' },
          ),
        ),
      ),
      h(
        'div',
        { class: 'shell' },
        h('h3', null, 'Shell'),
        h(
          'div',
          { class: 'shell-line' },
          h('span', { 'aria-hidden': 'true' }, '$'),
          this.command,
          button('Run', () => {
            void this.exec();
          }),
        ),
        this.screen,
      ),
    );
    this.element.hidden = false;
    this.refresh();
  }

  hide(): void {
    this.element.hidden = true;
    this.node = '';
  }

  /** Shows the newest state; nothing is changed where it is the same. */
  refresh(): void {
    const status = this.store.status?.nodes.find((one) => one.node === this.node);
    if (!this.node || !status) return;
    const text = JSON.stringify(status);
    if (text === this.shown) return;
    this.shown = text;
    fill(
      this.about,
      [...status.addresses, status.absent ? 'absent' : '', limits(status)]
        .filter(Boolean)
        .join(' · '),
    );
    fill(
      this.programs,
      status.programs.length
        ? status.programs.map(program)
        : h('li', { class: 'absent' }, 'no programs'),
    );
  }

  private key(event: KeyboardEvent): void {
    if (event.key === 'Enter') void this.exec();
    else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      this.back = Math.min(
        this.history.length,
        Math.max(0, this.back + (event.key === 'ArrowUp' ? 1 : -1)),
      );
      this.command.value = this.back ? this.history[this.history.length - this.back] : '';
    } else return;
    event.preventDefault();
  }

  private async exec(): Promise<void> {
    const command = this.command.value.trim();
    if (!command) return;
    this.history.push(command);
    this.back = 0;
    this.command.value = '';
    const entry = this.commands.add(
      `windtunnel exec ${shellWord(this.node)} -- sh -c ${shellWord(command)}`,
    );
    this.print(`$ ${command}\n`);
    let last = '';
    try {
      await this.api.exec(this.run, this.node, command, (text) => {
        last = (last + text).slice(-64);
        this.print(text);
      });
      const exit = /\[exit (\d+)\]\s*$/.exec(last)?.[1];
      this.commands.finish(entry, exit === '0', exit === '0' ? '' : `exit ${exit ?? 'unknown'}`);
    } catch (cause) {
      this.print(`${failureText(cause)}\n`);
      this.commands.finish(entry, false, failureText(cause));
    }
  }

  private print(text: string): void {
    this.screen.append(text);
    while (this.screen.textContent.length > outputAtMost && this.screen.firstChild)
      this.screen.firstChild.remove();
    this.screen.scrollTop = this.screen.scrollHeight;
  }
}

function program(one: ProgramStatus): HTMLElement {
  const bad = one.state === 'failed' || (one.state === 'exited' && one.exit !== 0);
  return h(
    'li',
    null,
    h(
      'span',
      { class: bad ? 'state no' : `state ${one.state}` },
      one.exit === undefined ? one.state : `${one.state} ${one.exit}`,
    ),
    h('code', null, one.argv.map(shellWord).join(' ')),
    one.pid === undefined ? null : h('span', { class: 'hint' }, `pid ${one.pid}`),
  );
}

function limits(status: NodeStatus): string {
  const given = status.limits || {};
  const parts = [
    'cpu_millis' in given
      ? `cpu ${digits((given.cpu_used_millis || 0) / 1000)} of ${digits(given.cpu_millis / 1000)}`
      : '',
    'memory' in given ? `memory ${bytes(given.memory_used || 0)} of ${bytes(given.memory)}` : '',
    'pids' in given ? `processes ${grouped(given.pids_used || 0)} of ${grouped(given.pids)}` : '',
    'disk' in given ? `disk ${bytes(given.disk_used || 0)}/s of ${bytes(given.disk)}/s` : '',
  ];
  return parts.filter(Boolean).join(', ');
}

/** What a node looks like on the map. */
export function nodeState(status: NodeStatus): string {
  if (status.absent) return 'absent';
  const states = status.programs.map((one) => one.state);
  if (
    status.programs.some(
      (one) => one.state === 'failed' || (one.state === 'exited' && one.exit !== 0),
    )
  )
    return 'failed';
  if (states.includes('paused')) return 'paused';
  return states.some((state) => state === 'running' || state === 'ready') ? 'running' : '';
}
