"""A boundary and its candidates → the StagePlan to apply."""
