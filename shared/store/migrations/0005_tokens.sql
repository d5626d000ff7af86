-- Capability tokens: what was issued, what was taken back, what was counted. Never their text.

-- The public keys that sign tokens; the private ones are the gate's alone.
create table issuer_key (
    kid text collate "C" not null,
    public_key bytea not null,
    state text not null,
    created_at timestamptz not null,
    -- when it came into its present state
    since timestamptz not null,
    constraint issuer_key_kid primary key (kid),
    constraint issuer_key_state check (state in ('next', 'active', 'retiring', 'gone'))
);

create table token (
    jti uuid not null,
    kid text collate "C" not null,
    sub text not null,
    -- the thumbprint of the holder's key; absent for a bearer token
    holder text,
    purpose text not null default '',
    claims text not null,
    -- the name in receipts of the one who minted it, and its id where it is a principal
    minted_by text not null,
    principal uuid,
    -- the token from which the gate narrowed it
    source uuid,
    -- the id of its link, under which its calls are counted
    link text collate "C" not null,
    -- what a revocation can name of it, and of the tokens that it was narrowed from
    names text[] not null,
    -- its counter, and those of the tokens that it was narrowed from; each a link's id, and how many calls it allows
    counters text[] not null default '{}',
    limits bigint[] not null default '{}',
    issued_at timestamptz not null,
    expires_at timestamptz not null,
    constraint token_jti primary key (jti)
);

create index token_issued on token (issued_at desc, jti desc);
create index token_principal on token (principal, issued_at desc, jti desc) where principal is not null;
create index token_kid on token (kid, expires_at);

-- Each takes back every chain that has it among its names: `jti:…` and `link:…` of a link, `holder:…`, `sub:…`, `kid:…`,
-- `principal:…` of the one who minted it.
create table revocation (
    name text collate "C" not null,
    at timestamptz not null,
    actor text not null,
    reason text not null default '',
    constraint revocation_name primary key (name)
);

-- Calls under a link of a token and everything that is derived from it.
create table token_use (
    link text collate "C" not null,
    used bigint not null,
    constraint token_use_link primary key (link)
);

-- What the watcher does with calls of sensitive rows.
create table watch_rule (
    name text collate "C" not null,
    position integer not null,
    pattern_key text not null default '',
    pattern_body text not null default '',
    action text not null,
    reason text not null default '',
    actor text not null,
    updated_at timestamptz not null,
    constraint watch_rule_name primary key (name),
    constraint watch_rule_action check (action in ('allow', 'deny', 'hold'))
);

-- Calls that wait for a person, or did.
create table approval (
    id uuid not null,
    invocation uuid not null,
    state text not null,
    caller text not null,
    actor text not null,
    -- the principal that calls, or that minted the token of the call: it does not decide
    principal uuid,
    key text collate "C" not null,
    contract_hash text not null,
    text_hash text not null,
    argument_hash bytea not null,
    idempotency_key text,
    -- what the caller sent, and the salt of its commitment; null once they were erased
    nonce bytea,
    input bytea,
    reason text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    decided_by text,
    decided_at timestamptz,
    decision_reason text not null default '',
    constraint approval_id primary key (id),
    constraint approval_invocation unique (invocation),
    constraint approval_state check (state in ('held', 'approved', 'refused', 'used', 'expired'))
);

-- One open approval for one call.
create unique index approval_open on approval (caller, key, contract_hash, argument_hash)
    where state in ('held', 'approved');
create index approval_call on approval (caller, key, id desc);
create index approval_kept on approval (created_at) where input is not null;

grant select, insert, update, delete on issuer_key, token, token_use, watch_rule, approval to callbook_app;
grant select, insert on revocation to callbook_app;

-- Calls with tokens, and calls that cost.
alter table invocation
    -- the ids of the token's links, root first
    add column lineage text[] not null default '{}',
    -- `link:…` of each of them and of the links of the tokens that the gate narrowed it from: who holds a token that ends
    -- with one of them may read the receipt
    add column links text[] not null default '{}',
    -- what the call cost by itself, in US dollars; `cost_usd` has with it what the calls below it cost
    add column own_cost_usd double precision not null default 0;

create index invocation_links on invocation using gin (links) where links <> '{}';
