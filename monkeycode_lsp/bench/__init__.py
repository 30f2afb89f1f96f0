"""Benchmarks that users can run too.  Every figure stands beside a floor measured in the same run."""
