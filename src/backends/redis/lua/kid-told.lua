-- Cluster only: a parent elsewhere has ended. Refines memory/settle.ts (tellChildren) for one child.
--   values: child's queue, child, birth, parent, its end, policy
--@include _go-on
--@include _library
parents.hear(ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7])
flush_all()
return outbox.wrap(1)
