"""Executor policies of a session or function, and the costs that they learn."""
