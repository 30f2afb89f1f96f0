"""The batch loop: many generations on one model, a step at a time.  Knows no library: see `runtime`."""
