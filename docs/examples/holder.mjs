#!/usr/bin/env node
// What the holder of a capability token does alone: make a key, narrow a token, prove to hold it. Nothing but Node's own
// crypto is used, and nobody is asked.
//
//   node holder.mjs key                                    > alice.jwk      (private; keep it to yourself)
//   node holder.mjs public alice.jwk                       > alice.pub.jwk
//   node holder.mjs narrow "$TOKEN" alice.jwk '{"keys":["NOW"],"uses":1,"ttl":60}' [bob.pub.jwk]
//   node holder.mjs prove  "$TOKEN" alice.jwk NOW '{"body":"a|b"}' [audience]

import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';

const base64url = (bytes) => Buffer.from(bytes).toString('base64url');
const sha256 = (text) => createHash('sha256').update(text).digest();
const readJwk = (file) => JSON.parse(readFileSync(file, 'utf8'));
const publicJwk = ({ crv, kty, x }) => ({ crv, kty, x });
const now = () => Math.floor(Date.now() / 1000);

/** RFC 8785: members in the order of their UTF-16 code units, numbers and strings as ECMAScript writes them. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join(',')}}`;
}

/** The hash of what a call sends: of `args`, or of `body` as one JSON string; without arguments, of `null`. */
function argumentHash({ args, body }) {
  return sha256(canonical(args ?? (body || null)));
}

/** A compact JWS, signed with Ed25519. */
function jws(typ, claims, jwk) {
  const header = base64url(JSON.stringify({ alg: 'EdDSA', typ }));
  const input = `${header}.${base64url(canonical(claims))}`;
  const signature = sign(null, Buffer.from(input), createPrivateKey({ key: jwk, format: 'jwk' }));
  return `${input}.${base64url(signature)}`;
}

/** A UUIDv7: 48 bits of time, then randomness. */
function uuid7() {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = 0x70 | (bytes[6] & 0x0f);
  bytes[8] = 0x80 | (bytes[8] & 0x3f);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** The last link of a token, its claims, and what its children name as their parent. */
function leafOf(token) {
  const leaf = token.split('~').at(-1);
  const claims = JSON.parse(Buffer.from(leaf.split('.')[1], 'base64url'));
  const parent = base64url(sha256(leaf.slice(0, leaf.lastIndexOf('.'))));
  return { leaf, claims, parent };
}

/** The token with one more link: everything that its parent allows, but for what `less` says. */
function narrow(token, jwk, less, to = jwk) {
  const { claims: above, parent } = leafOf(token);
  const { keys, prefixes, ttl, max_depth, body, args, ...limits } = less;
  const cap = { ...above.cap, ...limits };
  if (keys || prefixes) {
    // a key that is pinned keeps its pin, also where a prefix reaches it
    const reached = (key) => (prefixes ?? []).some((prefix) => key.startsWith(prefix));
    const pinned = Object.entries(above.cap.keys ?? {}).filter(([key, pin]) => pin && reached(key));
    cap.keys = Object.fromEntries([...(keys ?? []).map((key) => [key, above.cap.keys?.[key] ?? null]), ...pinned]);
    cap.prefixes = prefixes ?? [];
  }
  if (body !== undefined || args !== undefined) {
    cap.body = `sha256:${argumentHash({ body, args }).toString('hex')}`;
  }
  const iat = now();
  const claims = {
    ...above,
    jti: uuid7(),
    iat,
    exp: ttl ? Math.min(above.exp, iat + ttl) : above.exp,
    cnf: { jwk: publicJwk(to) },
    del: { d: above.del.d + 1, max: max_depth ?? above.del.max },
    par: parent,
    cap,
  };
  return `${token}~${jws('cap+jwt', claims, jwk)}`;
}

/** The proof for one call. Its `jti` is the call's idempotency key: the same proof never runs a row twice. */
function prove(token, jwk, key, call, audience) {
  const { leaf, claims } = leafOf(token);
  const proof = {
    ath: base64url(sha256(leaf)),
    aud: audience ?? claims.aud[0],
    iat: now(),
    jti: uuid7(),
    key,
    arg: base64url(argumentHash(call)),
  };
  return jws('cap-pop+jwt', proof, jwk);
}

const commands = {
  key: () => JSON.stringify(generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' })),
  public: (file) => JSON.stringify(publicJwk(readJwk(file))),
  narrow: (token, file, less, to) => narrow(token, readJwk(file), JSON.parse(less), to && readJwk(to)),
  prove: (token, file, key, call, audience) => prove(token, readJwk(file), key, JSON.parse(call ?? '{}'), audience),
};

const [command, ...rest] = process.argv.slice(2);
if (!Object.hasOwn(commands, command ?? '')) {
  console.error(`usage: node holder.mjs ${Object.keys(commands).join('|')} …`);
  process.exit(2);
}
console.log(commands[command](...rest));
