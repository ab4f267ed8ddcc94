# Stages: bounded buffers between the staged side and the compute side.

plain_sources(
  buffer/deadline.cc
  buffer/stage_messages.cc)

library_sources(
  buffer_resource.cc
  input_kernels.cc
  input_ops.cc
  input_watches.cc
  staging_kernels.cc
  staging_ops.cc
  step_call.cc
  step_end.cc
  trailing_kernels.cc
  trailing_ops.cc)

plain_tests(
  buffer/deadline
  buffer/stage_buffer
  buffer/stage_buffer_owner
  buffer/stage_buffer_reserve
  buffer/stage_buffer_rest
  buffer/stage_buffer_stress
  buffer/stage_buffer_trailing)
