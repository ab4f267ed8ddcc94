// Kernels of grouped lookups, see grouped_ops.cc.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "combine/combine_calls.h"
#include "lookup/grouped/grouped_inputs.h"
#include "lookup/grouped/huge_pages.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// The tables, held until the lookup is done.
template <typename T, bool kResource>
class Tables {
 public:
  // dims: expected of each table.
  absl::Status Read(OpKernelContext* c, const std::vector<int64_t>& dims) {
    OpInputList inputs;
    TF_RETURN_IF_ERROR(c->input_list("tables", &inputs));
    if constexpr (kResource) {
      TF_RETURN_IF_ERROR(Lock(c, inputs));
    } else {
      for (const Tensor& each : inputs) tensors_.push_back(&each);
    }
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (tensors_[t]->dims() != 2 || tensors_[t]->dim_size(1) != dims[t]) {
        return absl::InvalidArgumentError(absl::StrCat("table ", t, " has shape ",
                                                       tensors_[t]->shape().DebugString(),
                                                       "; expected [rows, ", dims[t], "]"));
      }
      const auto bytes = tensors_[t]->tensor_data();
      TablesInHugePages().Ask(bytes.data(), bytes.size());
    }
    return absl::OkStatus();
  }

  const Tensor& operator[](int table) const { return *tensors_[table]; }

  std::vector<int64_t> rows() const {
    std::vector<int64_t> found;
    for (const Tensor* each : tensors_) found.push_back(each->dim_size(0));
    return found;
  }

 private:
  // Shared locks, in the order of their addresses as all who take several do; an update of single
  // rows waits, a copy is never needed.
  absl::Status Lock(OpKernelContext* c, const OpInputList& handles) {
    std::vector<decltype(std::declval<tensorflow::Var>().mu())> mutexes;
    for (int t = 0; t < handles.size(); ++t) {
      tensorflow::core::RefCountPtr<tensorflow::Var> variable;
      const auto& handle = handles[t].scalar<tensorflow::ResourceHandle>()();
      const absl::Status found = tensorflow::LookupResource(c, handle, &variable);
      if (!found.ok()) return NotInitialized(handle.name());
      names_.push_back(handle.name());
      mutexes.push_back(variable->mu());
      variables_.push_back(std::move(variable));
    }
    std::sort(mutexes.begin(), mutexes.end());
    mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
    for (auto* each : mutexes) {
      locks_.push_back(std::make_unique<tensorflow::tf_shared_lock>(*each));
    }
    for (size_t t = 0; t < variables_.size(); ++t) {
      tensorflow::Var* each = variables_[t].get();
      if (!each->is_initialized || each->tensor()->dtype() != tensorflow::DataTypeToEnum<T>::v()) {
        return NotInitialized(names_[t]);
      }
      tensors_.push_back(each->tensor());
    }
    return absl::OkStatus();
  }

  static absl::Status NotInitialized(const std::string& name) {
    return absl::FailedPreconditionError(absl::StrCat(
        "table '", name, "' is not initialized, or not of type ",
        tensorflow::DataTypeString(tensorflow::DataTypeToEnum<T>::v()),
        "; run its initializer first"));
  }

  std::vector<std::string> names_;
  std::vector<tensorflow::core::RefCountPtr<tensorflow::Var>> variables_;
  std::vector<std::unique_ptr<tensorflow::tf_shared_lock>> locks_;
  std::vector<const Tensor*> tensors_;
};

template <typename T, typename Id, bool kResource>
class LookUpOp : public OpKernel {
 public:
  explicit LookUpOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
  }

  void Compute(OpKernelContext* c) override {
    Tables<T, kResource> tables;
    OP_REQUIRES_OK(c, tables.Read(c, attributes_.dims()));
    Ids<Id> ids;
    OP_REQUIRES_OK(c, ids.Read(c, attributes_, tables.rows()));
    Layout<T> out;
    OP_REQUIRES_OK(c, Allocate(c, tables, ids, &out));
    std::vector<bool> unordered(attributes_.count(), false);
    OP_REQUIRES_OK(c, Run(c, tables, ids, out, &unordered));
    if (std::find(unordered.begin(), unordered.end(), true) == unordered.end()) return;
    for (int f = 0; f < attributes_.count(); ++f) {
      if (unordered[f]) OP_REQUIRES_OK(c, ids.Order(c, attributes_, f));
    }
    OP_REQUIRES_OK(c, Run(c, tables, ids, out, &unordered));
  }

 private:
  absl::Status Allocate(OpKernelContext* c, const Tables<T, kResource>& tables, const Ids<Id>& ids,
                        Layout<T>* out) const {
    const int count = attributes_.count();
    if (!attributes_.concatenated()) {
      for (int f = 0; f < count; ++f) {
        const int64_t dim = tables[attributes_.features()[f].table].dim_size(1);
        TensorShape shape = ids.examples(f);
        TF_RETURN_IF_ERROR(shape.AddDimWithStatus(dim));
        Tensor* each = nullptr;
        TF_RETURN_IF_ERROR(c->allocate_output(f, shape, &each));
        out->begins.push_back(each->flat<T>().data());
        out->strides.push_back(dim);
      }
      return absl::OkStatus();
    }
    int64_t examples = 0, width = 0;
    TF_RETURN_IF_ERROR(Together(attributes_, ids, &examples));
    std::vector<int64_t> begins;
    for (const Feature& each : attributes_.features()) {
      begins.push_back(width);
      width += tables[each.table].dim_size(1);
    }
    Tensor* all = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(0, TensorShape({examples, width}), &all));
    for (int64_t begin : begins) out->begins.push_back(all->flat<T>().data() + begin);
    out->strides.assign(count, width);
    return absl::OkStatus();
  }

  absl::Status Run(OpKernelContext* c, const Tables<T, kResource>& tables, const Ids<Id>& ids,
                   const Layout<T>& out, std::vector<bool>* unordered) const {
    const std::vector<Block> blocks = AllBlocks(ids, attributes_.count());
    FirstError error;
    std::mutex mu;
    int64_t cost = 0;
    for (int f = 0; f < attributes_.count(); ++f) {
      const int64_t dim = tables[attributes_.features()[f].table].dim_size(1);
      cost += ids[f].count * CostOfId(dim * sizeof(T));
    }
    const int64_t number = static_cast<int64_t>(blocks.size());
    const auto part = [&](int64_t begin, int64_t end) {
      BlockRows rows;
      for (int64_t b = begin; b < end; ++b) {
        const Block& block = blocks[b];
        const Feature& feature = attributes_.features()[block.feature];
        const BlockState state = ReadBlock(ids[block.feature], block.number, &rows);
        if (state == BlockState::kNoSuchRow) {
          error.Found(b, NoSuchRow(feature, ids[block.feature], rows));
          return;
        }
        if (state == BlockState::kUnordered) {
          const std::lock_guard<std::mutex> hold(mu);
          (*unordered)[block.feature] = true;
          continue;
        }
        const Tensor& table = tables[feature.table];
        const T* base = table.flat<T>().data();
        const int64_t stride = out.strides[block.feature];
        LookedUp<T> in;
        in.shards = &base;
        in.dim = table.dim_size(1);
        in.stride = stride;
        in.rows = rows.end - rows.begin;
        in.splits = rows.splits.data();
        in.table_row = rows.rows.data();
        in.combiner = feature.combiner;
        Combine(in, 0, in.rows, out.begins[block.feature] + rows.begin * stride);
      }
    };
    c->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(
        number, cost / std::max<int64_t>(1, number), part);
    return error.status();
  }

  Attributes attributes_;
};

template <typename T, typename Id>
using TensorLookUpOp = LookUpOp<T, Id, false>;
template <typename T, typename Id>
using ResourceLookUpOp = LookUpOp<T, Id, true>;
WORKBENCH_GROUPED_KERNELS("WorkbenchGroupedLookUp", TensorLookUpOp);
WORKBENCH_GROUPED_KERNELS("WorkbenchResourceGroupedLookUp", ResourceLookUpOp);

}  // namespace
}  // namespace workbench::grouped
