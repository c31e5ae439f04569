// A server that speaks the HTTP interface of `windtunnel web` and `windtunnel edit`, as far as the page asks.
import { createServer } from 'node:http';
import { withElement } from './pages.mjs';

export const token = 'secret-token';

/** Starts it on loopback. `state` is what it answers with; `calls` is what was asked of it. */
export async function serve(state) {
  const streams = new Set();
  const server = createServer((request, response) => {
    answer(request, response, state, streams).catch((error) => {
      response.writeHead(500).end(JSON.stringify({ error: String(error) }));
    });
  });
  await new Promise((done) => {
    server.listen(state.port || 0, '127.0.0.1', done);
  });
  const { port } = server.address();
  return {
    port,
    address: `http://127.0.0.1:${port}/?token=${token}`,
    streams,
    /** Sends an event to every page. */
    push(name, data) {
      for (const stream of streams)
        stream.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    /** Cuts all streams, as when the connection is lost. */
    cut() {
      for (const stream of streams) stream.destroy();
    },
    close: () =>
      new Promise((done) => {
        for (const stream of streams) stream.destroy();
        server.closeAllConnections();
        server.close(done);
      }),
  };
}

async function answer(request, response, state, streams) {
  const url = new URL(request.url, 'http://127.0.0.1');
  const body = await text(request);
  const json = (value, status = 200) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  };
  if (url.pathname === '/') {
    const kind = state.file ? 'edit' : 'live';
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
    response.end(
      await withElement(
        `<script type="application/json" id="windtunnel-${kind}">${JSON.stringify({ token })}</script>`,
      ),
    );
    return;
  }
  const allowed =
    request.headers.authorization === `Bearer ${token}` || url.searchParams.get('token') === token;
  if (!allowed) return json({ error: 'the token is wrong' }, 401);
  if (url.pathname.endsWith('/stream')) return stream(request, response, state, streams);
  state.calls.push({
    method: request.method,
    path: url.pathname,
    ...(body ? { body: JSON.parse(body) } : {}),
  });
  if (url.pathname === '/api/runs') return json(state.runs);
  if (url.pathname.endsWith('/document')) return json(state.document);
  if (url.pathname.endsWith('/command')) return json(state.command(JSON.parse(body).argv));
  if (url.pathname.endsWith('/exec')) return pieces(response, state.exec);
  const [status, value] = state.file
    ? state.file(request.method, url.pathname, body ? JSON.parse(body) : undefined)
    : [404, { error: 'not there' }];
  return json(value, status);
}

function stream(request, response, state, streams) {
  if (state.refuse) {
    response.writeHead(503).end();
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write('retry: 100\n\n');
  streams.add(response);
  request.on('close', () => {
    streams.delete(response);
  });
  for (const [name, data] of state.first || [])
    response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

function pieces(response, lines) {
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
  for (const line of lines) response.write(line);
  response.end();
}

async function text(request) {
  let all = '';
  for await (const piece of request) all += piece;
  return all;
}

/** A live run made of a report: its series end at a time, what comes later is for the stream. */
export function alive(document, bins) {
  const live = structuredClone(document);
  live.mode = 'live';
  const [run] = live.runs;
  delete run.summary;
  run.series.lanes = run.series.lanes.map(
    (lane) =>
      lane &&
      Object.fromEntries(
        Object.entries(lane)
          .filter(([, column]) => column)
          .map(([name, column]) =>
            name === 'dropped'
              ? [
                  name,
                  Object.fromEntries(
                    Object.entries(column).map(([reason, values]) => [
                      reason,
                      values.slice(0, bins),
                    ]),
                  ),
                ]
              : [name, column.slice(0, bins)],
          ),
      ),
  );
  run.series.bins = bins;
  run.elapsed_ns = bins * run.series.step_ns;
  run.events = run.events.filter((mark) => mark.at_ns < run.elapsed_ns);
  return live;
}

/** The sample after a time, in which every lane does something. */
export function sample(lanes, atNs, dice) {
  return {
    at_ns: atNs,
    window_ns: 100_000_000,
    lanes: Array.from({ length: lanes }, (_, k) => {
      const offered = Math.round(1e5 * (0.2 + dice()));
      return [
        k,
        offered,
        offered,
        offered,
        Math.round(offered / 1500),
        dice() < 0.05 ? 2 : 0,
        3,
        Math.round(dice() * 40),
        Math.round(dice() * 60_000),
        Math.round(5e4 * (1 + dice())),
      ];
    }),
  };
}

/** What the run is asked to be like, and what its nodes do. */
export function properties(run, change = {}) {
  return run.lanes.map((lane) => ({
    link: lane.link,
    direction: lane.direction,
    state: change.state?.[lane.link] || 'up',
    properties: {
      latency: '20ms',
      jitter: { spread: '0ns', distribution: 'uniform' },
      loss: 'none',
      rate: '10mbit',
      ...change[lane.link],
    },
    changed_from: change[lane.link] ? { latency: '20ms' } : {},
  }));
}

export function status(run, states = {}) {
  return {
    name: 'five',
    elapsed_ns: run.elapsed_ns,
    nodes: run.map.vertices
      .filter((vertex) => vertex.kind === 'node')
      .map((vertex) => ({
        node: vertex.name,
        addresses: vertex.addresses,
        init_pid: 4000,
        programs: [
          { argv: ['python3', 'app.py'], state: states[vertex.name] || 'running', pid: 2 },
        ],
      })),
    services: [
      {
        service: 'kv',
        policy: 'nearest',
        addresses: ['10.0.0.17'],
        ports: ['6379/tcp'],
        replicas: [
          {
            replica: 'web',
            state: 'registered',
            live_connections: 4,
            live_flows: 0,
            connections: 90,
          },
        ],
      },
    ],
  };
}
