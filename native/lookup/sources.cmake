# Fused lookups: which rows a batch of ids needs.

plain_sources(
  grouped/feature_rows.cc
  grouped/huge_pages.cc
  grouped/table_rows.cc
  id_checks.cc
  id_columns.cc
  row_ids.cc
  shards.cc
  unique/id_order.cc
  unique/unique_ids.cc)

library_sources(
  grouped/touched_tables.cc
  grouped/grouped_apply_kernels.cc
  grouped/grouped_grad_kernels.cc
  grouped/grouped_gradients.cc
  grouped/grouped_inputs.cc
  grouped/grouped_kernels.cc
  grouped/grouped_ops.cc
  grouped/grouped_weight_grad_kernels.cc
  grouped/tables_in_huge_pages.cc
  id_columns_kernels.cc
  id_columns_ops.cc
  local_kernels.cc
  local_ops.cc
  lookup_kernels.cc
  lookup_ops.cc)

plain_tests(
  grouped_rows
  hostile_ids
  huge_pages
  id_columns
  lookup_ids)
