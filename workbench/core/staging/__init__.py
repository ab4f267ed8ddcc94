"""The buffer ops and what producers share, whether a session or a function runs them."""
