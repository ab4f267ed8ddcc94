"""Dot interactions of a finished graph: found, and done by one op each."""
