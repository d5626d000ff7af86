-- Calls of read mode, which ran already: the invocation, both its events, and what is kept of it.
with call as (
    select * from unnest(
        $1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::bigint[], $8::text[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::uuid[], $15::text[],
        $16::timestamptz[], $17::text[], $18::text[], $19::timestamptz[], $20::bool[], $21::bool[],
        $22::text[], $23::text[], $24::bool[], $25::text[], $26::int[], $27::bigint[], $28::bool[],
        $29::text[], $30::text[], $31::text[], $32::float8[], $33::float8[]
    ) as c (id, caller, actor, argument_hash, key, type, row_revision, contract_hash, text_hash, effect, risk,
            runner, pool, executor, trace, started_at, warnings, intent, finished_at, ok,
            material, code, message, retryable, failed_at, upstream_status, output_bytes, truncated, result,
            lineage, links, own_cost_usd, cost_usd)
), written as (
    insert into invocation (
        id, caller, actor, argument_hash, key, type, row_revision, contract_hash, text_hash, effect, risk,
        runner, pool, mode, state, executor, lease_until, trace, started_at, warnings, finished_at, ok,
        material, code, message, retryable, failed_at, upstream_status, output_bytes, truncated, lineage,
        links, own_cost_usd, cost_usd)
    select id, caller, actor, argument_hash, key, type, row_revision, contract_hash, text_hash, effect, risk,
           runner, pool, 'read', 'done', executor, finished_at, trace, started_at,
           string_to_array(warnings, E'\n'), finished_at, ok, material, code, message, retryable, failed_at,
           upstream_status, output_bytes, truncated, string_to_array(lineage, E'\n'),
           string_to_array(links, E'\n'), own_cost_usd, cost_usd
    from call
    on conflict on constraint invocation_id do nothing
    returning id
), kept as (
    insert into payload (invocation, part, nonce, bytes, media_type)
    select k.* from unnest($34::uuid[], $35::text[], $36::bytea[], $37::bytea[], $38::text[])
        as k (id, part, nonce, bytes, media_type) join written using (id)
)
insert into event (at, kind, invocation, key, actor, body)
select started_at, 'intent', id, key, actor, intent from call join written using (id)
union all
select finished_at, 'result', id, key, actor, result from call join written using (id)
