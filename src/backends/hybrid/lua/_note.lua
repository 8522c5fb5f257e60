-- Longer than the 64 bytes up to which Redis packs a small hash into one string, where each field is found by walking
-- over all others: at a few hundred fields that would cost several times as much as all the rest of a call.
local NOTE = ' written by Millrace; may be lost at any time: the jobs are in Postgres'
