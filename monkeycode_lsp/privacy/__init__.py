"""How far a document's text may go, by the ignore files that lie around it."""
