"""The load generator: clients that send requests one after the other, or at drawn moments."""
