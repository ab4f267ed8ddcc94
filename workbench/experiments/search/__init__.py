"""The search for the best setting of a program, within a time and a memory budget."""
