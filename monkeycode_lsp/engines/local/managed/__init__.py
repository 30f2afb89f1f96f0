"""A prebuilt llama-server, kept by a process that all windows share."""
