"""Whether a suggestion is worth showing unasked, by how sure the model was and by what this user takes.  Nothing leaves the machine."""
