"""Updates of the rows of a table that a batch asked for."""
