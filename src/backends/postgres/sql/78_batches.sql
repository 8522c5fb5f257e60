-- Sealing and cancelling. A batch that has nothing pending is finished by it. False: there is none.

create or replace function millrace.seal_batch(batch uuid, and_cancel boolean) returns boolean language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  ended timestamptz;
begin
  select finished_at into ended from millrace.batches where id = batch for update;
  if not found then return false; end if;
  if ended is null then
    update millrace.batches set is_sealed = true, is_cancelled = is_cancelled or and_cancel where id = batch;
    perform millrace.finish_batch(batch, now_at);
  end if;
  return true;
end $$;
