-- The places a job can be. A body is written once; the narrow tables ready, scheduled, blocked and running each
-- hold the jobs that are there now; job_attempts is the append-only audit trail, and its row with `ended` is
-- the end of a job. So a claim never meets history, future or blocked jobs, and dead rows are narrow.
-- Refines src/core/job.ts and src/core/edges.ts. Numbers that stand for words are listed in sql/10_time.sql.

create sequence millrace.entry_seq increment by 10000;
comment on sequence millrace.entry_seq is 'order of entry to ready; one bulk insert takes one step and counts on within it';
create sequence millrace.lease_seq;
comment on sequence millrace.lease_seq is 'leases, and numbers of audit rows without a run';
create sequence millrace.note_version_seq;

create table millrace.job_queues (
  id int generated always as identity primary key,
  name text not null unique,
  default_priority int not null default 100,
  default_attempts int not null default 3,
  is_active boolean not null default true,
  retry json,
  concurrency int,
  per_key_concurrency int,
  rate json,
  per_key_rate json,
  -- Milliseconds between two starts at the steady rate: src/core/rate.ts intervalMs, computed once when the limit is set.
  rate_interval_ms float8,
  per_key_rate_interval_ms float8,
  retain_completed_ms bigint,
  retain_failed_ms bigint,
  retain_cancelled_ms bigint,
  lower_lane_share int not null default 16,
  lane_high_max int not null default 50,
  lane_normal_max int not null default 150,
  is_limited boolean not null generated always as
    (concurrency is not null or per_key_concurrency is not null or rate is not null or per_key_rate is not null) stored,
  -- Limits were changed: until then passes of promote bring the jobs that are there in line with them.
  relimit_until timestamptz,
  created_at timestamptz not null,
  version int not null default 1
) with (fillfactor = 50);

create table millrace.job_bodies (
  id uuid not null,
  enqueued_at timestamptz not null,
  -- The time asked for at the insert; later times travel with the job.
  first_run_at timestamptz not null,
  queue_id int not null,
  timeout_ms int not null,
  max_attempts int not null,
  priority smallint not null,
  unique_mode smallint,
  name text not null,
  payload json not null,
  meta json,
  tags text[],
  batch_id uuid,
  group_key text,
  limit_key text,
  unique_key text,
  schedule_name text,
  schedule_tick timestamptz,
  replay_of uuid,
  primary key (id)
) partition by range (id);
create table millrace.job_bodies_rest partition of millrace.job_bodies default;
create index job_bodies_batch on millrace.job_bodies (batch_id, id) where batch_id is not null;

create table millrace.ready (
  seq bigint not null,
  run_at timestamptz not null,
  ready_at timestamptz not null,
  id uuid not null,
  queue_id int not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  hooks smallint not null,
  primary key (queue_id, priority, seq)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
create unique index ready_id on millrace.ready (id);

create table millrace.scheduled (
  run_at timestamptz not null,
  id uuid not null,
  queue_id int not null,
  waits_for smallint not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  hooks smallint not null,
  primary key (id)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 20000);
create index scheduled_run_at on millrace.scheduled (run_at);

create table millrace.blocked (
  seq bigint not null,
  run_at timestamptz not null,
  id uuid not null,
  queue_id int not null,
  pending_parents int not null,
  gate smallint not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  hooks smallint not null,
  orphan_status smallint,
  orphan_policy smallint,
  orphan_of uuid,
  -- The key of the line it stands in: its group, or its limit key; empty for the line of the queue and for parents.
  line text not null,
  primary key (id)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 20000);
-- Slots go by priority, then order; a group goes by order alone.
create index blocked_slots on millrace.blocked (queue_id, gate, line, priority, seq) where gate in (3, 4);
create index blocked_groups on millrace.blocked (queue_id, line, seq) where gate = 2;
create index blocked_orphans on millrace.blocked (id) where orphan_of is not null;

create table millrace.running (
  id uuid not null,
  lease bigint not null,
  started_at timestamptz not null,
  seq bigint not null,
  run_at timestamptz not null,
  ready_at timestamptz not null,
  -- The end of a claim with a life of its own; infinity: it lives as long as its worker.
  visible_until timestamptz not null,
  queue_id int not null,
  worker_no int not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  hooks smallint not null,
  primary key (id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);
create index running_cancels on millrace.running (worker_no) where hooks & 128 <> 0;
create index running_visible_until on millrace.running (visible_until) where visible_until < 'infinity';

create table millrace.job_attempts (
  job_id uuid not null,
  -- The lease of the run; for rows that are no run a number of the same sequence, so rows of a job are in order.
  no bigint not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  run_at timestamptz,
  queue_id int not null,
  worker_no int,
  attempt int not null,
  attempt_count int not null,
  crash_count smallint not null,
  status smallint not null,
  -- The final status, on the row that ended the job; null on all others.
  ended smallint,
  error json,
  result json,
  note text,
  primary key (job_id, no)
) partition by range (job_id);
create table millrace.job_attempts_rest partition of millrace.job_attempts default;
create index job_attempts_not_completed on millrace.job_attempts (job_id) where ended > 1;
create index job_attempts_finished_at on millrace.job_attempts using brin (finished_at) with (pages_per_range = 32, autosummarize = on);

-- What only some jobs have: errors of earlier attempts, progress, replays, and the last change, to know a repeated one.
create table millrace.job_states (
  id uuid primary key,
  updated_at timestamptz not null,
  last_edge text not null,
  last_edge_lease bigint not null default 0,
  lease bigint not null default 0,
  worker_no int,
  started_at timestamptz,
  last_error json,
  progress json,
  replayed_at timestamptz,
  replayed_by text,
  replayed_into uuid,
  log_lease bigint not null default 0,
  log_count int not null default 0
) with (fillfactor = 80);

create table millrace.job_lines (
  job_id uuid not null,
  lease bigint not null,
  line_no int not null,
  attempt int not null,
  at timestamptz not null,
  level text not null,
  message text not null,
  primary key (job_id, lease, line_no)
);

create table millrace.job_parents (
  child uuid not null,
  parent uuid not null,
  position int not null,
  policy smallint not null,
  -- The end of the parent has not been counted yet.
  is_open boolean not null,
  primary key (child, parent)
);
create index job_parents_parent on millrace.job_parents (parent) where is_open;

create table millrace.unique_keys (
  queue_id int not null,
  key text not null,
  mode smallint not null,
  holder uuid not null,
  -- The end of a for-a-time hold; infinity for the others.
  until timestamptz not null,
  primary key (queue_id, key)
) with (fillfactor = 80);
create index unique_keys_until on millrace.unique_keys (until) where until < 'infinity';

create table millrace.group_holders (
  queue_id int not null,
  key text not null,
  holder uuid not null,
  primary key (queue_id, key)
);

-- Slots in use; the empty key is the queue itself.
create table millrace.slot_counts (
  queue_id int not null,
  key text not null,
  used int not null,
  primary key (queue_id, key)
) with (fillfactor = 50);

-- src/core/rate.ts RateState: theoretical arrival times in milliseconds since 1970; the empty key is the queue itself.
create table millrace.rate_lines (
  queue_id int not null,
  key text not null,
  start_tat_ms float8 not null,
  admit_tat_ms float8 not null,
  primary key (queue_id, key)
) with (fillfactor = 50);

create table millrace.batches (
  id uuid primary key,
  name text not null,
  meta json,
  callbacks json not null,
  total int not null default 0,
  pending int not null default 0,
  completed int not null default 0,
  failed int not null default 0,
  cancelled int not null default 0,
  -- Its jobs that are still stored.
  kept int not null default 0,
  is_sealed boolean not null default false,
  is_cancelled boolean not null default false,
  created_at timestamptz not null,
  finished_at timestamptz
) with (fillfactor = 50);
create index batches_cancelled on millrace.batches (id) where is_cancelled and finished_at is null;
create table millrace.schedules (
  name text primary key,
  recurrence json not null,
  job_name text not null,
  queue_name text not null,
  payload json not null,
  priority int,
  max_attempts int,
  timeout_ms int not null,
  tags text[] not null,
  meta json,
  group_key text,
  limit_key text,
  misfire json not null,
  overlap text not null,
  is_enabled boolean not null,
  next_run_at timestamptz,
  last_run_at timestamptz,
  last_job_id uuid,
  created_at timestamptz not null,
  version int not null default 1
) with (fillfactor = 50);
create index schedules_due on millrace.schedules (next_run_at) where is_enabled and next_run_at is not null;

-- One row per life of a process; the heartbeat updates only this row, and no claim waits for it.
create table millrace.workers (
  no int generated always as identity primary key,
  id text not null unique,
  host text not null,
  pid int not null,
  queues text[] not null,
  concurrency int not null,
  is_alive boolean not null default true,
  beat bigint not null default 0,
  running int not null default 0,
  blocked_ms int not null default 0,
  last_command_no bigint not null default 0,
  started_at timestamptz not null,
  last_beat_at timestamptz not null
) with (fillfactor = 30);
-- Not on a column that a beat changes: a beat writes no index.
create index workers_alive on millrace.workers (no) where is_alive;
create index workers_dead on millrace.workers (no) where not is_alive;

-- Locked by each claim of a worker and by whoever declares it dead: so nothing is claimed by the dead.
create table millrace.worker_claims (
  worker_no int primary key,
  last_claim_no bigint not null default 0,
  is_dead boolean not null default false,
  -- Dead, and nothing is left that it held.
  is_empty boolean not null default false
) with (fillfactor = 10);
create index worker_claims_dead on millrace.worker_claims (worker_no) where is_dead and not is_empty;

create table millrace.worker_commands (
  worker_no int not null,
  no bigint not null,
  command json not null,
  primary key (worker_no, no)
);

create table millrace.leaders (
  role text primary key,
  holder text not null,
  term bigint not null,
  until timestamptz not null
) with (fillfactor = 30);

create table millrace.notes (
  space text not null,
  key text not null,
  value json not null,
  version bigint not null,
  expires_at timestamptz,
  primary key (space, key)
) with (fillfactor = 80);
create index notes_expires_at on millrace.notes (expires_at) where expires_at is not null;

-- How many jobs ended, as differences: each flush appends, maintenance folds. No row is fought over.
create table millrace.final_counts (
  queue_id int not null,
  ended smallint not null,
  n bigint not null
);

-- Retention (sql/83 … 86). Jobs that are over for good, one row each, where nobody on the hot path looks. Its
-- partitions are made beside it and attached whole; late ones go to the rest.
create table millrace.job_archive (
  id uuid not null,
  enqueued_at timestamptz not null,
  run_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  schedule_tick timestamptz,
  replayed_at timestamptz,
  -- The number of the row in job_attempts that ended it.
  no bigint not null,
  queue_id int not null,
  worker_no int,
  timeout_ms int not null,
  max_attempts int not null,
  attempt_count int not null,
  crash_count smallint not null,
  priority smallint not null,
  ended smallint not null,
  name text not null,
  payload json not null,
  result json,
  last_error json,
  meta json,
  tags text[],
  parents uuid[],
  batch_id uuid,
  replay_of uuid,
  replayed_into uuid,
  replayed_by text,
  group_key text,
  limit_key text,
  unique_key text,
  schedule_name text,
  -- Its rows of job_attempts, if they say more than this row does; null again when logs have had their time.
  trail json,
  primary key (id)
) partition by range (id);
create table millrace.job_archive_rest partition of millrace.job_archive default;
create index job_archive_finished_at on millrace.job_archive using brin (finished_at);
create index job_archive_trail on millrace.job_archive (finished_at) where trail is not null;

-- What the rows of job_attempts that are gone said: one row per day (UTC), queue, job name and status of the attempt.
create table millrace.job_daily (
  day date not null,
  queue_name text not null,
  name text not null,
  status text not null,
  n bigint not null,
  total_ms bigint not null,
  max_ms bigint not null,
  primary key (day, queue_name, name, status)
);

-- How far exact deletion has come: everything of these queues that ended up to `through` was looked at.
create table millrace.retention_marks (
  scope text not null,
  ended smallint not null,
  age_ms bigint not null,
  queue_ids int[] not null,
  through timestamptz not null,
  slice_ms bigint not null,
  at_id uuid,
  primary key (scope, ended, age_ms)
);

-- The range of partitions that is being replaced by the rows in it that must stay; there is at most one.
create table millrace.retirements (
  lower uuid primary key,
  upper uuid not null,
  -- Below it the archive has its partition already.
  archive_lower uuid not null,
  walked uuid not null,
  rules text not null,
  jobs bigint not null default 0,
  kept_rows bigint not null default 0,
  is_swapped boolean not null default false,
  started_at timestamptz not null
);
-- What became of its parts: how many rows stay, and sums of those that go.
create table millrace.retired_chunks (
  lower uuid primary key,
  upper uuid not null,
  jobs int not null,
  kept_rows int not null,
  counts json,
  daily json,
  batches json
);
-- Jobs of that range that were changed meanwhile: their part is looked at again.
create table millrace.retired_changes (
  id uuid not null
);
create index retired_changes_id on millrace.retired_changes (id);
-- Partitions of which this was done already, or which are better left as they are: what is due in them is deleted exactly.
create table millrace.kept_partitions (
  lower uuid primary key,
  upper uuid not null
);

-- A job on its way from one place to the next, with what its body says about gates.
create type millrace.job_place as (
  id uuid,
  status text,
  queue_id int,
  priority smallint,
  attempts int,
  crashes int,
  hooks int,
  run_at timestamptz,
  seq bigint,
  ready_at timestamptz,
  waits_for smallint,
  gate smallint,
  pending_parents int,
  orphan_of uuid,
  orphan_status smallint,
  orphan_policy smallint,
  lease bigint,
  worker_no int,
  started_at timestamptz,
  visible_until timestamptz,
  group_key text,
  limit_key text,
  unique_key text,
  unique_mode smallint,
  batch_id uuid
);

-- src/core/transition.ts, with the words that SQL needs as numbers (change-rows.ts).
create type millrace.job_change as (
  job_id uuid,
  edge text,
  guard_from text[],
  guard_lease bigint,
  guard_orphan_of uuid,
  goes_to text,
  delay_ms bigint,
  waits_for smallint,
  counts boolean,
  resets boolean,
  crashed boolean,
  error json,
  -- Opaque texts, kept byte for byte.
  result text,
  progress text,
  log_lines json,
  log_from int,
  if_free boolean,
  ran_ms bigint,
  note text,
  actor text,
  into_id uuid,
  then_remove boolean,
  audit smallint,
  audits_run boolean,
  ended smallint,
  if_cancel json
);
