-- Work goes on at the limit of memory, or nothing would ever make room again: beats, claims and ends write little, and a
-- script whose first command takes away may write what follows. What adds jobs is refused.
redis.call('DEL', KEYS[1] .. ':none')
