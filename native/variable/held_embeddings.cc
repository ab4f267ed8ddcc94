#include "variable/held_embeddings.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace workbench::grouped {

absl::Status HeldEmbeddings::Find(tensorflow::OpKernelContext* c,
                                  const std::vector<int64_t>& dims) {
  tensorflow::OpInputList handles;
  TF_RETURN_IF_ERROR(c->input_list("tables", &handles));
  for (int t = 0; t < handles.size(); ++t) {
    if (handles[t].dims() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("handle ", t, " has shape ",
                                                     handles[t].shape().DebugString(),
                                                     "; expected a scalar"));
    }
    EmbeddingPtr table;
    TF_RETURN_IF_ERROR(FindTable(c, handles[t].scalar<tensorflow::ResourceHandle>()(), &table));
    const TableOptions& options = table->table_options();
    if (options.dim != dims[t]) {
      return absl::InvalidArgumentError(absl::StrCat("EmbeddingVariable '", table->name(),
                                                     "' has dimension ", options.dim,
                                                     "; expected ", dims[t]));
    }
    if (options.filter_freq > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "EmbeddingVariable '", table->name(), "' has a filter, which counts each key; expected ",
          "one without, or WorkbenchEmbeddingGather"));
    }
    tables_.push_back(std::move(table));
  }
  return absl::OkStatus();
}

void HeldEmbeddings::Hold() {
  std::map<EmbeddingTable*, const EmbeddingRows*> held;
  for (const EmbeddingPtr& each : tables_) held[each->table()] = nullptr;
  for (auto& [table, rows] : held) {
    held_.push_back(std::make_unique<EmbeddingRows>(table));
    rows = held_.back().get();
  }
  for (const EmbeddingPtr& each : tables_) rows_.push_back(held[each->table()]);
}

}  // namespace workbench::grouped
