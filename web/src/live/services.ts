/** Services of a live run with their replicas. */
import { button, fill, h } from '../dom/element';
import { section, type Section } from '../dom/section';
import { table } from '../dom/table';
import type { Commands } from './commands';
import type { ReplicaStatus, ServiceStatus } from './messages';

interface Row {
  service: ServiceStatus;
  replica: ReplicaStatus;
}

export class ServicesPanel {
  readonly section: Section;
  private readonly holder = h('div');
  private shown = '';

  constructor(private readonly commands: Commands) {
    this.section = section('services', 'Services', this.holder);
    this.section.element.hidden = true;
  }

  draw(services: ServiceStatus[]): void {
    const text = JSON.stringify(services);
    if (text === this.shown) return;
    this.shown = text;
    this.section.element.hidden = services.length === 0;
    const rows = services.flatMap((service) =>
      (service.replicas || []).map((replica): Row => ({ service, replica })),
    );
    fill(
      this.holder,
      table<Row>({
        caption: 'Services and their replicas',
        rows,
        columns: [
          { title: 'Service', value: ({ service }) => service.service },
          { title: 'Policy', value: ({ service }) => service.policy },
          { title: 'Replica', value: ({ replica }) => replica.replica },
          {
            title: 'State',
            value: ({ replica }) => replica.state,
            cell: ({ replica }) =>
              h('span', { class: replica.state === 'lost' ? 'no' : '' }, replica.state),
          },
          {
            title: 'Live connections',
            numeric: true,
            value: ({ replica }) => replica.live_connections,
          },
          { title: 'Live UDP flows', numeric: true, value: ({ replica }) => replica.live_flows },
          { title: 'Connections', numeric: true, value: ({ replica }) => replica.connections },
          { title: '', value: () => '', cell: (row) => this.drain(row) },
        ],
      }),
    );
  }

  private drain({ service, replica }: Row): HTMLElement | string {
    if (replica.state !== 'registered') return '';
    return button(
      'Drain',
      () => {
        void this.commands.perform(['service', 'drain', service.service, replica.replica]);
      },
      {
        'title': 'Give it no new connections',
        'aria-label': `Drain ${replica.replica} of ${service.service}`,
      },
    );
  }
}
