"""Interactions of the vectors that lookups give."""
