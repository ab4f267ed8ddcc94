# Tensors that travel between tasks in one message.

plain_sources(
  packing.cc)

library_sources(
  pack_transfers.cc
  pack_transfers_pass.cc
  packing_kernels.cc
  packing_ops.cc)

plain_tests(
  packing)
