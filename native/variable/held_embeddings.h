#ifndef WORKBENCH_VARIABLE_HELD_EMBEDDINGS_H_
#define WORKBENCH_VARIABLE_HELD_EMBEDDINGS_H_

// The tables that kernels of grouped lookups in EmbeddingVariables work on.

#include <cstdint>
#include <memory>
#include <vector>

#include "lookup/grouped/grouped_inputs.h"
#include "table/embedding_rows.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "variable/embedding_variable_resource.h"

namespace workbench::grouped {

inline absl::Status BelowZero(const Feature& feature) {
  return FeatureError(feature, "a key, or the default id, is below 0");
}

class HeldEmbeddings {
 public:
  // Finds the tables of input list "tables", whose rows must have these dimensions.
  absl::Status Find(tensorflow::OpKernelContext* c, const std::vector<int64_t>& dims);

  // Holds their rows until this is gone: on the op's own thread, in the order of their addresses
  // and each once. What waited for one on a pool's thread would keep those that hold it from the
  // threads that they need to end.
  void Hold();

  EmbeddingResource* resource(int table) const { return tables_[table].get(); }
  // Of tables that are held.
  const EmbeddingRows& rows(int table) const { return *rows_[table]; }

 private:
  std::vector<EmbeddingPtr> tables_;
  std::vector<std::unique_ptr<EmbeddingRows>> held_;
  std::vector<const EmbeddingRows*> rows_;  // of each table
};

}  // namespace workbench::grouped

#endif  // WORKBENCH_VARIABLE_HELD_EMBEDDINGS_H_
