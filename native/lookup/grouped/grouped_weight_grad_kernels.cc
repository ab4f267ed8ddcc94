// The kernel of the gradient of grouped lookups by the weights of their ids, see grouped_ops.cc.

#include <cstdint>
#include <vector>

#include "combine/combine.h"
#include "lookup/grouped/grouped_gradients.h"
#include "lookup/grouped/grouped_inputs.h"
#include "lookup/grouped/grouped_tables.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;

template <typename T, typename Id, bool kResource>
class WeightGradOp : public OpKernel {
 public:
  explicit WeightGradOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
  }

  void Compute(OpKernelContext* c) override {
    Tables<T, kResource> tables;
    OP_REQUIRES_OK(c, tables.Read(c, attributes_.dims()));
    Ids<Id> ids;
    OP_REQUIRES_OK(c, ids.Read(c, attributes_, tables.rows()));
    Layout<const T> gradients;
    OP_REQUIRES_OK(c, ReadGradients(c, attributes_, nullptr, ids, &gradients));
    std::vector<float*> out;
    OP_REQUIRES_OK(c, Allocate(c, &out));
    for (int f = 0; f < attributes_.count(); ++f) {
      const int weights = attributes_.features()[f].weights;
      // Of no ids the tensor of weights has no address: there is nothing to read, nor to set.
      if (weights < 0 || ids[f].count == 0) continue;
      OP_REQUIRES_OK(c, OfFeature(c, tables, f, gradients, &ids, out[weights]));
    }
  }

 private:
  absl::Status Allocate(OpKernelContext* c, std::vector<float*>* out) const {
    OpInputList weights;
    OpOutputList outputs;
    TF_RETURN_IF_ERROR(c->input_list("weights", &weights));
    TF_RETURN_IF_ERROR(c->output_list("weight_gradients", &outputs));
    for (int w = 0; w < weights.size(); ++w) {
      Tensor* each = nullptr;
      TF_RETURN_IF_ERROR(outputs.allocate(w, weights[w].shape(), &each));
      // What was pruned has no part in the embeddings.
      each->flat<float>().setZero();
      out->push_back(each->flat<float>().data());
    }
    return absl::OkStatus();
  }

  absl::Status OfFeature(OpKernelContext* c, const Tables<T, kResource>& tables, int f,
                         const Layout<const T>& gradients, Ids<Id>* ids, float* out) const {
    const Feature& feature = attributes_.features()[f];
    const Tensor& table = tables[feature.table];
    const T* base = table.flat<T>().data();
    BlockRows rows;
    std::vector<float> found;
    for (int64_t b = 0; b < CountBlocks((*ids)[f]); ++b) {
      const BlockState state = ReadBlock((*ids)[f], b, &rows);
      if (state == BlockState::kNoSuchRow) return NoSuchRow(feature, (*ids)[f], rows);
      if (state == BlockState::kUnordered) {
        TF_RETURN_IF_ERROR(ids->Order(c, attributes_, f));
        return OfFeature(c, tables, f, gradients, ids, out);
      }
      LookedUp<T> in;
      in.shards = &base;
      in.dim = table.dim_size(1);
      in.stride = gradients.strides[f];
      in.rows = rows.end - rows.begin;
      in.splits = rows.splits.data();
      in.table_row = rows.rows.data();
      in.weights = rows.weights.data();
      in.combiner = feature.combiner;
      in.max_norm = feature.max_norm;
      found.resize(rows.splits[in.rows]);
      WeightGradient(in, gradients.begins[f] + rows.begin * in.stride, 0, in.rows, found.data());
      for (size_t i = 0; i < found.size(); ++i) {
        if (rows.places[i] >= 0) out[rows.places[i]] = found[i];
      }
    }
    return absl::OkStatus();
  }

  Attributes attributes_;
};

template <typename T, typename Id>
using TensorWeightGradOp = WeightGradOp<T, Id, false>;
template <typename T, typename Id>
using ResourceWeightGradOp = WeightGradOp<T, Id, true>;
WORKBENCH_GROUPED_KERNELS("WorkbenchGroupedLookUpWeightGrad", TensorWeightGradOp);
WORKBENCH_GROUPED_KERNELS("WorkbenchResourceGroupedLookUpWeightGrad", ResourceWeightGradOp);

}  // namespace
}  // namespace workbench::grouped
