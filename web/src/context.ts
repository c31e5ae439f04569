/** What sections share: the run, the range of time, and which link is chosen. */
import type { Document } from './document/types';
import type { RunView } from './document/view';
import type { Range, Timeline } from './charts/timeline';

export interface Context {
  document: Document;
  view: RunView;
  timeline: Timeline;
  /** The chosen link; absent: the whole network. */
  chosen: number | undefined;
  /** Chooses a link, or the whole network, for the charts. */
  choose: (link: number | undefined) => void;
  onChoose: (watcher: () => void) => void;
  /** The span that the map's figures are of. */
  span: () => Range;
}

export function context(document: Document, view: RunView, timeline: Timeline): Context {
  const watchers: (() => void)[] = [];
  const made: Context = {
    document,
    view,
    timeline,
    chosen: undefined,
    choose: (link) => {
      made.chosen = link;
      for (const watcher of watchers) watcher();
    },
    onChoose: (watcher) => watchers.push(watcher),
    span: () => timeline.range,
  };
  return made;
}
