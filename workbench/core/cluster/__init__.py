"""Traces of a cluster: clocks of its tasks, what travels between them, where a step's time goes."""
