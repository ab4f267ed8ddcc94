"""Trace → what ops, inputs and the executor cost in the setting that was traced."""
