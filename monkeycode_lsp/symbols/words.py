"""Words that say nothing about a project: keywords and what every language brings along."""

from __future__ import annotations

_KEYWORDS = """
abstract alias all and any as assert async await auto base begin bool boolean break byte case catch chan char class
const constructor continue crate debugger decimal declare def default defer del delegate delete do done double dyn each
elif else elseif elsif end ensure enum esac event except export extends extern fallthrough false fi final finally fixed float
fn for foreach friend from fun func function get global go goto guard if impl implements import in include init inline
inout instanceof int int8 int16 int32 int64 interface internal is isinstance keyof lambda lazy let local lock long loop macro
match mod module move mut mutable namespace native new nil no none nonlocal not null nullptr object of open operator or
out override package params pass priv private protected protocol pub public raise range readonly record ref register repeat
require rescue return sealed select self set shift short signed sizeof static string struct super suspend switch
synchronized template then this throw throws to trait transient true try type typealias typedef typename typeof uint uint8
uint16 uint32 uint64 ulong undef undefined union unless unsafe unsigned until use using val value var virtual void volatile
when where while with yield Self None True False Null Any Void usize isize u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 str
"""

_BUILTINS = """
abs append array bool bytes callable chr cls console dict dir echo elif enumerate err error Error eval exists exit extend
filter float format getattr hasattr hash id index input insert issubclass items iter join keys kwargs args len length list
log main make map max min next number object open ord pop print printf println push range repr reversed round
setattr slice sorted split startswith endswith strip sum super tuple typeof values zip isdigit lower upper replace
Array Boolean Date Exception Function Integer List Map Math Number Object Option Optional Promise Record RegExp Result
Set Some Ok Err String Symbol Vec Box Rc Arc Dict Tuple Union Callable Iterator Iterable Sequence Mapping Generator
Double Float Long Char Byte Int Bool Unit Nothing Character Override Deprecated ValueError TypeError KeyError
RuntimeError AttributeError IndexError StopIteration NotImplementedError Partial Readonly Pick Omit HashMap HashSet
ArrayList std string vector size_t nullptr unwrap clone into iter collect to_string as_str fmt ctx require module exports
property staticmethod classmethod dataclass override undefined window document JSON json
"""

NOISE = frozenset(_KEYWORDS.split()) | frozenset(_BUILTINS.split())
"""Never worth looking up."""
