"""Engines behind an address.  Read `engine`, then `endpoint` (one server), then `dialects` (what each kind of server speaks)."""
