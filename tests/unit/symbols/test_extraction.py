"""What a file defines, by language, and the text that is worth quoting of it."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monkeycode_lsp.symbols.extraction import extract
from monkeycode_lsp.symbols.model import MAX_LINES, MAX_TEXT, Symbol
from monkeycode_lsp.symbols.shapes import SHAPES

SOURCES = {
    "python": """\
import os
LIMIT: int = 5
Name = str
type Pair[T] = tuple[T, T]
if os.name:
    PLACE = 1
@cache
@app.get("/x",
    y=1)
async def fetch(url: str, *, n: int = 1) -> bytes:
    '''Get the page.

    And more.
    '''
    def inner():
        pass
    one = 1
    two = 2
    three = 3
    return await get(url)
class Client(Base, metaclass=Meta):
    \"\"\"Talks to the server.\"\"\"

    retries: int = 3
    _secret = 1
    class Inner:
        pass
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self._pool: Pool = Pool(
            url,
        )
        if url == 1:
            self.late = True
    @property
    def name(self) -> str:
        \"\"\"Its name.\"\"\"
        return "x"
    async def load(
        self,
        path: str,
    ) -> bytes:
        return b""
""",
    "typescript": """\
/** Talks.
 * More. */
@Component({ a: 1 })
export default class Client extends Base<Foo> implements I {
  private url: string = "";
  static count = 1;
  constructor(private http: Http, url: string) {
    super();
    this.url = url;
  }
  get name(): string { return this.url; }
  load = async (x: number): Promise<void> => {
    await x;
  };
  protected abstract go(): void;
}
export interface Shape { a: string; area(scale: number): number }
export type Id = string | number;
export enum Color { Red, Green = 2 }
namespace Inner { export function help() { return 1; } }
export const make = async (x: number): Promise<Client> => {
  const a = 1;
  const b = 1;
  const c = 1;
  const d = 1;
  const e = 1;
  const f = 1;
  return new Client();
};
const LIMIT = 5, OTHER = 6;
declare function ambient(a: string): void;
""",
    "javascript": """\
exports.first = function (a) { return a; };
module.exports = { second(a) { return a; }, third: (b) => b, fourth: 1 };
function Old() {}
Old.prototype.act = function (x) { return x; };
class New { #hidden = 1; act(x) { return x; } }
function* gen() {}
const { a, b } = gen();
""",
    "go": """\
package p

// Server serves.
// More.
type Server struct {
	Addr string `json:"addr"`
	*Base
}
type Handler interface {
	Serve(w Writer) error
}
type (
	ID = int
	Fn func(int) error
)
const (
	First = iota
	Second
)
var a, b = 1, 2
func New(addr string) (*Server, error) {
	return nil, nil
}
func (s *Server) Serve(w Writer) error {
	return nil
}
func Map[T any](x []T) {}
""",
    "rust": """\
/// A point.
#[derive(Debug)]
pub struct Point<T> { pub x: T }
struct Id(u32);
pub enum Shape { Dot, Line(u32) }
impl<T> Point<T> {
    pub fn new(x: T) -> Self { Self { x } }
    const ZERO: i32 = 0;
}
impl Draw for Point<i32> { fn draw(&self) {} }
pub trait Draw { type Out; fn draw(&self); fn twice(&self) { self.draw() } }
type Alias = u32;
const LIMIT: usize = 1;
static NAME: &str = "x";
macro_rules! say { () => {} }
mod inner { pub fn help() {} }
mod other;
""",
    "java": """\
package a;
/** Serves. */
@Ann public class Server<T> extends Base implements Runnable {
    private int port = 1;
    static final int LIMIT = 2;
    public Server(int port) { this.port = port; }
    @Override public void run() throws E { }
    interface Hook { void call(); }
    enum State { ON, OFF; void flip() { } }
}
record Pair(int a, String b) { int sum() { return a; } }
@interface Ann { String value(); }
""",
    "c": """\
#define LIMIT 5
#define MAX(a, b) ((a) > (b))
typedef struct { int a; } Plain;
struct Node { int value; struct Node *next; };
enum Color { RED, GREEN };
enum { ONE, TWO };
typedef int (*callback)(int);
int add(int a, char *b);
static int *find(void) { return 0; }
extern int counter;
#ifdef X
int hidden(void);
#endif
union Both { int a; };
struct Node *forward;
""",
    "cpp": """\
namespace app {
template <class T> class Box : public Base {
public:
  Box(int x);
  ~Box() {}
  int get() const override;
  virtual int size() = 0;
private:
  int x_;
  enum class Kind { A, B };
};
}
int app::Box::get() const { return 1; }
using Name = std::string;
extern "C" { void plain(); }
constexpr int LIMIT = 1;
template <typename T> T twice(T x) { return x; }
Box operator+(const Box& a, const Box& b) { return a; }
""",
    "csharp": """\
namespace Shop.Models {
  /// <summary>Buys.</summary>
  [Attr] public class Order<T> : Base where T : C {
    private int x = 1;
    public int Total { get; set; }
    public Order(int x) { }
    public int Sum(string s) => 1;
    enum State { On, Off }
  }
  public interface IOrder { void Pay(); }
  record Pair(int A);
  struct Point { int X; }
  delegate int Op(int a);
}
""",
    "ruby": """\
# Talks.
module App
  class Client < Base
    attr_reader :url
    LIMIT = 1
    def initialize(url)
      @url = url
    end
    def self.make(a, b: 1) = new(a)
    class << self
      def build; end
    end
  end
end
def helper(x)
  x
end
""",
    "php": """\
<?php
namespace A\\B;
/** Serves. */
abstract class Server extends Base implements C {
    use Helper;
    const LIMIT = 1;
    private ?int $port = 1;
    public function __construct(private int $y) { }
    public static function make(string $s): self { return new self(1); }
    abstract function run();
}
interface Hook { function call(); }
trait Helper { function help() {} }
enum State: string { case On = 'a'; }
function top(int $a) { }
const OTHER = 1;
""",
    "kotlin": """\
package a
/** Serves. */
@Ann
data class Server<T>(val x: Int, private val y: String) : Base(x), C {
    val z: Int = 1
    companion object {
        fun make() = Server(1)
    }
    constructor(a: Int) : this(a, "")
    override fun run(s: String): Int { return 1 }
}
interface Hook {
    fun call()
}
object Single {
    fun go() {}
}
enum class State(val x: Int) {
    ON(1), OFF(2);
    fun flip() {}
}
typealias Name = String
fun <T> List<T>.second(x: Int): T = this[1]
const val LIMIT = 1
""",
    "swift": """\
/// Serves.
@objc public class Server<T>: Base, C {
    private var x: Int = 1
    init(x: Int) { self.x = x }
    func run(_ s: String) throws -> Int { return 1 }
}
struct Point { var a: Int }
protocol Hook { func call() -> Int }
enum State: String { case on, off }
extension Server { func more() {} }
typealias Name = String
func top() {}
let limit = 1
""",
    "scala": """\
package a
/** Serves. */
case class Server[T](x: Int) extends Base with C {
  val z: Int = 1
  def run(s: String): Int = { 1 }
}
trait Hook { def call(): Unit }
object Single { def go() = 1 }
enum Color { case Red, Green }
type Name = String
val Limit = 1
def top(x: Int): Int = x
""",
    "lua": """\
-- The module.
local M = {}
local function private(x) return 1 end
function M.open(a, b) return 1 end
function M:close(a) end
M.other = function(x) end
local LIMIT = 5
""",
    "bash": "# Says.\nsay() { echo; }\nfunction go { echo; }\nLIMIT=1\nreadonly OTHER=2\n",
}

DEFINED = {
    "python": "LIMIT:constant Name:constant Pair:type PLACE:constant fetch:function Client:class Client.Inner:class"
    " Client.__init__:method Client.name:method Client.load:method",
    "typescript": "Client:class Client.constructor:method Client.name:method Client.load:method Client.go:method Shape:class"
    " Shape.area:method Id:type Color:class Inner:module Inner.help:function make:function LIMIT:constant OTHER:constant ambient:function",
    "javascript": "first:function exports.second:function exports.third:function Old:function Old.act:method New:class New.act:method gen:function",
    "go": "Server:class Handler:class Handler.Serve:method ID:type Fn:type First:constant Second:constant a:constant b:constant"
    " New:function Server.Serve:method Map:function",
    "rust": "Point:class Id:class Shape:class Point.new:method Point.draw:method Draw:class Draw.draw:method Draw.twice:method"
    " Alias:type LIMIT:constant NAME:constant say:macro inner:module inner.help:function",
    "java": "Server:class Server.Server:method Server.run:method Server.Hook:class Hook.call:method Server.State:class State.flip:method"
    " Pair:class Pair.sum:method Ann:class Ann.value:method",
    "c": "LIMIT:macro MAX:macro Plain:class Node:class Color:class ONE:constant TWO:constant callback:type add:function find:function"
    " counter:constant hidden:function Both:class forward:constant",
    "cpp": "app:module app.Box:class Box.Box:method Box.~Box:method Box.get:method Box.size:method Box.Kind:class Box.get:method"
    " Name:type plain:function LIMIT:constant twice:function operator+:function",
    "csharp": "Shop:module Shop.Order:class Order.Order:method Order.Sum:method Order.State:class Shop.IOrder:class IOrder.Pay:method"
    " Shop.Pair:class Shop.Point:class Shop.Op:type",
    "ruby": "App:class App.Client:class Client.initialize:method Client.make:method Client.build:method helper:function",
    "php": "Server:class Server.__construct:method Server.make:method Server.run:method Hook:class Hook.call:method Helper:class"
    " Helper.help:method State:class top:function OTHER:constant",
    "kotlin": "Server:class Server.make:method Server.constructor:method Server.run:method Hook:class Hook.call:method Single:class"
    " Single.go:method State:class State.flip:method Name:type second:function LIMIT:constant",
    "swift": "Server:class Server.init:method Server.run:method Point:class Hook:class Hook.call:method State:class Server.more:method"
    " Name:type top:function limit:constant",
    "scala": "Server:class Server.run:method Hook:class Hook.call:method Single:class Single.go:method Color:class Name:type"
    " Limit:constant top:function",
    "lua": "M:constant private:function M.open:method M.close:method M.other:method LIMIT:constant",
    "bash": "say:function go:function LIMIT:constant OTHER:constant",
}


def of(symbols: list[Symbol], name: str) -> Symbol:
    return next(symbol for symbol in symbols if symbol.name == name)


@pytest.mark.parametrize("language", SOURCES)
def test_everything_that_a_file_defines_is_found(language: str) -> None:
    found = extract(SOURCES[language], language)
    assert sorted(f"{one.container}.{one.name}:{one.kind}".removeprefix(".") for one in found) == sorted(DEFINED[language].split())


@pytest.mark.parametrize("language", SOURCES)
def test_a_symbols_lines_hold_its_name(language: str) -> None:
    lines = SOURCES[language].split("\n")
    for symbol in extract(SOURCES[language], language):
        assert symbol.start_line <= symbol.end_line
        assert symbol.name in "\n".join(lines[symbol.start_line : symbol.end_line + 1])


def source_of(language: str) -> str:
    return SOURCES.get(language) or SOURCES.get(language.removesuffix("react"), SOURCES["bash"])


def check(language: str, name: str, *lines: str) -> None:
    assert of(extract(SOURCES[language], language), name).text == "\n".join(lines)


def test_a_long_python_function_is_its_signature_and_the_docstrings_first_line() -> None:
    check(
        "python",
        "fetch",
        '@cache\n@app.get("/x", ...\nasync def fetch(url: str, *, n: int = 1) -> bytes:\n    """Get the page."""\n    ...',
    )


def test_a_python_class_is_an_outline_with_what_its_constructor_sets() -> None:
    check(
        "python",
        "Client",
        "class Client(Base, metaclass=Meta):",
        '    """Talks to the server."""',
        "    retries: int = 3",
        "    _secret = 1",
        "    class Inner: ...",
        "    def __init__(self, url: str) -> None:",
        "        self.url = url",
        "        self._pool: Pool = Pool( ...",
        "        self.late = True",
        "    @property",
        "    def name(self) -> str: ...",
        "    async def load(self, path: str) -> bytes: ...",
    )


def test_a_short_definition_is_quoted_whole_and_dedented() -> None:
    check("python", "name", '@property\ndef name(self) -> str:\n    """Its name."""\n    return "x"')
    check("go", "New", "func New(addr string) (*Server, error) {\n\treturn nil, nil\n}")


def test_a_typescript_class_is_an_outline() -> None:
    check(
        "typescript",
        "Client",
        "// Talks.",
        "@Component({ a: 1 })",
        "export default class Client extends Base<Foo> implements I {",
        '  private url: string = "";',
        "  static count = 1;",
        "  constructor(private http: Http, url: string) {",
        "    this.url = url;",
        "  }",
        "  get name(): string;",
        "  load = async (x: number): Promise<void> => ...",
        "  protected abstract go(): void",
        "}",
    )
    check("typescript", "make", "export const make = async (x: number): Promise<Client> => { ... }")
    check("typescript", "OTHER", "const OTHER = 6")


def test_methods_that_stand_outside_belong_to_the_outline() -> None:
    check(
        "go",
        "Server",
        '// Server serves.\ntype Server struct {\n\tAddr string `json:"addr"`\n\t*Base\n}\nfunc (s *Server) Serve(w Writer) error',
    )
    check(
        "rust",
        "Point",
        "// A point.",
        "#[derive(Debug)]",
        "pub struct Point<T> {",
        "    pub x: T",
        "}",
        "impl<T> Point<T> {",
        "    pub fn new(x: T) -> Self;",
        "    const ZERO: i32 = 0;",
        "}",
        "impl Draw for Point<i32> {",
        "    fn draw(&self);",
        "}",
    )
    assert of(extract(SOURCES["swift"], "swift"), "Server").text.endswith("}\nextension Server {\n    func more()\n}")
    check("lua", "M", "-- The module.\nlocal M = {}\nfunction M.open(a, b) end\nfunction M:close(a) end\nM.other = function(x) end")


def test_one_of_several_keeps_its_keyword() -> None:
    check("go", "Second", "const Second")
    check("go", "Fn", "type Fn func(int) error")


def test_what_a_c_struct_is_called_last_is_kept() -> None:
    fields = "".join(f"  int field_{n};\n" for n in range(12))
    assert extract(f"typedef struct {{\n{fields}}} Plain;\n", "c")[0].text.endswith("\n  int field_11;\n} Plain;")


def test_a_header_of_cpp_is_read_as_such_and_export_macros_do_not_hide_a_class() -> None:
    text = "namespace a {\nclass LIB_API Box : public Base {\n public:\n  int get();\n};\n}\n"
    box = of(extract(text, "c"), "Box")
    assert box.text == "class LIB_API Box : public Base {\n public:\n  int get();\n};"


def test_a_large_class_loses_its_private_members_first() -> None:
    methods = "".join(f"    def {'_' if n % 2 else ''}method_{n}(self):\n        return {n}\n" for n in range(200))
    text = extract(f"class Large:\n{methods}", "python")[0].text
    assert "def method_0(" in text
    assert "_method_1(" not in text
    assert text.endswith("    ...")
    assert text.count("\n") < MAX_LINES


def test_a_broken_file_gives_what_can_be_read() -> None:
    found = extract("class A:\n    def f(self): return 1\n\n    def g(self, x:\n\ndef h(): return 2\nclass B(\n", "python")
    assert {"A", "f"} <= {symbol.name for symbol in found}
    found = extract("public class A { int f() { return 1; } void g() { if (x { } \n int h() { return 2; }", "java")
    assert "f" in {symbol.name for symbol in found}


def test_where_the_grammar_is_lost_the_look_of_lines_helps() -> None:
    found = extract("interface I { fun m() }\nobject O { fun q() {} }\nenum class E { A, B; fun z() {} }\n", "kotlin")
    assert {"I", "O", "E"} <= {symbol.name for symbol in found}


def test_a_language_without_a_grammar_is_read_by_the_look_of_its_lines() -> None:
    text = "defmodule App.Client do\n  def load(x) do\n    x\n  end\n\n  defp help(y), do: y\nend\n"
    found = extract(text, "elixir")
    assert [(one.name, one.kind, one.container, one.start_line, one.end_line) for one in found] == [
        ("Client", "class", "", 0, 6),
        ("load", "method", "Client", 1, 3),
        ("help", "method", "Client", 5, 5),
    ]
    assert found[1].text == "def load(x) do\n  x\nend"


def test_plain_text_and_data_define_nothing() -> None:
    assert extract("type of thing\nclass of people\n", "plaintext") == []
    assert extract('{"def": "class x"}', "json") == []


def test_an_unclosed_nest_is_no_recursion() -> None:
    for language in ("python", "javascript", "c"):
        extract("(" * 20_000, language)
        extract("class A:\n" if language == "python" else "class A {" * 3_000, language)
        extract("".join("    " * depth + f"class A{depth}:\n" for depth in range(120)), language)


@pytest.mark.parametrize("language", [*sorted(SHAPES), "elixir"])
def test_a_large_file_is_read_in_bounded_time(language: str) -> None:
    source = source_of(language)
    text = source * (200_000 // len(source))
    started = time.process_time()
    check_bounds(extract(text, language))
    assert time.process_time() - started < 10


def check_bounds(symbols: list[Symbol]) -> None:
    for symbol in symbols:
        assert symbol.name
        assert symbol.text.strip()
        assert len(symbol.text) <= MAX_TEXT
        assert symbol.text.count("\n") < MAX_LINES
        assert 0 <= symbol.start_line <= symbol.end_line


@pytest.mark.parametrize(
    ("language", "text", "header"),
    [
        ("python", "@decorated\nclass A(\n    B,\n    C,\n):\n    def f(self): ...\n", "class A(B, C):"),
        ("typescript", "export class A<T> extends B {\n  f() {}\n}\n", "export class A<T> extends B {"),
        ("rust", "impl Show for A {\n    fn f(&self) {}\n}\n", "impl Show for A {"),
        ("java", "class A {\n  void f() {}\n}\n", "class A {"),
        ("go", "func (a *A) f() {}\n", ""),
        ("cpp", "void A::f() {}\n", ""),
        ("cpp", "namespace a {\nvoid f() {}\n}\n", ""),
        ("python", "def f(): ...\n", ""),
        ("elixir-like", "class A < B\n  def f\n  end\nend\n", "class A < B"),
    ],
)
def test_a_member_knows_the_first_line_of_its_class(language: str, text: str, header: str) -> None:
    (found,) = [symbol for symbol in extract(text, language) if symbol.name == "f"]
    assert found.header.partition("\n")[0] == header


@pytest.mark.parametrize("language", ["go", "javascript", "c", "lua", "swift", "python"])
def test_words_without_any_structure_are_given_up_and_read_by_their_lines(language: str) -> None:
    """A parser would look for sense in them for minutes."""
    draw = random.Random(language)  # noqa: S311 - the same cases every time
    words = ["lorem", "if", "(", ")", "{", "}", "=", "+", "<", ",", ";", ":", "'", "return", "1"]
    lines = [" ".join(draw.choices(words, k=12)) for _ in range(15_000)]
    text = "\n".join(["def found_by_its_line():", *lines])
    started = time.process_time()
    found = extract(text, language)
    assert time.process_time() - started < 3  # 0.4 on an idle machine
    assert "found_by_its_line" in {symbol.name for symbol in found}
    check_bounds(found)


@pytest.mark.parametrize("language", [*sorted(SHAPES), "elixir"])
def test_mutilated_sources_are_read_too(language: str) -> None:
    source, draw = source_of(language), random.Random(language)  # noqa: S311 - the same cases every time
    for _ in range(25):
        text = list(source)
        for _ in range(draw.randrange(1, 12)):
            at = draw.randrange(len(text) + 1)
            text[at : at + draw.randrange(0, 30)] = draw.choice(["", "{", "}", "(", '"', "\n", "\0", "\ud800", "ß", "class ", "def "])
        check_bounds(extract("".join(text), language))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.sampled_from([*sorted(SHAPES), "elixir", "plaintext", "unheard-of"]))
def test_no_text_makes_it_fail(text: str, language: str) -> None:
    check_bounds(extract(text, language))


@pytest.mark.parametrize("indent", ["\t", "  ", "   ", "    "])
def test_an_outline_is_indented_as_its_file(indent):
    body = "".join(f"{indent}{indent}x += {n}\n" for n in range(12))
    text = f"class Cart:\n{indent}rate = 1\n{indent}def total(self):\n{body}{indent}def other(self):\n{body}"
    cart, total, _ = extract(text, "python")
    assert {line[: len(line) - len(line.lstrip())] for line in cart.text.split("\n")[1:]} == {indent}
    assert (total.header, total.text.split("\n")[-1].lstrip()) == (f"class Cart:\n{indent}", total.text.split("\n")[-1].strip())
    assert "    " not in cart.text or indent == "    "
