"""Switches as values: those of a program's author, of the environment, and of TensorFlow."""
