"""Which nodes of each grammar define something: the data that `extraction` and `outline` work from.

A node type that no table names is passed over with everything below it, so bodies of functions cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

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
    special: frozenset[str] = frozenset()
    """Nodes that `reading` has a rule for."""
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
    elided: str = "{ ... }"
    """What stands for a body."""
    end: str = "}"
    """The last line of a class."""


_C = Shape(
    classes={"struct_specifier": "class", "union_specifier": "class", "enum_specifier": "class"},
    functions=frozenset({"function_definition"}),
    values={"preproc_def": "macro", "preproc_function_def": "macro"},
    fields=frozenset({"field_declaration", "enumerator"}),
    special=frozenset({"declaration", "type_definition", "struct_specifier", "union_specifier", "enum_specifier", "preproc_def"}),
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
    fields=frozenset({"field_definition"}),
    special=frozenset({"variable_declarator", "assignment_expression", "field_definition", "pair"}),
    wrappers=frozenset({"export_statement", "lexical_declaration", "variable_declaration", "expression_statement"}),
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
        {"public_field_definition", "property_signature", "index_signature", "call_signature", "construct_signature"}
        | {"property_identifier", "enum_assignment"}
    ),
    special=_JAVASCRIPT.special | {"public_field_definition"},
    wrappers=_JAVASCRIPT.wrappers | {"ambient_declaration"},
    through=frozenset({"ERROR", "statement_block"}),
)

_BASH = Shape(
    functions=frozenset({"function_definition"}),
    special=frozenset({"variable_assignment"}),
    wrappers=frozenset({"declaration_command"}),
    through=frozenset({"ERROR", "if_statement", "elif_clause", "else_clause", "list"}),
    comment="# ",
)

SHAPES: Mapping[str, Shape] = {
    "python": Shape(
        classes={"class_definition": "class"},
        functions=frozenset({"function_definition"}),
        special=frozenset({"assignment", "type_alias_statement"}),
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
        elided="...",
        end="",
    ),
    "javascript": _JAVASCRIPT,
    "javascriptreact": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "typescriptreact": _TYPESCRIPT,
    "go": Shape(
        functions=frozenset({"function_declaration", "method_declaration", "method_elem"}),
        fields=frozenset({"field_declaration", "type_elem"}),
        special=frozenset({"type_spec", "type_alias", "const_spec", "var_spec", "method_declaration"}),
        wrappers=frozenset({"type_declaration", "const_declaration", "var_declaration", "var_spec_list"}),
    ),
    "rust": Shape(
        classes={
            "struct_item": "class",
            "enum_item": "class",
            "union_item": "class",
            "trait_item": "class",
            "mod_item": "module",
            "impl_item": "class",
        },
        functions=frozenset({"function_item", "function_signature_item"}),
        values={"type_item": "type", "const_item": "constant", "static_item": "constant", "macro_definition": "macro"},
        fields=frozenset({"field_declaration", "enum_variant", "associated_type"}),
        special=frozenset({"impl_item", "mod_item", "macro_definition"}),
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
        classes={**_C.classes, "class_specifier": "class", "namespace_definition": "module"},
        values={**_C.values, "alias_declaration": "type", "concept_definition": "type"},
        fields=_C.fields | {"using_declaration"},
        special=_C.special | {"class_specifier", "field_declaration"},
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
        functions=frozenset(
            {"method_declaration", "constructor_declaration", "operator_declaration", "indexer_declaration"}
        ),
        values={"delegate_declaration": "type"},
        fields=frozenset({"field_declaration", "property_declaration", "event_field_declaration", "enum_member_declaration"}),
        through=frozenset({"ERROR", "preproc_if", "preproc_else", "file_scoped_namespace_declaration", "declaration_list"}),
    ),
    "ruby": Shape(
        classes={"class": "class", "module": "class"},
        functions=frozenset({"method", "singleton_method"}),
        special=frozenset({"assignment", "call"}),
        through=frozenset({"ERROR", "singleton_class", "body_statement", "if", "else", "then"}),
        comment="# ",
        elided="...",
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
        special=frozenset({"const_element"}),
        wrappers=frozenset({"const_declaration"}),
        through=frozenset({"ERROR", "namespace_definition", "compound_statement", "if_statement"}),
    ),
    "kotlin": Shape(
        classes={"class_declaration": "class", "object_declaration": "class", "companion_object": "class"},
        functions=frozenset({"function_declaration", "secondary_constructor"}),
        values={"type_alias": "type"},
        fields=frozenset({"enum_entry"}),
        special=frozenset({"property_declaration", "companion_object", "type_alias"}),
        bodies=frozenset({"class_body", "enum_class_body", "function_body", "block"}),
        comments=frozenset({"line_comment", "block_comment"}),
    ),
    "swift": Shape(
        classes={"class_declaration": "class", "protocol_declaration": "class"},
        functions=frozenset({"function_declaration", "init_declaration", "protocol_function_declaration"}),
        values={"typealias_declaration": "type"},
        fields=frozenset({"protocol_property_declaration", "enum_entry"}),
        special=frozenset({"property_declaration"}),
        comments=frozenset({"comment", "multiline_comment"}),
    ),
    "scala": Shape(
        classes={"class_definition": "class", "trait_definition": "class", "object_definition": "class", "enum_definition": "class"},
        functions=frozenset({"function_definition", "function_declaration"}),
        values={"type_definition": "type"},
        fields=frozenset({"simple_enum_case", "full_enum_case"}),
        special=frozenset({"val_definition", "var_definition", "val_declaration", "var_declaration"}),
        through=frozenset({"ERROR", "enum_case_definitions", "template_body", "package_clause"}),
        comments=frozenset({"comment", "block_comment"}),
    ),
    "lua": Shape(
        functions=frozenset({"function_declaration"}),
        special=frozenset({"assignment_statement", "function_declaration"}),
        wrappers=frozenset({"variable_declaration"}),
        comment="-- ",
        elided="...",
        end="end",
    ),
    "bash": _BASH,
    "shellscript": _BASH,
}
