"""Variants of a program side by side: opened, run in turns, answered."""
