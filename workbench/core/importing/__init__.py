"""Traces of other tools → Trace: TensorFlow's step stats, its profiler's XSpace, Chrome JSON."""
