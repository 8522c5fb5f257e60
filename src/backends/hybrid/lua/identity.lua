-- The identity of the server that has the slot of these keys, as scripts see it. Changes nothing.
--@include _identity
return identity()
