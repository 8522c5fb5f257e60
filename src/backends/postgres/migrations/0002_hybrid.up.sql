-- The ledger of the hybrid: which queues send tokens through Redis, under which epoch. A row of `running` whose worker_no
-- is 0 is unmarked: it has a lease and a token somewhere, and nobody has said in PostgreSQL that he runs it.
-- Nothing here touches a table that is in use, but for two columns of `workers` without a rewrite.

create table millrace.dispatch (
  queue_id int primary key,
  -- 'token': through Redis; 'ledger': workers claim from `ready`.
  mode text not null,
  epoch bigint not null,
  -- Given by Redis when the epoch is opened there; null: not yet.
  birth text,
  redis_id text not null,
  -- Leases below it are of earlier epochs.
  first_lease bigint not null,
  -- The server that `ledger` knew when the epoch began: on another one nobody mints.
  pg_identity text not null
) with (fillfactor = 50);

-- One row: epochs are counted under its lock. The server that all of it is true on; empty: none was known yet.
create table millrace.ledger (
  id int primary key,
  counter bigint not null,
  pg_identity text not null
) with (fillfactor = 50);
insert into millrace.ledger (id, counter, pg_identity) values (1, 0, '');

-- Null: a worker that never holds tokens, so that nobody waits for it.
alter table millrace.workers add column epoch_seen bigint;
-- Queues whose Redis it cannot use; null: none.
alter table millrace.workers add column failing text[];

-- Whose run a change ends, where the row itself does not know.
alter type millrace.job_change add attribute worker text;
