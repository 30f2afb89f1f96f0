"""Where an imported module may be in the workspace."""

from __future__ import annotations

import pytest

from monkeycode_lsp.symbols import imports, paths

CASES = [
    # language, the importing file, what it says, what is in the workspace, what is meant
    ("python", "src/pkg/a/b.py", "from pkg.c import D", ["src/pkg/c.py"], "src/pkg/c.py"),
    ("python", "src/pkg/a/b.py", "from pkg import c", ["src/pkg/c.py"], "src/pkg/c.py"),
    ("python", "src/pkg/a/b.py", "import pkg.c", ["src/pkg/c/__init__.py"], "src/pkg/c/__init__.py"),
    ("python", "src/pkg/a/b.py", "from . import c", ["src/pkg/a/c.py", "src/pkg/c.py"], "src/pkg/a/c.py"),
    ("python", "src/pkg/a/b.py", "from ..c import D", ["src/pkg/c.py"], "src/pkg/c.py"),
    ("python", "tests/unit/test_b.py", "from pkg.c import D", ["src/pkg/c.py"], "src/pkg/c.py"),
    ("python", "tests/unit/test_b.py", "from pkg.c import D", ["pkg/c.py", "old/pkg/c.py"], "pkg/c.py"),
    ("python", "services/api/run.py", "from app.models import User", ["services/api/app/models.py"], "services/api/app/models.py"),
    ("python", "scripts/run.py", "import common", ["scripts/common.py", "common.py"], "scripts/common.py"),
    ("python", "scripts/run.py", "import json", ["scripts/json.py"], None),
    ("python", "a.py", "from ...x import y", ["x.py"], None),
    ("typescript", "src/app/m.ts", "import a from './x'", ["src/app/x.tsx"], "src/app/x.tsx"),
    ("typescript", "src/app/m.ts", "import a from './x'", ["src/app/x/index.ts"], "src/app/x/index.ts"),
    ("typescript", "src/app/m.ts", "import a from '../y.js'", ["src/y.ts"], "src/y.ts"),
    ("typescript", "src/app/m.ts", "import a from '@/lib/z'", ["web/src/lib/z.ts", "src/lib/z.ts"], "src/lib/z.ts"),
    ("typescript", "web/src/app/m.ts", "import a from '@/lib/z'", ["web/src/lib/z.ts"], "web/src/lib/z.ts"),
    ("typescript", "packages/a/m.ts", "import a from '@org/b'", ["packages/b/src/index.ts"], "packages/b/src/index.ts"),
    ("typescript", "m.ts", "import React from 'react'", ["react.ts"], None),
    ("javascript", "lib/m.js", "const a = require('./x')", ["lib/x.js", "lib/x.ts"], "lib/x.js"),
    ("javascript", "lib/m.js", "import '../../x'", ["x.js"], None),
    ("go", "cmd/m.go", 'import "github.com/x/y/internal/z"', ["internal/z/z.go"], "internal/z/z.go"),
    ("go", "cmd/m.go", 'import "myapp/store"', ["store/store.go"], "store/store.go"),
    ("go", "svc/m.go", 'import "github.com/x/y/z"', ["w/z.go", "mod/z/z.go"], "mod/z/z.go"),
    ("go", "cmd/m.go", 'import "net/http"', ["http/a.go"], None),
    ("rust", "src/x/y.rs", "use crate::a::b::C;", ["src/a/b.rs"], "src/a/b.rs"),
    ("rust", "crates/core/src/x.rs", "use crate::a::b::C;", ["crates/core/src/a/mod.rs", "src/a.rs"], "crates/core/src/a/mod.rs"),
    ("rust", "src/x/y.rs", "use super::d::E;", ["src/x/d.rs"], "src/x/d.rs"),
    ("rust", "src/x/mod.rs", "use super::d::E;", ["src/d.rs"], "src/d.rs"),
    ("rust", "src/x/mod.rs", "mod f;", ["src/x/f.rs"], "src/x/f.rs"),
    ("rust", "src/main.rs", "mod f;", ["src/f/mod.rs"], "src/f/mod.rs"),
    ("rust", "app/src/main.rs", "use my_core::G;", ["crates/my-core/src/lib.rs"], "crates/my-core/src/lib.rs"),
    ("rust", "src/main.rs", "use std::io;", ["src/io.rs"], None),
    ("java", "src/main/java/com/a/x/Y.java", "import com.a.b.C;", ["src/main/java/com/a/b/C.java"], "src/main/java/com/a/b/C.java"),
    ("java", "src/test/java/com/a/Y.java", "import com.a.b.C;", ["src/main/java/com/a/b/C.java"], "src/main/java/com/a/b/C.java"),
    ("java", "src/Y.java", "import static com.a.D.e;", ["src/com/a/D.java"], "src/com/a/D.java"),
    ("java", "src/com/Y.java", "import com.z.*;", ["src/com/z/A.java"], "src/com/z/A.java"),
    ("java", "Y.java", "import java.util.List;", ["java/util/List.java"], None),
    ("kotlin", "src/main/kotlin/a/D.kt", "import a.b.f", ["src/main/kotlin/a/b/Things.kt"], "src/main/kotlin/a/b/Things.kt"),
    ("scala", "src/a/D.scala", "import a.b.C", ["src/a/b/C.scala"], "src/a/b/C.scala"),
    ("c", "src/x/y.c", '#include "a.h"', ["include/a.h", "src/x/a.h"], "src/x/a.h"),
    ("cpp", "src/x/y.cpp", "#include <lib/d.hpp>", ["third/lib/d.hpp"], "third/lib/d.hpp"),
    ("c", "src/y.c", "#include <stdio.h>", ["stdio.h"], None),
    ("cpp", "src/y.cpp", "#include <vector>", ["vector"], None),
    ("csharp", "X.cs", "using Shop.Models;", ["Shop/Models/User.cs"], "Shop/Models/User.cs"),
    ("ruby", "lib/x/y.rb", "require_relative '../c'", ["lib/c.rb"], "lib/c.rb"),
    ("ruby", "test/y.rb", "require 'x/base'", ["lib/x/base.rb"], "lib/x/base.rb"),
    ("php", "src/C.php", "use App\\Models\\User;", ["src/Models/User.php"], "src/Models/User.php"),
    ("swift", "Tests/T.swift", "import Core", ["Sources/Core/A.swift"], "Sources/Core/A.swift"),
    ("lua", "init.lua", "local a = require('b.c')", ["lua/b/c.lua"], "lua/b/c.lua"),
    ("bash", "bin/x.sh", '. "$DIR/y.sh"', ["bin/y.sh"], "bin/y.sh"),
]


@pytest.mark.parametrize(("language", "path", "line", "files", "meant"), CASES)
def test_an_import_leads_to_the_file_that_it_means(language: str, path: str, line: str, files: list[str], meant: str | None) -> None:
    text = f"<?php\n{line}\n" if language == "php" else line + "\n"
    [imported] = imports.read(text, language)
    candidates = paths.resolve(imported, path, language)
    assert len(candidates) <= paths.MAX_CANDIDATES
    found = next((file for candidate in candidates for file in files if paths.fits(candidate, file)), None)
    assert found == meant


@pytest.mark.parametrize(
    ("candidate", "path", "fits"),
    [
        ("a/b.py", "a/b.py", True),
        ("a/b.py", "x/a/b.py", False),
        ("*/a/b.py", "a/b.py", True),
        ("*/a/b.py", "x/a/b.py", True),
        ("*/a/b.py", "xa/b.py", False),
        ("a/", "a/b.go", True),
        ("a/", "a/c/b.go", False),
        ("a/", "x/a/b.go", False),
        ("*/a/", "x/a/b.go", True),
        ("*/a/", "xa/b.go", False),
        ("*/a/", "b.go", False),
    ],
)
def test_a_candidate_fits_a_file_or_a_folders_files(candidate: str, path: str, fits: bool) -> None:  # noqa: FBT001 - a column of the table
    assert paths.fits(candidate, path) is fits


def test_a_file_never_imports_itself() -> None:
    [imported] = imports.read("import common\n", "python")
    assert "scripts/common.py" not in paths.resolve(imported, "scripts/common.py", "python")
