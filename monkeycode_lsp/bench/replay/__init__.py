"""Replays typing against the real pipeline: on a clock of its own for whole traces, in real time for a few hundred keys."""
