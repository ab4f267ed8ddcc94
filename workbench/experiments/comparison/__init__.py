"""Variants of a program side by side: opened, run interleaved, compared."""

COMPARISON_FILE = "comparison.json"
