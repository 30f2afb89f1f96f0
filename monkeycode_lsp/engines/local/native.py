"""The native engine as the editor's server sees it: a child process that owns the model.  Never imports llama_cpp.

The child is started by the first ask and again after it died, with growing pauses.  Asks are put in
order by the child; closing a stream ends its generation there before the close returns.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import msgspec

from monkeycode_lsp.config import Local
from monkeycode_lsp.domain import Chunk, Finish, Prompt, Usage
from monkeycode_lsp.engines.base import Model
from monkeycode_lsp.engines.local import explain, ladder, rendezvous, verdict, wire
from monkeycode_lsp.engines.local.child import Child
from monkeycode_lsp.engines.local.ladder import Attempt, Fall
from monkeycode_lsp.engines.local.launch import WORKER
from monkeycode_lsp.engines.local.link import Answer, Event, Link, LinkLostError
from monkeycode_lsp.errors import ContextOverflowError, EngineBusyError, EngineError, EngineRefusedError, EngineUnavailableError, StreamBrokenError
from monkeycode_lsp.prompt import by_vocabulary
