"""What tree-sitter knows of a text.  A language without a grammar at hand has no tree, and everybody has a rule for that."""
