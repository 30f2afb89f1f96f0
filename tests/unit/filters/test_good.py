"""Good continuations come out as they went in, streamed letter by letter and cleaned."""

from __future__ import annotations

import pytest

from monkeycode_lsp import filters, stops
from monkeycode_lsp.domain import Window

GOOD: list[tuple[str, str, str]] = [
    # language, document with `‸`, continuation
    ("python", "def add(a, b):\n    ‸\n", "return a + b"),
    ("python", "def add(a, b):\n‸\n", "    return a + b"),
    ("python", "def add(a, b):‸", "\n    return a + b"),
    ("python", "if a:\n   ‸", "foo(1,\n       2)"),
    ("python", "def f(a):\n    ‸\n    return b\n", "b = a\n    b += 1"),
    ("python", "total = ‸", "sum(x for x in xs)"),
    ("python", "total =‸", " sum(xs)"),
    ("python", "x = foo(‸)", "bar(1), baz[2]"),
    ("python", "x = foo(‸", "bar(1), 2)"),
    ("python", "x = foo(bar(‸)", "1), 2"),
    ("python", "result = call(‸\n", "\n    first,\n    second,\n)"),
    ("python", "xs = [‸]", "1, 2, 3"),
    ("python", "xs = ‸\n", "[\n    1,\n    2,\n]"),
    ("python", "for i in range(10):\n    ‸\n\nprint(1)\n", "if i % 2:\n        continue\n    print(i)"),
    ("python", "try:\n    ‸\n", "x = load()\nexcept OSError:\n    x = None"),
    ("python", "if a:\n    ‸\n", "b = 1\nelif c:\n    b = 2\nelse:\n    b = 3"),
    ("python", "def f(x):\n    ‸\n", "if x is None:\n        return 0\n\n    return x + 1"),
    ("python", "class A:\n    def __init__(self, a, b):\n        ‸\n", "self.a = a\n        self.b = b"),
    ("python", "print(f‸)", '"{a} and {b!r:>10}"'),
    ("python", "# Return ‸", "the sum of a and b."),
    ("python", 'def f():\n    """‸', 'Return the sum."""'),
    ("python", "xs = ‸", "[[0, 0, 0], [0, 0, 0], [0, 0, 0]]"),
    ("python", "import ‸\nimport sys\n", "os"),
    ("python", "‸\n", 'SEPARATOR = "-" * 80'),
    ("python", "def f():\n    with open(p) as f:\n        ‸\n    return data\n", "data = f.read()\n        data = data.strip()"),
    ("python", "assert f(1) == 2\n‸\nassert f(3) == 4\n", "assert f(2) == 3"),
    ("python", "x1 = f(1)\n‸\nx3 = f(3)\n", "x2 = f(2)"),
    ("python", "if a:\n    return True\n‸\n    return True\n", "if b:"),
    ("javascript", "function f(a) {\n  ‸\n}\n", "return a.map((x) => x * 2);"),
    ("javascript", "function f(a) {‸", "\n  return a;\n}"),
    ("javascript", "const x = ‸;", "a ? b : c"),
    ("javascript", "const x = `‸`;", "Hello ${name}, you are ${age}"),
    ("javascript", "items.forEach((item) => {\n  ‸\n});\n", "if (item.ok) {\n    use(item);\n  } else {\n    drop(item);\n  }"),
    ("javascript", "fetch(url)\n  ‸\n", ".then((r) => r.json())\n  .then(show);"),
    ("typescript", "interface A {\n  ‸\n}\n", "name: string;\n  age?: number;"),
    ("typescript", "const f = async (‸) => {}", "id: number"),
    ("typescript", "type A = Array<‸>;", "Map<string, number[]>"),
    ("go", "func add(a, b int) int {\n\t‸\n}\n", "return a + b"),
    ("go", "func f() error {\n\tx, err := g()\n\t‸\n\treturn nil\n}\n", "if err != nil {\n\t\treturn err\n\t}"),
    ("go", "var x = map[string]int{‸}", '"a": 1, "b": 2'),
    ("rust", "fn add(a: i32, b: i32) -> i32 {\n    ‸\n}\n", "a + b"),
    ("rust", "fn f<'a>(x: &'a str) -> &'a str {\n    ‸\n}\n", 'match x {\n        "a" => x,\n        _ => &x[1..],\n    }'),
    ("rust", "let v: Vec<‸> = vec![];", "(u8, &'static str)"),
    ("c", "for (int i = 0; ‸) {\n}\n", "i < n; i++"),
    ("c", "int main(void) {\n    ‸\n    return 0;\n}\n", 'printf("%d (%s)\\n", n, "x");'),
    ("cpp", "std::cout << ‸;", '"a" << std::endl'),
    ("java", "public class A {\n    ‸\n}\n", "private int x;\n    private int y;"),
    ("java", "class B {\n    @Override\n    ‸\n}\n", 'public String toString() {\n        return "A";\n    }'),
    ("ruby", "def f(x)\n  ‸\nend\n", "x.map { |y| y + 1 }"),
    ("ruby", "xs.each do‸", " |x|\n  puts x\nend"),
    ("lua", "function f(x)\n  ‸\nend\n", 'if x then\n    return "a" .. x\n  end'),
    ("shellscript", 'case "$1" in\n    ‸\nesac\n', "start) run ;;\n    stop) halt ;;"),
    ("html", "<ul>\n  ‸\n</ul>\n", "<li>one</li>\n  <li>two</li>"),
    ("html", "<p>‸</p>", "Hello <b>world</b>"),
    ("css", "a {\n  ‸\n}\n", "color: red;\n  margin: 0 auto;"),
    ("json", '{\n  "a": ‸\n}\n', "[1, 2, 3]"),
    ("yaml", "a:\n  ‸\n", "- b: 1\n    c: 2\n  - b: 3"),
    ("sql", "SELECT ‸ FROM t;", "a, count(*) AS n"),
    ("haskell", "f x = ‸", "g <$> h x <|> pure 1"),
    ("fsharp", "let y = ‸", "xs |> List.map f |> List.sum"),
    ("markdown", "1) first\n‸\n", "2) second"),
    ("latex", "\\begin{a}\n‸\n", "\\item one\n\\item two"),
    ("makefile", "all:\n\t‸\n", "cc -o a a.c"),
    ("plaintext", "Dear ‸", "Sir or Madam,"),
]


def place(document: str, language: str) -> Window:
    prefix, _, suffix = document.partition("‸")
    return Window(prefix=prefix, suffix=suffix, language=language, path="here")


@pytest.mark.parametrize(("language", "document", "good"), GOOD)
def test_a_good_continuation_is_not_damaged(language: str, document: str, good: str) -> None:
    window = place(document, language)
    plan = stops.plan(window, "auto")
    assert filters.clean(good, window, plan=plan) == good


@pytest.mark.parametrize(("language", "document", "good"), GOOD)
def test_a_stream_is_not_cut_inside_a_good_continuation(language: str, document: str, good: str) -> None:
    window = place(document, language)
    plan = stops.plan(window, "auto")
    for end in range(1, len(good) + 1):
        stop = stops.find(good[:end], window, plan)
        assert stop is None or stop.at >= len(good), (good[:end], stop)


@pytest.mark.parametrize(("language", "document", "good"), GOOD)
def test_cleaning_twice_is_cleaning_once(language: str, document: str, good: str) -> None:
    window = place(document, language)
    plan = stops.plan(window, "auto")
    for raw in (good, f"{good}\n\n\n", f"{good}<|endoftext|>", good + window.line_after):
        once = filters.clean(raw, window, plan=plan)
        assert filters.clean(once, window, plan=plan) == once
