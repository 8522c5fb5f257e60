-- Workers that have been dead for a while. ARGV: prefix, for how long, how many at most. Answers how many were forgotten.
--@include _go-on
--@include _keys
--@include _time
--@include _forget
return forget(now_ms - ARGV[2], ARGV[3])
