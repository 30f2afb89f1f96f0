"""Model files: which there are, which are here, how they get here, and what this machine can run."""
