-- Takes back 0001: every table, view, function and sequence of the schema, and all jobs in them.
drop view if exists millrace.job_logs, millrace.jobs, millrace.job_records cascade;
drop table if exists
  millrace.job_bodies_next, millrace.job_attempts_next, millrace.job_archive_next, millrace.job_archive, millrace.job_daily,
  millrace.retention_marks, millrace.retirements, millrace.retired_chunks, millrace.retired_changes, millrace.kept_partitions,
  millrace.final_counts, millrace.notes, millrace.leaders, millrace.worker_commands, millrace.worker_claims,
  millrace.workers, millrace.schedules, millrace.batches, millrace.rate_lines,
  millrace.slot_counts, millrace.group_holders, millrace.unique_keys, millrace.job_parents, millrace.job_lines,
  millrace.job_states, millrace.job_attempts, millrace.running, millrace.blocked, millrace.scheduled,
  millrace.ready, millrace.job_bodies, millrace.job_queues cascade;
drop sequence if exists millrace.entry_seq, millrace.lease_seq, millrace.note_version_seq;
drop type if exists millrace.job_change, millrace.job_place cascade;
