"""The command line: parses, runs one command, prints; `commands` has a file for each."""
