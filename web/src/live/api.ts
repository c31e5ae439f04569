/** The HTTP interface of `windtunnel web`. */
import type { Document } from '../document/types';

export interface RunEntry {
  id: string;
  name: string;
  elapsed_ns: number;
  folder: string;
  alive: boolean;
}

export interface CommandResult {
  exit: number;
  stdout: string;
  stderr: string;
}

/** An answer that is an error, with what can be done about it. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly hint?: string,
    readonly body?: unknown,
  ) {
    super(message);
  }
}

export class Api {
  constructor(private readonly token: string) {}

  runs(): Promise<RunEntry[]> {
    return this.json<RunEntry[]>('GET', '/api/runs');
  }

  document(id: string): Promise<Document> {
    return this.json<Document>('GET', `/api/runs/${encodeURIComponent(id)}/document`);
  }

  command(id: string, argv: string[]): Promise<CommandResult> {
    return this.json<CommandResult>('POST', `/api/runs/${encodeURIComponent(id)}/command`, {
      argv,
    });
  }

  /** Events of a run after a time. */
  stream(id: string, afterNs: number): EventSource {
    return new EventSource(
      `/api/runs/${encodeURIComponent(id)}/stream?after=${Math.floor(afterNs)}&token=${encodeURIComponent(this.token)}`,
    );
  }

  fileStream(): EventSource {
    return new EventSource(`/api/file/stream?token=${encodeURIComponent(this.token)}`);
  }

  /** Runs a shell command in a node; its output comes in pieces. */
  async exec(
    id: string,
    node: string,
    command: string,
    output: (text: string) => void,
  ): Promise<void> {
    const answer = await this.fetch('POST', `/api/runs/${encodeURIComponent(id)}/exec`, {
      node,
      command,
    });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) return;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      output(value);
    }
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.fetch(method, path, body);
    return (await answer.json()) as T;
  }

  private async fetch(method: string, path: string, body?: unknown): Promise<Response> {
    const answer = await fetch(path, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store',
    });
    if (answer.ok) return answer;
    const given = (await answer.json().catch(() => ({}))) as { error?: unknown; hint?: unknown };
    throw new ApiError(
      typeof given.error === 'string' ? given.error : `the server answered ${answer.status}`,
      answer.status,
      typeof given.hint === 'string' ? given.hint : undefined,
      given,
    );
  }
}

/** A failure in words, with its hint. */
export function failureText(cause: unknown): string {
  if (cause instanceof ApiError)
    return cause.hint ? `${cause.message}\nhint: ${cause.hint}` : cause.message;
  if (cause instanceof TypeError)
    return 'windtunnel web does not answer\nhint: see whether it still runs';
  return cause instanceof Error ? cause.message : String(cause);
}
