"""Engines: whatever streams tokens for a prompt.  Read `base` first."""
