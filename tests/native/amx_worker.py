"""The real worker with a build that dies of an illegal instruction while extra buffers are on."""

from __future__ import annotations

import os
import signal

from monkeycode_lsp.engines.local.host import worker
from monkeycode_lsp.engines.local.llama.decoder import LlamaDecoder


class BrokenBuild(LlamaDecoder):
    def load(self):
        if self._options.extra_buffers:
            os.kill(os.getpid(), signal.SIGILL)
        return super().load()


if __name__ == "__main__":
    raise SystemExit(worker.main(make_decoder=BrokenBuild))
