"""What happened, and how long it took.  Nothing here leaves the machine or holds source text."""
