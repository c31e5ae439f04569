/** The map of a scenario that does not run: what the file asks for. */
import type { MapLink, Run } from '../document/types';
import { tooltipRows } from '../charts/tooltip';
import { h } from '../dom/element';
import { TopologyMap } from '../map/map';

export class PlanMap {
  readonly map: TopologyMap;
  private plan: Run['map'] = { vertices: [], links: [] };

  /** `lead` goes to a name in the text. */
  constructor(lead: (name: string) => void) {
    this.map = new TopologyMap({
      link: (index) => {
        const link = this.plan.links[index];
        lead(link.name.includes('--') ? this.plan.vertices[link.ends[0]].name : link.name);
      },
      vertex: (index) => {
        lead(this.plan.vertices[index].name);
      },
      linkTip: (index) => this.linkTip(this.plan.links[index]),
      vertexTip: (index) => {
        const vertex = this.plan.vertices[index];
        return [
          h('b', null, `${vertex.name} `),
          h('span', null, vertex.kind),
          h('div', null, vertex.addresses.join(', ')),
          ...(vertex.programs || [])
            .slice(0, 6)
            .map((program) => h('code', { class: 'tip-program' }, program)),
        ];
      },
      linkLabel: (index) =>
        `link ${this.plan.links[index].name}: ${this.plan.links[index].asked.map(asked).join('; ')}`,
    });
  }

  set(plan: Run['map']): void {
    this.plan = plan;
    this.map.set(plan.vertices, plan.links);
    plan.links.forEach((_, index) => {
      this.map.paint(index, ['free', 'free'], false);
    });
    this.map.relabel();
  }

  private linkTip(link: MapLink): Node[] {
    const [a, b] = link.ends.map((end) => this.plan.vertices[end].name);
    return [
      h('b', null, link.name),
      tooltipRows([
        [`${a} → ${b}`, asked(link.asked[0])],
        [`${b} → ${a}`, asked(link.asked[1])],
      ]),
    ];
  }
}

function asked(profile: MapLink['asked'][0]): string {
  const parts = [
    profile.latency,
    profile.rate,
    profile.loss && profile.loss !== 'none' ? `loss ${profile.loss}` : '',
    profile.queue ? `queue ${profile.queue}` : '',
    profile.discipline && profile.discipline !== 'drop-tail' ? profile.discipline : '',
  ];
  return parts.filter(Boolean).join(', ') || 'nothing asked';
}
