// Tokens of the tools of a tools/list result: node count.mjs FILE [MOST]. No network is used.
import { readFileSync } from 'node:fs';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const [file, most] = process.argv.slice(2);
const { result } = JSON.parse(readFileSync(file, 'utf8'));
const tokens = encode(JSON.stringify(result.tools)).length;
console.log(`${result.tools.length} tools, ${tokens} o200k tokens`);
process.exit(most && tokens > Number(most) ? 1 : 0);
