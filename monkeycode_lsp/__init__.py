"""AI completions as ghost text for every editor that speaks LSP."""

__version__ = "0.1.0"
