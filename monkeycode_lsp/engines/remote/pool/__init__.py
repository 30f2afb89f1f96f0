"""Several endpoints as one engine: who is asked next, who waits, who is tried again.  Read `dispatch`, then `choice`."""
