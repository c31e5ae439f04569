/** The list of events. One leads to its time in the charts. */
import type { Context } from '../context';
import type { Mark } from '../document/types';
import { button, h } from '../dom/element';
import { goTo, section, type Section } from '../dom/section';
import { changingTable } from '../dom/table';
import { at, ns } from '../format';

export function events(context: Context, newestFirst = false): Section {
  const { element, set } = changingTable<Mark>({
    caption: 'Events of the run, of the kinds that are marked',
    filter: true,
    limit: 50,
    rows: context.timeline.visibleMarks(),
    sort: newestFirst ? { column: 0, descending: true } : undefined,
    columns: [
      {
        title: 'Time',
        numeric: true,
        value: (mark) => mark.at_ns,
        cell: (mark) => leader(context, mark),
      },
      {
        title: 'Kind',
        value: (mark) => mark.kind,
        cell: (mark) =>
          h(
            'span',
            { class: `kind-name mark-${mark.kind}` },
            h('i', { 'class': 'flag', 'aria-hidden': 'true' }),
            mark.kind,
          ),
      },
      { title: 'Event', value: (mark) => mark.text },
      {
        title: 'After its time',
        numeric: true,
        hint: 'How long after the time that was asked for',
        value: (mark) => delay(mark),
        cell: (mark) => (delay(mark) === undefined ? '' : ns(delay(mark))),
      },
    ],
  });
  context.timeline.onMarks(() => {
    set(context.timeline.visibleMarks());
  });
  return section('events', 'Events', element);
}

function delay(mark: Mark): number | undefined {
  return mark.intended_ns === undefined ? undefined : mark.at_ns - mark.intended_ns;
}

/** Shows the surroundings of an event, and the link that it is about. */
function leader(context: Context, mark: Mark): HTMLElement {
  return button(
    at(mark.at_ns),
    () => {
      const link = context.view.run.map.links.findIndex((one) => mark.links.includes(one.name));
      if (link >= 0 && context.chosen !== link) context.choose(link);
      const seconds = mark.at_ns / 1e9;
      const half = Math.max(
        context.view.stepS * 10,
        (context.timeline.full[1] - context.timeline.full[0]) / 20,
      );
      context.timeline.show(seconds - half, seconds + half);
      const target = document.getElementById('timelines');
      if (target) goTo(target);
    },
    { class: 'plain' },
  );
}
