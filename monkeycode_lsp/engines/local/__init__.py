"""The engine on this machine.

`engine` chooses between two kinds: `native`, llama.cpp in a process of ours, and `managed`, a prebuilt llama-server.  Either
is one process that all windows share: `host` is the way to it, `wire` what is said on it.  Inside the native one `batch` decides
what is decoded, over `llama`, the only importer of llama_cpp, which the editor's server never loads.
"""
