# The ops of an EmbeddingVariable.

library_sources(
  embedding_variable_apply_kernels.cc
  embedding_variable_kernels.cc
  embedding_variable_ops.cc
  embedding_variable_resource.cc
  embedding_variable_save_kernels.cc
  grouped_embedding_apply_kernels.cc
  grouped_embedding_kernels.cc
  grouped_embedding_ops.cc
  held_embeddings.cc)
