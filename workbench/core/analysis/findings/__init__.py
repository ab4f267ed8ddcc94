"""A trace → what makes its steps slow, in words, each with its evidence."""
