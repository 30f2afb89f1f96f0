"""The bytes of one answer → chunks."""
