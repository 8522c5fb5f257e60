-- Takes back 0002. Unmarked rows go back to their places first: without it nobody would ever look at them again.
insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
select r.seq, r.run_at, r.ready_at, r.id, r.queue_id, r.priority, r.attempts, r.crashes, r.hooks & ~128
from millrace.running r where r.worker_no = 0;
delete from millrace.running where worker_no = 0;
drop table millrace.dispatch, millrace.ledger;
alter table millrace.workers drop column epoch_seen, drop column failing;
alter type millrace.job_change drop attribute worker;
