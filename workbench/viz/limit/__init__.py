"""A step against what the machine can do: its sentence, its parts, its families and ops."""
