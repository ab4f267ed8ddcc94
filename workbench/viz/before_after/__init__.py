"""Before and after: two timelines of one scale, and what their difference consists of."""
