# Text: lines into columns, and columns of words into ids.

plain_sources(
  csv_record.cc)

library_sources(
  decode_csv_kernels.cc
  decode_csv_ops.cc
  hash_columns_kernels.cc
  hash_columns_ops.cc)

plain_tests(
  csv_record)
