"""Measures variants of a program against each other, in processes of their own."""
