# Fused lookups: which rows a batch of ids needs.

plain_sources(
  row_ids.cc
  shards.cc
  unique/id_order.cc
  unique/unique_ids.cc)

library_sources(
  local_kernels.cc
  local_ops.cc
  lookup_kernels.cc
  lookup_ops.cc)

plain_tests(
  hostile_ids
  lookup_ids)
