"""All settings.  Read `tree` (what there is), then `decoding` (how it is read)."""

from __future__ import annotations

from monkeycode_lsp.config.decoding import FROM_WORKSPACE_NEVER, decode, fields, from_environment, merge, without_workspace_secrets
from monkeycode_lsp.config.tree import (
    Cache,
    Completion,
    Config,
    Context,
    Debounce,
    Endpoint,
    Local,
    LookAhead,
    Privacy,
    Remote,
    Scripted,
    Template,
)

__all__ = [
    "FROM_WORKSPACE_NEVER",
    "Cache",
    "Completion",
    "Config",
    "Context",
    "Debounce",
    "Endpoint",
    "Local",
    "LookAhead",
    "Privacy",
    "Remote",
    "Scripted",
    "Template",
    "decode",
    "fields",
    "from_environment",
    "merge",
    "without_workspace_secrets",
]
