"""Are suggestions worth accepting?  The same model asked straight and through us: tests passed, exact matches, what is cut wrongly."""
