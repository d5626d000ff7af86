-- What the services may do. The log and the history take inserts alone.
grant select, insert, update, delete on
    directory, directory_stage, dependency, recommended, principal, invocation, payload, executor, kv, credential_failure
    to callbook_app;
grant select, insert on directory_history, event to callbook_app;
grant usage, select on all sequences in schema public to callbook_app;
