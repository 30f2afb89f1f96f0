from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
from monkeycode_lsp.models import build, catalogue, gguf, hardware, pull, recommend, resolve
catalogue.entries()
print(sorted({"httpx", "asyncio", "rich", "llama_cpp", "xllamacpp", "numpy"} & set(sys.modules)))
"""


def test_the_package_imports_nothing_heavy():
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
