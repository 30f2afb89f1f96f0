"""Which definitions come first, by what the document imports, and how each is quoted."""

from pathlib import Path

import pytest

from monkeycode_lsp.index import walk, wire
from monkeycode_lsp.index.ignoring import Rules
from monkeycode_lsp.symbols import imports
from tests.unit.index.workspaces import window, write


@pytest.fixture
def store(tmp_path):
    return tmp_path / "cache" / "index"


@pytest.fixture
def top(tmp_path):
    return tmp_path / "work"


async def found(top, store, document, text, *names, language="python"):
    """Where each name is found for a document of that text."""
    async with window(top, store) as index:
        await index.ready()
        return await index.find(*names, language=language, imported=imports.read(text, language), path=document)


CASES = {
    "an alias is what it is called where it is defined": (
        {"shop/cart.py": "class Cart: pass\n", "other.py": "class Cart: pass\n"},
        ("app.py", "from shop.cart import Cart as Basket\n", "python"),
        ["Basket"],
        ["shop/cart.py:Cart"],
    ),
    "of two names that are imported the more important first": (
        {"lib.py": "def second(): pass\n", "more.py": "def first(): pass\n"},
        ("app.py", "from lib import second\nfrom more import first\n", "python"),
        ["first", "second"],
        ["more.py:first", "lib.py:second"],
    ),
    "a package that passes a name on": (
        {
            "shop/__init__.py": "from .parts.cart import Cart\n",
            "shop/parts/cart.py": "class Cart: pass\n",
            "aa.py": "class Cart: pass\n",
        },
        ("app.py", "from shop import Cart\n", "python"),
        ["Cart"],
        ["shop/parts/cart.py:Cart", "aa.py:Cart"],
    ),
    "under another name twice": (
        {"shop/__init__.py": "from .cart import Inner as Cart\n", "shop/cart.py": "class Inner: pass\n"},
        ("app.py", "from shop import Cart as Basket\n", "python"),
        ["Basket"],
        ["shop/cart.py:Inner"],
    ),
    "a package that is imported whole": (
        {"shop/__init__.py": "from .cart import Cart\n", "shop/cart.py": "class Cart: pass\n", "aa.py": "class Cart: pass\n"},
        ("app.py", "import shop\n", "python"),
        ["Cart"],
        ["shop/cart.py:Cart", "aa.py:Cart"],
    ),
    "an index that passes everything on": (
        {
            "src/ui/index.ts": "export * from './button';\n",
            "src/ui/button.ts": "export class Button {}\n",
            "src/aa.ts": "export class Button {}\n",
        },
        ("src/app.ts", "import { Button } from './ui';\n", "typescript"),
        ["Button"],
        ["src/ui/button.ts:Button", "src/aa.ts:Button"],
    ),
    "a module that passes on what is inside it": (
        {
            "src/shop/mod.rs": "mod cart;\npub use self::cart::Cart;\n",
            "src/shop/cart.rs": "pub struct Cart { n: u8 }\n",
            "src/aa.rs": "pub struct Cart { n: u8 }\n",
        },
        ("src/main.rs", "use crate::shop::Cart;\n", "rust"),
        ["Cart"],
        ["src/shop/cart.rs:Cart", "src/aa.rs:Cart"],
    ),
    "in Go what the folder defines comes before the rest, also if everything defines it": (
        {f"m{n}/x.go": "package x\n\nfunc New() int { return 1 }\n" for n in range(40)} | {"m50/y.go": "package x\n\nfunc New() int { return 2 }\n"},
        ("m50/app.go", "package x\n", "go"),
        ["New"],
        ["m50/y.go:New"],
    ),
    "in Java what the package defines comes before what is defined once": (
        {"a/One.java": "class One {}\n", "b/Two.java": "class Two {}\n", "a/Two.java": "class Two {}\n"},
        ("b/App.java", "package b;\n", "java"),
        ["One", "Two"],
        ["b/Two.java:Two", "a/One.java:One", "a/Two.java:Two"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
async def test_what_the_document_imports_comes_first(top, store, name):
    files, (document, text, language), names, expected = CASES[name]
    write(top, files | {document: text})
    assert await found(top, store, document, text, *names, language=language) == expected


METHODS = {
    "cart.py": "class Cart(Base):\n    def total(self, tax):\n        return self.net * tax\n" + "\n    def more(self): ...\n" * 5,
    "cart.ts": "export class Cart extends Base {\n" + "  more() {}\n" * 9 + "  total(tax: number) {\n    return this.net * tax;\n  }\n}\n",
}


@pytest.mark.parametrize(
    ("language", "alone"),
    [
        ("python", "class Cart(Base):\n    def total(self, tax):\n        return self.net * tax"),
        ("typescript", "export class Cart extends Base {\n  total(tax: number) {\n    return this.net * tax;\n  }\n}"),
    ],
)
async def test_a_member_stands_in_its_class_unless_that_is_quoted_too(top, store, language, alone):
    write(top, METHODS)
    async with window(top, store) as index:
        await index.ready()
        (method,) = await index.definitions(["total"], language)
        assert method.text == alone
        _, beside = sorted(await index.definitions(["total", "Cart"], language), key=lambda one: one.kind)
        assert beside.text.startswith("total(" if language == "typescript" else "def total(")


LIMITS = {
    "files": (wire.Limits(files=3), "more than 3 files of source"),
    "folders": (wire.Limits(folders=3), "more than 3 folders"),
    "entries": (wire.Limits(entries=3), "more than 3 files"),
    "one folder": (wire.Limits(entries_of_folder=3), "a folder has more than 3 files"),
    "database": (wire.Limits(database_mb=0), "its database has reached 0 MB"),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_of_a_workspace_that_is_too_large_a_part_is_kept_and_people_are_told(top, store, name):
    limits, why = LIMITS[name]
    write(top, {f"d{n}/m{m}.py": f"def f{n}_{m}(): pass\n" for n in range(5) for m in range(5)})
    async with window(top, store, limits=limits) as index:
        await index.ready()
        assert index.status().files < 25
        assert why in index.status().why
        assert index.status().why.startswith("not complete: ")
        known = index.status().files
        if name in {"files", "database"}:
            write(top, {"d0/new.py": "def new(): pass\n"})
            index.changed([top / "d0" / "new.py", top / "d0" / "m0.py"])
            write(top, {"d0/m0.py": "def other(): pass\n"})
            if known:
                await index.comes(["d0/m0.py:other"], "other", "new")
                assert index.status().files == known
    async with window(top, store) as index:  # and what is left out comes as soon as it may
        await index.ready()
        assert index.status().files >= 25
        assert index.status().why == ""


async def test_what_is_nearest_to_the_top_is_kept(top, store):
    write(top, {f"{place}.py": "def here(): pass\n" for place in ("a/x/deep", "m/flat", "z/x/deep", "top")})
    async with window(top, store, limits=wire.Limits(files=2)) as index:
        await index.ready()
        assert sorted(await index.find("here")) == ["m/flat.py:here", "top.py:here"]


def test_what_shows_the_system_is_no_folder_of_a_disk(tmp_path):
    write(tmp_path, {"proc/a.py": "def one(): pass\n"})
    assert walk.may_enter("proc/", list, Rules(tmp_path, ()))
    disk = Path(tmp_path.anchor)
    assert not any(walk.may_enter(f"{name}/", list, Rules(disk, ())) for name in ("proc", "sys", "dev", "run"))
    assert walk.may_enter("srv/proc/", list, Rules(disk, ()))
