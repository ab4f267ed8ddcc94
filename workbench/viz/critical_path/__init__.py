"""A critical path: what bounds a step, as a waterfall, shares, slack and tables."""
