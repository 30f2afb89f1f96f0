"""The engine on this machine.

Here is its native kind: llama.cpp in a child process that owns the model.  `native` is the editor's side, `worker`
the child's; between them lies `wire`.  Only `llama` knows llama_cpp, and the editor's server never imports it.
"""
