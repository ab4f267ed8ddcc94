"""The producers of a stage in a live session: the puts that they run, and on which threads."""
