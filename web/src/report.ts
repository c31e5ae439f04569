/** Report mode: the sections of one run, or of several over each other. */
import type { Document } from './document/types';
import { RunView } from './document/view';
import { context } from './context';
import { Timeline } from './charts/timeline';
import type { Section } from './dom/section';
import { comparedRuns, comparison } from './sections/comparison';
import { distributions } from './sections/distributions';
import { events } from './sections/events';
import { expectations } from './sections/expectations';
import { flows } from './sections/flows';
import { limits } from './sections/limits';
import { links } from './sections/links';
import { modulation } from './sections/modulation';
import { overlay } from './sections/overlay';
import { programs } from './sections/programs';
import { requests } from './sections/requests';
import { services } from './sections/services';
import { timelines } from './sections/timelines';
import { topology } from './sections/topology';
import { verdict } from './sections/verdict';

export function report(document: Document): Section[] {
  const views = document.runs.map((run) => new RunView(run));
  if (!views.length) throw new Error('the report has no run');
  return views.length > 1 ? several(document, views) : single(document, views[0]);
}

function single(document: Document, view: RunView): Section[] {
  const timeline = new Timeline(view.endS);
  timeline.marks = view.run.events;
  if (view.run.events.filter((mark) => mark.kind === 'late').length > 100)
    timeline.hidden.add('late');
  const shared = context(document, view, timeline);
  const { run } = view;
  return there([
    verdict(document, view),
    topology(shared),
    timelines(shared),
    events(shared),
    expectations(run),
    links(shared),
    distributions(view),
    programs(run),
    services(shared),
    limits(shared),
    flows(run),
    requests(run),
    modulation(run),
  ]);
}

function several(document: Document, views: RunView[]): Section[] {
  const timeline = new Timeline(Math.max(...views.map((view) => view.endS)));
  const shared = context(document, views[0], timeline);
  return there([
    comparedRuns(document),
    comparison(document),
    overlay(document, views, shared),
    topology(shared),
  ]);
}

function there(all: (Section | null)[]): Section[] {
  return all.filter((one): one is Section => one !== null);
}
