"""Stages of a session: built, rewritten, run ahead and ended with it."""
