"""Settings: where the toggles stand, what they are called, and what is known of each."""
