"""The path back through what a trace executed: the walk, and how long a node might slip."""
