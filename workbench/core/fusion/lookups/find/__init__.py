"""Stock lookups, their gradients and their tables, found in a finished graph."""
