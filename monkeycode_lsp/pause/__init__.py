"""Predicts how long the user will pause after a key: features, habits and survival arithmetic (pure)."""
