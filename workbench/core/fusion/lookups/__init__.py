"""What stock lookups, their gradients and updates look like in a finished graph."""
