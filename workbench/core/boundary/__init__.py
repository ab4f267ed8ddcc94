"""What may run ahead of the step, and why the rest may not."""
