/** Which part of a live run is shown: the last minute, all of it, or a part that was chosen. */
import { h } from '../dom/element';
import { choices } from '../dom/section';
import type { Range, Timeline } from '../charts/timeline';

export type Mode = 'window' | 'whole' | 'paused';

const windowS = 60;
/** What the map's colours are of. */
const presentS = 1;

export class Follow {
  readonly element = h('span', { class: 'follow' });
  mode: Mode = 'window';
  private nowS = 0;

  constructor(private readonly timeline: Timeline) {
    timeline.touched = (whole) => {
      this.set(whole ? 'whole' : 'paused');
    };
    this.draw();
  }

  /** The run has come so far. */
  now(seconds: number): void {
    this.nowS = Math.max(1, seconds);
    this.apply();
  }

  /** What the map shows: the present, or the part that was chosen. */
  span(): Range {
    return this.mode === 'paused'
      ? this.timeline.range
      : [Math.max(0, this.nowS - presentS), this.nowS];
  }

  private set(mode: Mode): void {
    if (mode === this.mode) return;
    this.mode = mode;
    this.draw();
    this.apply();
  }

  private apply(): void {
    const full: Range = [0, this.nowS];
    const range: Range =
      this.mode === 'paused'
        ? this.timeline.range
        : this.mode === 'whole'
          ? full
          : [
              Math.max(0, this.nowS - windowS),
              Math.max(this.nowS, Math.min(windowS, this.nowS + 1)),
            ];
    this.timeline.extend(full, range);
  }

  private draw(): void {
    this.element.replaceChildren(
      choices<Mode>(
        'Time that is shown',
        [
          { value: 'window', label: 'Last 60 s' },
          { value: 'whole', label: 'Whole run' },
          { value: 'paused', label: 'Paused' },
        ],
        this.mode,
        (mode) => {
          this.set(mode);
        },
      ),
    );
  }
}
