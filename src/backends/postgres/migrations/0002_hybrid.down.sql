-- Takes back 0002. Unmarked rows go back to their places first: without it nobody would ever look at them again. Minting reads
-- `dispatch`: with its lock nobody has minted without a commit, and nobody does any more. Moved by one statement: what is taken
-- away is what is put back.
lock table millrace.ledger, millrace.dispatch in access exclusive mode;
with gone as (
  delete from millrace.running r where r.worker_no = 0
  returning r.seq, r.run_at, r.ready_at, r.id, r.queue_id, r.priority, r.attempts, r.crashes, r.hooks
)
insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
select g.seq, g.run_at, g.ready_at, g.id, g.queue_id, g.priority, g.attempts, g.crashes, g.hooks & ~128 from gone g;
drop table millrace.dispatch, millrace.ledger;
alter table millrace.workers drop column epoch_seen, drop column failing;
alter type millrace.job_change drop attribute worker;
