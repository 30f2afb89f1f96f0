"""HTTP to one server: connections, TLS, proxies, compressed bodies.  Knows nothing of completions."""
