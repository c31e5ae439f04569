/** A run while it goes: map and time lines that move, and what can be done to it. */
import type { Document, Mark } from '../document/types';
import { context, type Context } from '../context';
import { Timeline } from '../charts/timeline';
import { button, fill, h } from '../dom/element';
import type { Section } from '../dom/section';
import { ns } from '../format';
import { events } from '../sections/events';
import { timelines, type Timelines } from '../sections/timelines';
import { topology, type Topology } from '../sections/topology';
import type { Api } from './api';
import { Commands } from './commands';
import { Follow } from './follow';
import { Frames } from './frames';
import { LinkPanel } from './link-panel';
import type { LaneProperties, OutputLine, Sample, Status } from './messages';
import { NodePanel, nodeState } from './node-panel';
import { OutputPanel } from './output';
import { ServicesPanel } from './services';
import { LiveStore } from './store';
import { Stream } from './stream';

export interface LiveActions {
  /** The run has ended: its last document. */
  ended: (document: Document) => void;
  /** Messages were missed. */
  reload: () => void;
}

export class LiveRun {
  readonly sections: Section[];
  readonly clock = h('output', { class: 'live-clock' });
  readonly connection = h('span', { class: 'connection', role: 'status' });
  private readonly store: LiveStore;
  private readonly frames = new Frames();
  private readonly timeline: Timeline;
  private readonly follow: Follow;
  private readonly shared: Context;
  private readonly lines: Timelines;
  private readonly plan: Topology;
  private readonly commands: Commands;
  private readonly linkPanel: LinkPanel;
  private readonly nodePanel: NodePanel;
  private readonly output = new OutputPanel();
  private readonly services: ServicesPanel;
  private readonly stream: Stream;

  constructor(
    document: Document,
    private readonly api: Api,
    private readonly actions: LiveActions,
  ) {
    const [run] = document.runs;
    this.store = new LiveStore(run);
    this.timeline = new Timeline(Math.max(1, run.elapsed_ns / 1e9));
    this.timeline.lazy = true;
    this.timeline.marks = run.events;
    this.follow = new Follow(this.timeline);
    this.shared = context(document, this.store.view, this.timeline);
    this.shared.span = () => this.follow.span();
    this.commands = new Commands(api, run.id);
    this.services = new ServicesPanel(this.commands);
    const close = () => {
      this.closePanels();
    };
    this.linkPanel = new LinkPanel(this.store, this.commands, close);
    this.nodePanel = new NodePanel(this.store, this.commands, api, run.id, close);
    this.plan = topology(this.shared, {
      link: (index) => {
        this.openLink(index);
      },
      vertex: (index) => {
        this.openNode(index);
      },
      hint: 'A press on a link or node opens its controls. Colours are of the last second.',
      down: (link) => this.store.isDown(link),
    });
    this.lines = timelines(this.shared);
    this.lines.element.querySelector('.toolbar')?.prepend(this.follow.element);
    this.plan.element.append(
      h('div', { class: 'side' }, this.linkPanel.element, this.nodePanel.element),
    );
    this.sections = [
      this.plan,
      this.lines,
      this.commands.section,
      this.services.section,
      this.output.section,
      events(this.shared, true),
    ];
    this.draw();
    this.stream = this.listen(run.id);
  }

  stop(): void {
    this.stream.close();
    this.frames.stop();
  }

  private draw(): void {
    const { frames } = this;
    frames.part('series', () => {
      this.follow.now(this.store.elapsedNs / 1e9);
      this.lines.update(false);
      this.plan.paint();
      this.clock.textContent = ns(this.store.elapsedNs);
    });
    frames.part('marks', () => {
      this.timeline.marksChanged();
    });
    frames.part('output', () => {
      this.output.draw();
    });
    frames.part('links', () => {
      this.linkPanel.refresh();
      this.plan.paint();
    });
    frames.part('status', () => {
      this.nodePanel.refresh();
      this.services.draw(this.store.status?.services || []);
      this.markNodes();
    });
    for (const { node, program, stream, head, tail } of this.store.run.outputs) {
      this.output.add({
        node,
        program,
        stream,
        text: tail === undefined ? head : `${head}\n…\n${tail}`,
      });
    }
    frames.ask('series', 'marks', 'output');
  }

  private listen(id: string): Stream {
    return new Stream(
      () => this.api.stream(id, this.store.sampledNs),
      {
        sample: (data) => {
          this.store.sample(data as Sample);
          this.frames.ask('series');
        },
        event: (data) => {
          this.store.mark(data as Mark);
          this.frames.ask('marks');
        },
        output: (data) => {
          this.output.add(data as OutputLine);
          this.frames.ask('output');
        },
        status: (data) => {
          this.store.status = data as Status;
          this.store.elapsedNs = Math.max(this.store.elapsedNs, this.store.status.elapsed_ns);
          this.frames.ask('status');
        },
        links: (data) => {
          this.store.setLinks((data as { links: LaneProperties[] }).links);
          this.frames.ask('links');
        },
        ended: (data) => {
          this.stop();
          this.actions.ended((data as { document: Document }).document);
        },
        gap: () => {
          this.actions.reload();
        },
      },
      (state) => {
        this.connected(state);
      },
    );
  }

  private connected(state: 'connected' | 'lost'): void {
    this.connection.className = `connection ${state}`;
    if (state === 'connected') fill(this.connection, 'live');
    else
      fill(
        this.connection,
        'connection lost, trying again… ',
        button(
          'Now',
          () => {
            this.stream.retry();
          },
          { class: 'plain' },
        ),
      );
  }

  private markNodes(): void {
    const states = new Map(this.store.status?.nodes.map((node) => [node.node, nodeState(node)]));
    this.store.run.map.vertices.forEach((vertex, index) => {
      this.plan.map.mark(index, states.get(vertex.name) || '');
    });
  }

  private openLink(index: number): void {
    this.nodePanel.hide();
    this.shared.choose(index);
    this.linkPanel.show(this.store.run.map.links[index].name);
    this.linkPanel.element.focus({ preventScroll: true });
  }

  private openNode(index: number): void {
    const vertex = this.store.run.map.vertices[index];
    if (vertex.kind !== 'node') return;
    this.linkPanel.hide();
    this.nodePanel.show(vertex.name);
    this.plan.map.select(undefined, index);
    this.nodePanel.element.focus({ preventScroll: true });
  }

  private closePanels(): void {
    this.linkPanel.hide();
    this.nodePanel.hide();
    this.shared.choose(undefined);
  }
}
