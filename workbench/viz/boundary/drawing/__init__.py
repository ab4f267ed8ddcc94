"""The drawing of a boundary: where boxes stand, what joins them, and the line between two sides."""
