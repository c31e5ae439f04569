/** A stream of server-sent events that comes back after the connection was lost. */

const againAfterMs = 1500;

export class Stream {
  private source: EventSource;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  /** `open` makes a source anew where the browser has given up. */
  constructor(
    private readonly open: () => EventSource,
    private readonly handlers: Record<string, (data: unknown) => void>,
    private readonly state: (state: 'connected' | 'lost') => void,
  ) {
    this.source = this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.source.close();
  }

  retry(): void {
    if (this.closed) return;
    clearTimeout(this.timer);
    this.source.close();
    this.source = this.connect();
  }

  private connect(): EventSource {
    const source = this.open();
    source.addEventListener('open', () => {
      this.state('connected');
    });
    source.addEventListener('error', () => {
      if (this.closed) return;
      this.state('lost');
      // The browser tries again by itself, unless the answer was no stream at all.
      if (source.readyState === EventSource.CLOSED)
        this.timer = setTimeout(() => {
          this.retry();
        }, againAfterMs);
    });
    for (const [name, handle] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event: MessageEvent<string>) => {
        handle(JSON.parse(event.data));
      });
    }
    return source;
  }
}
