"""What the nodes cost where a trace has not seen them: another batch, another graph."""
