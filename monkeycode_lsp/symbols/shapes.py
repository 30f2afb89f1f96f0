"""Which nodes of each grammar define something: the data that `extraction` and `outline` work from.

A node type that no table names is passed over with everything below it, so bodies of functions cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from monkeycode_lsp.symbols import reading, reading_c
from monkeycode_lsp.symbols.model import Kind


class Shape(msgspec.Struct, frozen=True):
    """How one language's definitions look in its tree."""

    classes: Mapping[str, Kind] = {}
    """What has members, by node type; a "module" makes no methods of its functions."""
    functions: frozenset[str] = frozenset()
    values: Mapping[str, Kind] = {}
    """What is quoted as it is written."""
    fields: frozenset[str] = frozenset()
    """Members that an outline shows; no symbols of their own."""
    special: Mapping[str, reading.Rule] = {}
    """What a rule of its own reads; it goes before the others."""
    wrappers: frozenset[str] = frozenset()
    """What stands around a definition and belongs to its text: decorators, `export`, `template <…>`, `const (…)`."""
    through: frozenset[str] = frozenset({"ERROR"})
    """Looked into as if their children stood in their place."""
    bodies: frozenset[str] = frozenset()
    """Types of a child that is the body, where the grammar has no field `body`."""
    leads: frozenset[str] = frozenset()
    """Nodes before a definition that belong to it: attributes."""
    comments: frozenset[str] = frozenset({"comment"})
    comment: str = "// "
    """How a comment line begins."""
    indent: str = "    "
    """One step of the file's indentation."""
    elided: str = " { ... }"
    """What stands for a body."""
    bodiless: str = ";"
    """What ends a signature in an outline, where a body would cost more than it tells."""
    end: str = "}"
    """The last line of a class."""


_C = Shape(
    values={"preproc_def": "macro", "preproc_function_def": "macro"},
    fields=frozenset({"enumerator"}),
    special={
        "function_definition": reading_c.function,
        "declaration": reading_c.declaration,
        "field_declaration": reading_c.field,
        "type_definition": reading_c.typedef,
        "struct_specifier": reading_c.class_,
        "union_specifier": reading_c.class_,
        "enum_specifier": reading_c.class_,
    },
    through=frozenset(
        {
            "ERROR",
            "preproc_ifdef",
            "preproc_if",
            "preproc_else",
            "preproc_elif",
            "linkage_specification",
            "declaration_list",
        }
    ),
)

_JAVASCRIPT = Shape(
    classes={"class_declaration": "class"},
    functions=frozenset({"function_declaration", "generator_function_declaration", "method_definition"}),
    special={
        "variable_declarator": reading.variable,
        "assignment_expression": reading.member_assignment,
        "field_definition": reading.field,
        "pair": reading.pair,
    },
    wrappers=frozenset({"export_statement", "lexical_declaration", "variable_declaration"}),
    through=frozenset({"ERROR", "expression_statement", "object", "if_statement", "statement_block"}),
)

_TYPESCRIPT = Shape(
    classes={
        "class_declaration": "class",
        "abstract_class_declaration": "class",
        "interface_declaration": "class",
        "enum_declaration": "class",
        "internal_module": "module",
        "module": "module",
    },
    functions=_JAVASCRIPT.functions | {"function_signature", "method_signature", "abstract_method_signature"},
    values={"type_alias_declaration": "type"},
    fields=frozenset(
        {
            "property_signature",
            "index_signature",
            "call_signature",
            "construct_signature",
            "property_identifier",
            "enum_assignment",
        }
    ),
    special={**_JAVASCRIPT.special, "public_field_definition": reading.field},
    wrappers=_JAVASCRIPT.wrappers | {"ambient_declaration"},
    through=_JAVASCRIPT.through,
)

_BASH = Shape(
    functions=frozenset({"function_definition"}),
    special={"variable_assignment": reading.bash_variable},
    wrappers=frozenset({"declaration_command"}),
    through=frozenset({"ERROR", "if_statement", "elif_clause", "else_clause", "list"}),
    comment="# ",
)

SHAPES: Mapping[str, Shape] = {
    "python": Shape(
        classes={"class_definition": "class"},
        functions=frozenset({"function_definition"}),
        special={"assignment": reading.assignment, "type_alias_statement": reading.type_statement},
        wrappers=frozenset({"decorated_definition"}),
        through=frozenset(
            {
                "ERROR",
                "block",
                "if_statement",
                "elif_clause",
                "else_clause",
                "try_statement",
                "except_clause",
                "finally_clause",
                "with_statement",
                "expression_statement",
            }
        ),
        comment="# ",
        elided=" ...",
        bodiless=" ...",
        end="",
    ),
    "javascript": _JAVASCRIPT,
    "javascriptreact": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "typescriptreact": _TYPESCRIPT,
    "go": Shape(
        bodiless="",
        functions=frozenset({"function_declaration", "method_elem"}),
        fields=frozenset({"field_declaration", "type_elem"}),
        special={
            "type_spec": reading.go_type,
            "type_alias": reading.go_type,
            "const_spec": reading.go_values,
            "var_spec": reading.go_values,
            "method_declaration": reading.go_method,
        },
        wrappers=frozenset({"type_declaration", "const_declaration", "var_declaration", "var_spec_list"}),
    ),
    "rust": Shape(
        classes={
            "struct_item": "class",
            "enum_item": "class",
            "union_item": "class",
            "trait_item": "class",
        },
        functions=frozenset({"function_item", "function_signature_item"}),
        values={"type_item": "type", "const_item": "constant", "static_item": "constant", "macro_definition": "macro"},
        fields=frozenset({"field_declaration", "enum_variant", "associated_type"}),
        special={"impl_item": reading.rust_impl, "mod_item": reading.rust_module},
        through=frozenset({"ERROR", "foreign_mod_item"}),
        leads=frozenset({"attribute_item"}),
        comments=frozenset({"line_comment", "block_comment"}),
    ),
    "java": Shape(
        classes={
            "class_declaration": "class",
            "interface_declaration": "class",
            "enum_declaration": "class",
            "record_declaration": "class",
            "annotation_type_declaration": "class",
        },
        functions=frozenset(
            {
                "method_declaration",
                "constructor_declaration",
                "compact_constructor_declaration",
                "annotation_type_element_declaration",
            }
        ),
        fields=frozenset({"field_declaration", "constant_declaration", "enum_constant"}),
        through=frozenset({"ERROR", "enum_body_declarations"}),
        comments=frozenset({"line_comment", "block_comment"}),
    ),
    "c": _C,
    "cpp": msgspec.structs.replace(
        _C,
        classes={"namespace_definition": "module"},
        values={**_C.values, "alias_declaration": "type", "concept_definition": "type"},
        fields=_C.fields | {"using_declaration"},
        special={**_C.special, "class_specifier": reading_c.class_},
        wrappers=frozenset({"template_declaration"}),
    ),
    "csharp": Shape(
        classes={
            "class_declaration": "class",
            "struct_declaration": "class",
            "interface_declaration": "class",
            "record_declaration": "class",
            "enum_declaration": "class",
            "namespace_declaration": "module",
        },
        functions=frozenset({"method_declaration", "constructor_declaration", "indexer_declaration"}),
        values={"delegate_declaration": "type"},
        fields=frozenset({"field_declaration", "property_declaration", "event_field_declaration", "enum_member_declaration"}),
        through=frozenset({"ERROR", "preproc_if", "preproc_else", "file_scoped_namespace_declaration", "declaration_list"}),
    ),
    "ruby": Shape(
        classes={"class": "class", "module": "class"},
        functions=frozenset({"method", "singleton_method"}),
        special={"assignment": reading.constant_assignment, "call": reading.attribute_call},
        through=frozenset({"ERROR", "singleton_class", "body_statement", "if", "else", "then"}),
        comment="# ",
        elided="\n    ...\nend",
        bodiless="; end",
        end="end",
    ),
    "php": Shape(
        classes={
            "class_declaration": "class",
            "interface_declaration": "class",
            "trait_declaration": "class",
            "enum_declaration": "class",
        },
        functions=frozenset({"function_definition", "method_declaration"}),
        fields=frozenset({"property_declaration", "use_declaration", "enum_case"}),
        special={"const_element": reading.php_constant},
        wrappers=frozenset({"const_declaration"}),
        through=frozenset({"ERROR", "namespace_definition", "compound_statement", "if_statement"}),
    ),
    "kotlin": Shape(
        bodiless="",
        classes={"class_declaration": "class", "object_declaration": "class"},
        functions=frozenset({"function_declaration", "secondary_constructor"}),
        fields=frozenset({"enum_entry"}),
        special={"property_declaration": reading.patterned, "type_alias": reading.type_statement},
        through=frozenset({"ERROR", "companion_object", "class_body"}),
        bodies=frozenset({"class_body", "enum_class_body", "function_body", "block"}),
        comments=frozenset({"line_comment", "block_comment"}),
    ),
    "swift": Shape(
        bodiless="",
        classes={"protocol_declaration": "class"},
        functions=frozenset({"function_declaration", "init_declaration", "protocol_function_declaration"}),
        values={"typealias_declaration": "type"},
        fields=frozenset({"protocol_property_declaration", "enum_entry"}),
        special={"class_declaration": reading.swift_class, "property_declaration": reading.patterned},
        comments=frozenset({"comment", "multiline_comment"}),
    ),
    "scala": Shape(
        bodiless="",
        classes={
            "class_definition": "class",
            "trait_definition": "class",
            "object_definition": "class",
            "enum_definition": "class",
            "package_object": "module",
        },
        functions=frozenset({"function_definition", "function_declaration"}),
        values={"type_definition": "type"},
        fields=frozenset({"simple_enum_case", "full_enum_case"}),
        special={
            "val_definition": reading.patterned,
            "var_definition": reading.patterned,
            "val_declaration": reading.patterned,
            "var_declaration": reading.patterned,
        },
        through=frozenset({"ERROR", "enum_case_definitions", "template_body", "package_clause"}),
        comments=frozenset({"comment", "block_comment"}),
    ),
    "lua": Shape(
        special={"assignment_statement": reading.lua_assignment, "function_declaration": reading.lua_function},
        wrappers=frozenset({"variable_declaration"}),
        comment="-- ",
        elided="\n    ...\nend",
        bodiless=" end",
        end="end",
    ),
    "bash": _BASH,
    "shellscript": _BASH,
}
