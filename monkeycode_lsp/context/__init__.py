"""What the model is shown: the window around the cursor, pieces of other places, and nothing that is secret."""
