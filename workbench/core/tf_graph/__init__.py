"""Reads TensorFlow's graphs into arrays, and finds the nodes that a step asks for."""
