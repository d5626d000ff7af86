// tools/call on one upstream through Callbook and through peers, in one run: time by percentile at 1 and 16 connections,
// and processor time a call of everything that serves it (Callbook with its Postgres). The load and the upstream are
// processes of their own and not counted.
//
//     node bench.mjs            with CALLBOOK, MCP_PROXY and FASTMCP (a Python that has it) in the environment
//
// The crate mcp-proxy speaks MCP to its backend: there the upstream answers as an MCP server with the same bytes.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const BODY = JSON.stringify({ latitude: 37.77, longitude: -122.42, current: { time: '2026-08-01T12:00', temperature_2m: 15.7 } });
const KEY = 'owner-key-of-the-bench';
const UPSTREAM = 7960;
const CALLS = Number(process.env.CALLS ?? 3000);

function upstream() {
  const answer = (request, text) => {
    const { id, method, params } = JSON.parse(text);
    const tool = { name: 'FORECAST', description: 'Current temperature', inputSchema: { type: 'object', properties: { place: { type: 'string' } } } };
    const results = {
      initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'upstream', version: '1' } }),
      'tools/list': () => ({ tools: [tool] }),
      'tools/call': () => ({ content: [{ type: 'text', text: BODY }] }),
    };
    const result = results[method]?.();
    if (result) return { jsonrpc: '2.0', id, result };
    return { jsonrpc: '2.0', id, error: { code: -32601, message: 'method not found' } };
  };
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    const json = (status, body) => response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    if (request.method === 'GET' && request.url.startsWith('/v1/')) json(200, BODY);
    else if (request.method !== 'POST') response.writeHead(405).end();
    else if (JSON.parse(text).id === undefined) response.writeHead(202).end();
    else json(200, JSON.stringify(answer(request, text)));
  });
  server.keepAliveTimeout = 60_000;
  server.listen(UPSTREAM, '127.0.0.1');
}

function stat(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return { parent: Number(fields[1]), ms: (Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14])) * 10 };
  } catch {
    return undefined; // it has ended
  }
}

// Processor time of a process and all below it, and of those whose command names the folder, in milliseconds.
function used(root, folder) {
  const all = new Map();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number)) {
    const told = stat(pid);
    if (told) all.set(pid, told);
  }
  const ours = new Set([root]);
  if (folder) for (const pid of all.keys()) if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(folder)) ours.add(pid);
  for (let grew = true; grew; ) {
    grew = false;
    for (const [pid, { parent }] of all) if (!ours.has(pid) && ours.has(parent)) (ours.add(pid), (grew = true));
  }
  let rest = 0;
  for (const pid of ours) if (pid !== root) rest += all.get(pid)?.ms ?? 0;
  return { own: all.get(root)?.ms ?? 0, rest };
}

function post(agent, url, headers, body) {
  return new Promise((done, failed) => {
    const request = http.request(url, { method: 'POST', agent, headers: { ...headers, 'content-length': Buffer.byteLength(body) } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece) => (text += piece)).on('end', () => done({ status: response.statusCode, headers: response.headers, text }));
    });
    request.on('error', failed).end(body);
  });
}

const message = (text) => JSON.parse(text.split('\n').find((line) => line.startsWith('data:') && line.includes('"id"'))?.slice(5) ?? text);

async function opened(url, key) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' };
  if (key) headers.authorization = `Bearer ${key}`;
  const agent = new http.Agent({ keepAlive: true });
  const ask = async (body) => {
    const answer = await post(agent, url, headers, JSON.stringify({ jsonrpc: '2.0', ...body }));
    return { ...answer, ...(answer.text ? message(answer.text) : {}) };
  };
  const begun = await ask({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } } });
  if (begun.headers['mcp-session-id']) headers['mcp-session-id'] = begun.headers['mcp-session-id'];
  await ask({ method: 'notifications/initialized' });
  const name = (await ask({ id: 2, method: 'tools/list' })).result.tools.map((tool) => tool.name).find((name) => name.endsWith('FORECAST'));
  const body = JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name, arguments: { place: 'sf' } } });
  const first = await post(agent, url, headers, body);
  if (!first.text.includes('15.7') || message(first.text).result?.isError) throw new Error(`${url}: ${first.text}`);
  return { headers, body };
}

async function load(url, { headers, body }, connections, calls) {
  const times = [];
  let left = calls;
  const began = performance.now();
  await Promise.all(Array.from({ length: connections }, async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (left-- > 0) {
      const at = performance.now();
      const { status, text } = await post(agent, url, headers, body);
      if (status !== 200 || !text.includes('15.7')) throw new Error(`${status} ${text}`);
      times.push(performance.now() - at);
    }
    agent.destroy();
  }));
  times.sort((a, b) => a - b);
  const at = (share) => times[Math.floor(times.length * share)].toFixed(2);
  return { p50: at(0.5), p99: at(0.99), rate: Math.round((calls * 1000) / (performance.now() - began)) };
}

async function ready(url, init, process) {
  for (let tries = 0; tries < 240; tries++) {
    if (process.exitCode !== null) throw new Error(`${url}: it ended with ${process.exitCode}`);
    try {
      const answer = await fetch(url, init);
      if (answer.status < 500) return;
    } catch {}
    await sleep(250);
  }
  throw new Error(`${url} is not ready`);
}

async function measured(name, url, process, key, folder) {
  const open = await opened(url, key);
  await load(url, open, 4, Math.min(500, CALLS));
  for (const connections of [1, 16]) {
    const before = used(process.pid, folder);
    const { p50, p99, rate } = await load(url, open, connections, CALLS);
    const after = used(process.pid, folder);
    const a = (ms) => (ms / CALLS).toFixed(3);
    console.log(`| ${name} | ${connections} | ${a(after.own - before.own)} | ${a(after.rest - before.rest)} | ${p50} | ${p99} | ${rate} |`);
  }
}

async function callbook(name, port, mode) {
  const folder = mkdtempSync(join(tmpdir(), 'callbook-bench-'));
  const ports = ['--http', `127.0.0.1:${port}`, '--grpc', `127.0.0.1:${port + 1}`, '--admin', `127.0.0.1:${port + 2}`];
  const environment = { ...process.env, CALLBOOK_OWNER_KEY: KEY, CALLBOOK_ALLOW_ORIGINS: `http://127.0.0.1:${UPSTREAM}`, RUST_LOG: 'error' };
  delete environment.DATABASE_URL;
  const server = spawn(process.env.CALLBOOK, ['up', '--data-dir', folder, '--read-mode', mode, ...ports], { env: environment, stdio: 'ignore' });
  try {
    const base = `http://127.0.0.1:${port}`;
    await ready(`${base}/readyz`, {}, server);
    const row = {
      key: 'FORECAST', type: 'http', target: `GET http://127.0.0.1:${UPSTREAM}/v1/forecast?place=$1`,
      content: '# WHAT: Current temperature at a place\n# ARGS: $1=place\n# EX: [FORECAST]sf[/FORECAST]',
    };
    const made = await fetch(`${base}/api/directory`, { method: 'POST', body: JSON.stringify(row), headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` } });
    if (made.status !== 201) throw new Error(await made.text());
    await measured(name, `${base}/mcp/tools`, server, KEY, folder);
  } finally {
    server.kill('SIGTERM');
    await new Promise((done) => (server.exitCode === null ? server.once('exit', done) : done()));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function peer(name, port, path, command, words) {
  const server = spawn(command, words, { env: { ...process.env, RUST_LOG: 'error' }, stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    await ready(`http://127.0.0.1:${port}${path}`, {}, server);
    await sleep(1000);
    await measured(name, `http://127.0.0.1:${port}${path}`, server);
  } finally {
    server.kill('SIGTERM');
  }
}

if (process.argv[2] === 'upstream') {
  upstream();
} else {
  const serving = spawn(process.execPath, [fileURLToPath(import.meta.url), 'upstream'], { stdio: 'inherit' });
  try {
    await ready(`http://127.0.0.1:${UPSTREAM}/v1/`, {}, serving);
    console.log('| server | connections | its ms of processor a call | its Postgres | p50 ms | p99 ms | calls a second |');
    console.log('|---|---|---|---|---|---|---|');
    await callbook('Callbook, every call on record before it leaves', 7961, 'off');
    await callbook('Callbook, read mode', 7964, 'on');
    if (process.env.MCP_PROXY) {
      const config = join(mkdtempSync(join(tmpdir(), 'mcp-proxy-')), 'proxy.toml');
      writeFileSync(config, `[proxy]\nname = "peer"\n[proxy.listen]\nhost = "127.0.0.1"\nport = 7967\n[[backends]]\nname = "up"\ntransport = "http"\nurl = "http://127.0.0.1:${UPSTREAM}/mcp"\n`);
      await peer('mcp-proxy 0.6, from MCP to MCP', 7967, process.env.MCP_PROXY_PATH ?? '/', process.env.MCP_PROXY, ['--config', config]);
    }
    if (process.env.FASTMCP) await peer('fastmcp 4.2', 7968, '/mcp', process.env.FASTMCP, [join(here, 'fastmcp_server.py'), '7968', `http://127.0.0.1:${UPSTREAM}`]);
  } finally {
    serving.kill();
  }
}
