"""Programs of a user's own: found in a file, made of a notebook cell or of a finished graph."""
