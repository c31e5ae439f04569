/** One drawing for each frame of the screen, of what has changed since the last one. */

export interface FrameTimes {
  /** Milliseconds from frame to frame, newest last. */
  intervals: number[];
  /** Milliseconds of the page's own work in frames that drew something. */
  work: number[];
}

declare global {
  interface Window {
    windtunnelFrameTimes?: FrameTimes;
  }
}

const kept = 1200;

export class Frames {
  private readonly dirty = new Set<string>();
  private readonly parts = new Map<string, () => void>();
  private readonly times: FrameTimes = { intervals: [], work: [] };
  private last: number | undefined;
  private stopped = false;

  constructor() {
    window.windtunnelFrameTimes = this.times;
    requestAnimationFrame((now) => {
      this.frame(now);
    });
  }

  /** Something that is drawn when it is asked for. */
  part(name: string, draw: () => void): void {
    this.parts.set(name, draw);
  }

  ask(...names: string[]): void {
    for (const name of names) this.dirty.add(name);
  }

  stop(): void {
    this.stopped = true;
  }

  private frame(now: number): void {
    if (this.stopped) return;
    if (this.last !== undefined) note(this.times.intervals, now - this.last);
    this.last = now;
    if (this.dirty.size) {
      const names = [...this.dirty];
      this.dirty.clear();
      const began = performance.now();
      for (const name of names) this.parts.get(name)?.();
      note(this.times.work, performance.now() - began);
    }
    requestAnimationFrame((next) => {
      this.frame(next);
    });
  }
}

function note(into: number[], value: number): void {
  into.push(value);
  if (into.length > kept) into.shift();
}
