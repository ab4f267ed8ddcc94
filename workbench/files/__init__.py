"""What is written and read: whole files or none, and values in them."""
