# The table behind an EmbeddingVariable: rows by key.

plain_sources(
  embedding_rows.cc
  embedding_table.cc
  embedding_table_shard.cc
  embedding_table_waiting.cc)

plain_tests(
  embedding_filter
  embedding_hostile
  embedding_rows
  embedding_table
  embedding_table_stress
  room_lock)
