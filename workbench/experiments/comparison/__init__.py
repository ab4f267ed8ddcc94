"""Variants of a program side by side: opened, run interleaved, compared."""
