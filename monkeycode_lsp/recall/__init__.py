"""Recall: suggestions worth using again, looked up by what they mean here and now.  Read `lookup` first."""
