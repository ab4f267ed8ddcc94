"""Cluster: a program on TensorFlow's own parameter servers and workers, a process for each task."""
