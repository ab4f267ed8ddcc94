"""Live bytes of the tensors of a step: how much ops and buffers hold, when, and whose it is."""
