"""What `monkeycode doctor` finds out about one endpoint.  Read `examining`."""
