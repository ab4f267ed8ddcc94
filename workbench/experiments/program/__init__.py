"""What is to be measured: the user's program and the toggles to set."""
