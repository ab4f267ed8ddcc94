"""What the graphs of the models are made of."""
