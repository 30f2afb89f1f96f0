"""What the model is shown: the window around the cursor, and (by and by) pieces of other places."""
