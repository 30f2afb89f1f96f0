"""What the installed llama.cpp was built for, and the one place where its words go: our log."""

from __future__ import annotations

import ctypes
import logging
from collections import deque

import llama_cpp

from monkeycode_lsp.engines.local.llama import devices
from monkeycode_lsp.engines.local.wire import Build

logger = logging.getLogger(__name__)

_CONTINUED = 5
"""llama.cpp's log level of a line that goes on."""
_LEVELS = {3: logging.WARNING, 4: logging.ERROR}
_NOTABLE_FEATURES = ("AMX_INT8", "AVX512", "AVX2", "NEON", "SVE")
_PLAIN_BACKEND = "CPU"


class _Log:
    """Takes what llama.cpp says.  One for the process, as the library has one callback and keeps its bare pointer."""

    def __init__(self) -> None:
        # The mutable state is the last errors, which are cleared before something is tried that may fail, and
        # whether the errors that come now are expected: llama.cpp calls a stop that we asked for a failure.
        self.complaints: deque[str] = deque(maxlen=3)
        self.expects_errors = False
        self._callback = llama_cpp.llama_log_callback(self._on_line)

    def install(self) -> None:
        self.complaints.clear()
        llama_cpp.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _on_line(self, level: int, text: bytes | None, _data: object) -> None:
        line = (text or b"").decode("utf-8", errors="replace").strip()
        if not line or level == _CONTINUED:
            return
        number = logging.DEBUG if self.expects_errors else _LEVELS.get(level, logging.DEBUG)
        if number >= logging.ERROR:
            self.complaints.append(line)
        logger.log(number, "%s", line)


LOG = _Log()


def installed_build() -> Build:
    """What the installed library can do; loads no model."""
    system = llama_cpp.llama_print_system_info().decode("utf-8", errors="replace").strip(" |\n")
    groups = [group.strip() for group in system.split("|")]
    features = {group.rpartition(" : ")[2].partition(" = ")[0] for group in groups if not group.endswith("= 0")}
    # Where the library's list of back ends is out of reach, those are known that have features to tell of.
    backends = devices.backends() or tuple(group.partition(" : ")[0] for group in groups if " : " in group)
    return Build(
        version=str(llama_cpp.__version__),
        system=system,
        accelerators=(
            *(name for name in backends if name != _PLAIN_BACKEND),
            *(name for name in _NOTABLE_FEATURES if name in features),
        ),
        gpu=bool(llama_cpp.llama_supports_gpu_offload()),
    )
