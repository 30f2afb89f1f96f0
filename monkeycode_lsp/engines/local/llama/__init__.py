"""llama.cpp through llama-cpp-python's low-level functions.  Nothing outside this package imports `llama_cpp`.

`decoder` is what the engine process uses; `context` is a model with its KV caches.
"""
