# Stages: bounded buffers between the staged side and the compute side.

plain_sources(
  buffer/deadline.cc
  buffer/stage_messages.cc
  input/step_reads.cc)

library_sources(
  buffer_resource.cc
  staging_kernels.cc
  staging_ops.cc
  trailing_kernels.cc
  trailing_ops.cc
  input/held_items.cc
  input/input_kernels.cc
  input/input_ops.cc
  input/input_watches.cc
  input/saved_input_kernels.cc
  input/saved_input_ops.cc
  step/step_call.cc
  step/step_end.cc)

plain_tests(
  buffer/deadline
  buffer/stage_buffer
  buffer/stage_buffer_owner
  buffer/stage_buffer_reserve
  buffer/stage_buffer_rest
  buffer/stage_buffer_saves
  buffer/stage_buffer_stress
  buffer/stage_buffer_trailing)
