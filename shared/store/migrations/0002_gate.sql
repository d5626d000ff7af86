-- Platform teams and what they may do. An API key is kept as its SHA-256 alone.
create table principal (
    id uuid not null,
    name text not null,
    key_hash bytea not null,
    grants text not null,
    created_at timestamptz not null,
    created_by text not null,
    revoked_at timestamptz,
    constraint principal_id primary key (id),
    constraint principal_name unique (name),
    constraint principal_key_hash unique (key_hash)
);
