"""What is defined where in a workspace, kept in a database that a process of its own fills.

    client.Index      the server's side: asks the database, keeps the process (read it first)
    worker            the process: walks, reads, watches
    indexer           what is to be read anew, and in which order
    walk, ignoring    which files count
    reading           one file, safely
    store             the database as its writer sees it; `finding`: as its readers do
    importing         which files a document's imports lead to

Invariants: nothing here makes an ask wait or fail; what is not ready is left out.
The process ends with its server, however that ends.
"""
