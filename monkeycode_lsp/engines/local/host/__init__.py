"""The engine process that all windows of a user share, and a window's way to it."""
