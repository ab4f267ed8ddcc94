"""Patterns: how nodes of a finished graph hang together, and what is alike in two graphs."""
