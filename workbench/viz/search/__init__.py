"""What a search found, as an answer, a list on one axis, and the code."""
