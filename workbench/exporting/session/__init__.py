"""The model of a session: the part of its graph that a signature needs, and the values in it."""
