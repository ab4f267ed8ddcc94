# The tracers of ops, steps and buffers.

plain_sources(
  op_events.cc)

plain_tests(
  buffer_events
  op_events
  op_events_stress)
