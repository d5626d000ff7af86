// The official TypeScript SDK as a client: node sdk.mjs TYPED FOUR auto|legacy. Prints a line, fails where something
// differs.
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [typed, four, mode] = process.argv.slice(2);
const asked = [];

async function connected(url, answer) {
  const client = new Client(
    { name: 'conformance', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
  );
  client.setRequestHandler('elicitation/create', async (request) => {
    asked.push(request.params.message);
    return answer;
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const client = await connected(typed, { action: 'accept', content: { name: 'octocat' } });
const names = [];
let cursor;
do {
  const page = await client.listTools(cursor === undefined ? {} : { cursor });
  names.push(...page.tools.map((tool) => tool.name));
  cursor = page.nextCursor;
} while (cursor !== undefined);
assert.equal(new Set(names).size, names.length);
const version = client.getNegotiatedProtocolVersion();
assert.equal(version === '2026-07-28', mode === 'auto', version);
const progress = [];
const steps = await client.callTool(
  { name: 'test_tool_with_progress', arguments: {} },
  { onprogress: (told) => progress.push(told.progress) },
);
assert.ok(!steps.isError && progress.length >= 3, JSON.stringify([steps, progress]));
const mirrored = await client.callTool({ name: 'test_header_mirror', arguments: { region: 'eu' } });
assert.equal(mirrored.content[0].text, 'Region: eu');
if (mode === 'auto') {
  const greeted = await client.callTool({ name: 'test_input_required_result_elicitation', arguments: {} });
  assert.equal(greeted.content[0].text, 'Hello! You told me your name.');
  assert.deepEqual(asked, ['What is your name?']);
  const other = await connected(typed, { action: 'decline' });
  const declined = await other.callTool({ name: 'test_input_required_result_elicitation', arguments: {} });
  assert.ok(declined.isError && declined.content[0].text.includes('Nothing ran'));
  await other.close();
}
await client.close();
const short = await connected(four, { action: 'decline' });
const ran = await short.callTool({ name: 'invoke', arguments: { key: 'test_simple_text' } });
assert.ok(ran.content.at(-1).text.includes('confirm http'));
await short.close();
console.log(`typescript sdk ${mode}: ${version}, ${names.length} tools, progress ${progress}`);
