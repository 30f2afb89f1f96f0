"""What source text defines, imports and uses near the cursor (pure).

    extract(text, language) -> list[Symbol]            what a file defines, each with the text worth quoting
    imports.read(text, language) -> list[Import]       what a file imports
    paths.resolve(imported, path, language) -> list[str]   where that may be in the workspace
    paths.fits(candidate, path) -> bool                whether a file is such a place
    names.near(before, after, language) -> list[str]   what the code at the cursor deals with
    names.unfinished(before) -> str                    the half-typed word at the cursor

`language` is an LSP identifier, text is LF only, lines are 0-based.  Nothing here fails on any text.  Read `model` first.
"""
