"""Lookup fusion: stock embedding lookups of a finished graph, found and done by grouped ops."""
