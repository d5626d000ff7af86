-- One row an invocation: who asked for what, how far it came, and which executor holds it.
create table invocation (
    id uuid not null,
    caller text not null,
    actor text not null,
    idempotency_key text,
    argument_hash bytea not null,
    key text collate "C" not null,
    type text not null,
    row_revision bigint not null,
    contract_hash text not null,
    text_hash text not null,
    effect text not null,
    risk text not null,
    runner text not null,
    pool text not null,
    mode text not null,
    state text not null,
    executor uuid not null,
    lease_until timestamptz not null,
    parent uuid,
    repairs uuid,
    replay_of uuid,
    trace text not null,
    started_at timestamptz not null,
    warnings text[] not null default '{}',
    finished_at timestamptz,
    ok boolean,
    material boolean,
    -- of a failed outcome
    code text,
    message text,
    retryable boolean,
    failed_at text,
    upstream_status integer,
    output_bytes bigint,
    truncated boolean not null default false,
    cost_usd double precision not null default 0,
    constraint invocation_id primary key (id),
    constraint invocation_idempotency unique (caller, idempotency_key),
    constraint invocation_state check (state in ('running', 'done', 'unknown')),
    constraint invocation_mode check (mode in ('durable', 'read'))
);

create index invocation_open on invocation (executor, lease_until) where state = 'running';
create index invocation_caller on invocation (caller, id desc);
create index invocation_key on invocation (key, id desc);
create index invocation_parent on invocation (parent) where parent is not null;
create index invocation_repairs on invocation (repairs) where repairs is not null;
create index invocation_idempotent on invocation (started_at) where idempotency_key is not null;

-- The log. Nothing in it is ever changed or taken out.
create table event (
    id bigint generated always as identity,
    at timestamptz not null,
    kind text not null,
    invocation uuid,
    key text collate "C" not null,
    actor text not null,
    body text not null,
    constraint event_id primary key (id),
    constraint event_kind check (
        kind in ('intent', 'result', 'unknown', 'denied', 'hold', 'approve', 'mutate', 'mint', 'revoke')
    ),
    constraint event_size check (octet_length(body) <= 4096)
);

create index event_invocation on event (invocation) where invocation is not null;
create index event_kind_at on event (kind, at);
create index event_key on event (key, id desc);

create function refuse_event_change() returns trigger
language plpgsql
as $$
begin
    raise exception 'event is append-only' using errcode = 'insufficient_privilege';
end
$$;

create trigger event_append_only
    before update or delete on event
    for each row execute function refuse_event_change();

create trigger event_no_truncate
    before truncate on event
    for each statement execute function refuse_event_change();

-- What the commitments of the log commit to. It can be erased and the log still stands.
create table payload (
    invocation uuid not null,
    part text not null,
    nonce bytea not null,
    bytes bytea not null,
    media_type text not null default '',
    constraint payload_part_of primary key (invocation, part),
    constraint payload_part check (part in ('input', 'request', 'response', 'output', 'answer'))
);

create table executor (
    id uuid not null,
    pools text[] not null,
    address text not null,
    started_at timestamptz not null,
    heartbeat_at timestamptz not null,
    constraint executor_id primary key (id)
);

-- Key-value pairs of `fn` rows, a namespace a caller.
create table kv (
    namespace text collate "C" not null,
    key text collate "C" not null,
    value bytea not null,
    updated_at timestamptz not null,
    constraint kv_key primary key (namespace, key)
);

-- The breaker of a credential at an origin.
create table credential_failure (
    origin text not null,
    secret text not null,
    streak integer not null,
    opened_at timestamptz,
    fingerprint text not null,
    constraint credential_failure_of primary key (origin, secret)
);
