"""The sessions of a comparison: opened in child processes, and run in turn, a block of each."""
