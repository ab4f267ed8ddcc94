"""A session: one program, its runs one after the other, and what its other settings would give."""
