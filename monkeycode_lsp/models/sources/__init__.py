"""Where a model file can come from, each behind `Source`."""
