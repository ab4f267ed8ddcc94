"""The user's model: lookups, gradients and feature columns."""
