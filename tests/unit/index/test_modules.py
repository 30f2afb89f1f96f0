"""What a module offers whose member is being completed."""

import pytest

from monkeycode_lsp.symbols import imports, names
from tests.unit.index.workspaces import window, write

PRICING = (
    "RATE = 0.2\n_SECRET = 1\n\n\ndef total(\n    items: list[int],\n    rate: float = RATE,\n) -> float:\n"
    + "    # long\n" * 20
    + "    return 1\n\n\ndef _hidden(): pass\n\n\nclass Price:\n    value: int\n    def shown(self) -> str:\n        return ''\n"
)
OFFERED = ["RATE = 0.2", "def total(items: list[int], rate: float = RATE) -> float: ...", "class Price:"]
GO = "package pricing\n\n// Total sums.\nfunc Total(items []int) float64 {\n\treturn 1\n}\n\nfunc hidden() {}\n"
TS = "export function total(items: number[]): number {\n  return 1\n}\n\nexport const rate = 2\n"
CASES = {
    "a module of a package": ("python", "app.py", "from shop import pricing\n\npricing.", {"shop/pricing.py": PRICING}, OFFERED),
    "a module under another name": ("python", "app.py", "import shop.pricing as p\n\np.", {"shop/pricing.py": PRICING}, OFFERED),
    "a module by its whole name": ("python", "app.py", "import shop.pricing\n\nshop.pricing.to", {"shop/pricing.py": PRICING}, OFFERED),
    "a module beside": ("python", "shop/app.py", "from . import pricing as p\n\nx = p.", {"shop/pricing.py": PRICING}, OFFERED),
    "Lua": (
        "lua", "main.lua", "local util = require('lib.util')\n\nutil.",
        {"lib/util.lua": "local M = {}\n\nlocal function hidden() end\n\nfunction M.trim(s)\n  return s\nend\n\nreturn M\n"}, ["function M.trim(s)"],
    ),
    "TypeScript": ("typescript", "src/a.ts", "import * as x from './x'\n\nx.", {"src/x.ts": TS}, ["export function total(items: number[]): number", "export const rate = 2"]),
    "Go": (
        "go", "main.go", 'package main\n\nimport "example.com/shop/pricing"\n\nfunc main() {\n\tpricing.',
        {"pricing/a.go": GO, "pricing/b.go": "package pricing\n\ntype Price struct{ Value int }\n"},
        ["func Total(items []int) float64", "type Price struct{ Value int }"],
    ),
    "Rust": (
        "rust", "src/main.rs", "use crate::pricing;\n\nfn main() { pricing::",
        {"src/pricing.rs": "pub fn total(items: &[u32]) -> u32 {\n    1\n}\n\nfn hidden() {}\n"}, ["pub fn total(items: &[u32]) -> u32"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_what_an_imported_module_offers_comes_first(tmp_path, case):
    language, document, text, files, offered = CASES[case]
    write(tmp_path / "work", {"a/other.py": "class Other: pass\n", **files})
    async with window(tmp_path / "work", tmp_path / "index") as index:
        await index.ready()
        found = await index.definitions(names.near(text, "", language), language, imports.read(text, language), path=document)
        told = [one for one in found if one.kind == "module"]
        assert [line for one in told for line in one.text.split("\n") if not line.endswith("= {}")] == offered
        assert found[: len(told)] == told
        assert {one.path for one in told} == set(files)


@pytest.mark.parametrize("text", ["x = 1\nx.", "self.", "from shop import pricing\n\npricing().", "import other\n\npricing."])
async def test_what_is_no_imported_module_offers_nothing(tmp_path, text):
    write(tmp_path / "work", {"shop/pricing.py": PRICING, "x.py": "def a(): pass\n"})
    async with window(tmp_path / "work", tmp_path / "index") as index:
        await index.ready()
        found = await index.definitions(names.near(text, "", "python"), "python", imports.read(text, "python"), path="app.py")
        assert [one for one in found if one.kind == "module"] == []
