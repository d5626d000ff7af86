-- The book: rows, their history, and what reaches what.

-- Services act as this role, so that the rules below bind them. Roles belong to the whole server:
-- two databases that migrate at once may both try to make it.
do $$
begin
    create role callbook_app nologin;
exception
    when duplicate_object or unique_violation then null;
end
$$;

do $$
begin
    execute format('grant callbook_app to %I', current_user);
exception
    when others then null; -- a superuser needs no grant, and two migrations may race for it
end
$$;

create table directory (
    key text collate "C" not null,
    type text not null,
    target text not null default '',
    auth text not null default '',
    content text not null default '',
    updated_at timestamptz not null,
    category text,
    allowed_categories text,
    seq integer,
    enabled boolean not null default true,
    planner_visible boolean not null default true,
    planner_rank integer not null default 100,
    input_schema text,
    examples text,
    sensitive boolean not null default false,
    runner text,
    includes text,
    created_at timestamptz not null,
    revision bigint not null,
    version bigint not null,
    contract_hash text not null,
    text_hash text not null,
    output_schema text,
    provenance text not null default 'owner',
    timeout_ms integer,
    max_response_bytes integer,
    -- the highest over the row and all that it reaches
    effect text not null,
    risk text not null,
    -- keys that a reader could take for one another share it
    skeleton text not null,
    constraint directory_key primary key (key),
    constraint directory_type check (type in ('fn', 'http', 'agent', 'flow')),
    constraint directory_provenance check (provenance in ('owner', 'third_party', 'generated')),
    constraint directory_effect check (effect in ('read', 'write', 'destructive')),
    constraint directory_risk check (risk in ('low', 'high')),
    constraint directory_version check (version >= 1)
);

create index directory_skeleton on directory (skeleton);

-- Every version of every row and every tombstone. It is also the change feed.
create table directory_history (
    revision bigint not null,
    key text collate "C" not null,
    version bigint not null,
    action text not null,
    actor text not null,
    at timestamptz not null,
    before text,
    after text,
    constraint directory_history_revision primary key (revision, key),
    constraint directory_history_action check (
        action in ('create', 'replace', 'patch', 'delete', 'restore', 'import', 'reach', 'recommend')
    )
);

create index directory_history_key on directory_history (key, revision desc);

-- A row's steps and includes, in order. The reached row need not exist.
create table dependency (
    key text collate "C" not null,
    ordinal integer not null,
    reaches text collate "C" not null,
    kind text not null,
    constraint dependency_key primary key (key, ordinal),
    constraint dependency_kind check (kind in ('step', 'include')),
    constraint dependency_row foreign key (key) references directory (key) on delete cascade
);

create index dependency_reaches on dependency (reaches);

create table recommended (
    pattern text not null,
    key text collate "C" not null,
    demote boolean not null,
    reason text not null default '',
    actor text not null,
    created_at timestamptz not null,
    constraint recommended_pattern primary key (pattern, key)
);

-- Writes are prepared here and merged in a few statements, so that the lock is held for the merge alone.
-- Nothing in it has to survive a crash.
create unlogged table directory_stage (
    like directory including defaults,
    batch uuid not null,
    action text not null,
    actor text not null,
    before text,
    after text,
    event text,
    reaches text[] not null,
    kinds text[] not null,
    constraint directory_stage_key primary key (batch, key)
);
