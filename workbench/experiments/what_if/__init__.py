"""What if: predictions for a program from one trace of it."""
