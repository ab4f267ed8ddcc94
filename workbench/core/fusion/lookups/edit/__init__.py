"""The edit that fuses lookups: grouped ops, and what takes the place of stock nodes."""
