// The kernel of the gradient of grouped lookups, see grouped_ops.cc.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "combine/combine.h"
#include "combine/combine_calls.h"
#include "lookup/grouped/grouped_inputs.h"
#include "lookup/grouped/table_rows.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/threadpool.h"

namespace workbench::grouped {
namespace {

using tensorflow::OpInputList;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::OpOutputList;
using tensorflow::Tensor;
using tensorflow::TensorShape;

template <typename T, typename Id>
class LookUpGradOp : public OpKernel {
 public:
  explicit LookUpGradOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, attributes_.Read(c));
    dims_ = attributes_.dims();
  }

  void Compute(OpKernelContext* c) override {
    Ids<Id> ids;
    // Which rows there are the lookup has checked.
    const std::vector<int64_t> any(dims_.size(), std::numeric_limits<int64_t>::max());
    OP_REQUIRES_OK(c, ids.Read(c, attributes_, any));
    Layout<const T> gradients;
    OP_REQUIRES_OK(c, ReadGradients(c, ids, &gradients));
    std::vector<Asked> asked(dims_.size());
    OP_REQUIRES_OK(c, Collect(c, &ids, gradients, &asked));
    std::vector<T*> out;
    OP_REQUIRES_OK(c, Allocate(c, asked, &out));
    Sum(c, asked, out);
  }

 private:
  // Who asked for rows of one table.
  struct Asked {
    TableRows rows;
    int64_t examples = 0;                  // of all features of the table
    std::unique_ptr<const T*[]> gradients;  // [examples]
    std::unique_ptr<float[]> factors;
  };

  absl::Status ReadGradients(OpKernelContext* c, const Ids<Id>& ids, Layout<const T>* out) const {
    OpInputList inputs;
    TF_RETURN_IF_ERROR(c->input_list("gradients", &inputs));
    int64_t examples = 0, width = 0;
    for (int f = 0; f < attributes_.count(); ++f) {
      const int64_t dim = dims_[attributes_.features()[f].table];
      if (!attributes_.concatenated()) {
        if (inputs.size() != attributes_.count()) {
          return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " gradients; expected ",
                                                         attributes_.count()));
        }
        const Tensor& each = inputs[f];
        if (each.dims() < 2 || each.dim_size(each.dims() - 1) != dim ||
            each.NumElements() != ids[f].examples * dim) {
          return Wrong(attributes_.features()[f],
                       absl::StrCat("gradient ", each.shape().DebugString(), "; expected […, ", dim,
                                    "] of ", ids[f].examples, " rows"));
        }
        out->begins.push_back(each.flat<T>().data());
        out->strides.push_back(dim);
      } else {
        out->begins.push_back(inputs[0].flat<T>().data() + width);
      }
      width += dim;
    }
    if (!attributes_.concatenated()) return absl::OkStatus();
    TF_RETURN_IF_ERROR(Together(attributes_, ids, &examples));
    if (inputs.size() != 1 || inputs[0].dims() != 2 || inputs[0].dim_size(0) != examples ||
        inputs[0].dim_size(1) != width) {
      return WrongShape("gradients", inputs[0], absl::StrCat("[", examples, ", ", width, "]"));
    }
    out->strides.assign(attributes_.count(), width);
    return absl::OkStatus();
  }

  // Finds the rows of each table that were asked for, and who did.
  absl::Status Collect(OpKernelContext* c, Ids<Id>* ids, const Layout<const T>& gradients,
                       std::vector<Asked>* asked) const {
    std::vector<std::vector<int>> features(dims_.size());
    int64_t count = 0;
    for (int f = 0; f < attributes_.count(); ++f) {
      features[attributes_.features()[f].table].push_back(f);
      count += (*ids)[f].count;
    }
    // Few words for each table; an error ends the step, so that order does not matter.
    FirstError error;
    std::mutex mu;
    const auto part = [&](int64_t begin, int64_t end) {
      BlockRows rows;
      for (int64_t t = begin; t < end; ++t) {
        int64_t most = 0, examples = 0;
        for (int f : features[t]) {
          examples += (*ids)[f].examples;
          most += (*ids)[f].count + ((*ids)[f].fills ? (*ids)[f].examples : 0);
        }
        (*asked)[t].rows = TableRows(most);
        (*asked)[t].gradients = Unset<const T*>(examples);
        (*asked)[t].factors = Unset<float>(examples);
        for (int f : features[t]) {
          if (!AddFeature(*ids, f, gradients, &rows, &(*asked)[t])) {
            // Once more, in order; the temporary memory is the context's.
            const std::lock_guard<std::mutex> hold(mu);
            absl::Status ordered = ids->Order(c, attributes_, f);
            if (ordered.ok() && !AddFeature(*ids, f, gradients, &rows, &(*asked)[t])) {
              ordered = Wrong(attributes_.features()[f], "an id, or the default id, is below 0");
            }
            if (!ordered.ok()) return error.Found(f, ordered);
          }
        }
        OrderRows(&(*asked)[t].rows);
      }
    };
    const int64_t tables = static_cast<int64_t>(dims_.size());
    c->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(
        tables, 12 * count / std::max<int64_t>(1, tables), part);
    return error.status();
  }

  // Adds what a feature asked for; false, and nothing is added, where its ids are unordered.
  bool AddFeature(const Ids<Id>& ids, int f, const Layout<const T>& gradients, BlockRows* rows,
                  Asked* to) const {
    const Combiner combiner = attributes_.features()[f].combiner;
    const int64_t blocks = CountBlocks(ids[f]);
    int64_t at = to->rows.ids;
    for (int64_t b = 0; b < blocks; ++b) {
      if (ReadBlock(ids[f], b, rows) != BlockState::kRead) return false;
      for (int64_t e = 0; e < rows->end - rows->begin; ++e) {
        const int32_t first = rows->splits[e], last = rows->splits[e + 1];
        const int64_t example = to->examples + rows->begin + e;
        to->factors[example] = Factor(combiner, static_cast<float>(last - first));
        to->gradients[example] = gradients.begins[f] + (rows->begin + e) * gradients.strides[f];
        for (int32_t i = first; i < last; ++i, ++at) {
          to->rows.rows[at] = rows->rows[i];
          to->rows.examples[at] = static_cast<int32_t>(example);
        }
      }
    }
    to->rows.ids = at;
    to->examples += ids[f].examples;
    return true;
  }

  static float Factor(Combiner combiner, float length) {
    if (combiner == Combiner::kSum) return 1.0f;
    return 1.0f / (combiner == Combiner::kMean ? length : std::sqrt(length));
  }

  absl::Status Allocate(OpKernelContext* c, const std::vector<Asked>& asked,
                        std::vector<T*>* out) const {
    OpOutputList rows, gradients;
    TF_RETURN_IF_ERROR(c->output_list("table_rows", &rows));
    TF_RETURN_IF_ERROR(c->output_list("row_gradients", &gradients));
    for (size_t t = 0; t < asked.size(); ++t) {
      const int64_t count = asked[t].rows.unique;
      Tensor *at = nullptr, *to = nullptr;
      TF_RETURN_IF_ERROR(rows.allocate(t, TensorShape({count}), &at));
      TF_RETURN_IF_ERROR(gradients.allocate(t, TensorShape({count, dims_[t]}), &to));
      std::copy_n(asked[t].rows.rows.get(), count, at->flat<int64_t>().data());
      out->push_back(to->flat<T>().data());
    }
    return absl::OkStatus();
  }

  void Sum(OpKernelContext* c, const std::vector<Asked>& asked, const std::vector<T*>& out) const {
    // Ranges of rows of tables, small enough to be shared out evenly.
    constexpr int64_t kRows = 512;
    struct Range {
      size_t table;
      int64_t begin, end;
    };
    std::vector<Range> ranges;
    int64_t cost = 0;
    for (size_t t = 0; t < asked.size(); ++t) {
      const int64_t count = asked[t].rows.unique;
      cost += asked[t].rows.ids * CostOfId(dims_[t] * sizeof(T));
      for (int64_t r = 0; r < count; r += kRows) ranges.push_back({t, r, std::min(r + kRows, count)});
    }
    const auto part = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto& [t, first, last] = ranges[i];
        AskedRows<T> in;
        in.dim = dims_[t];
        in.firsts = asked[t].rows.firsts.get();
        in.examples = asked[t].rows.examples.get();
        in.gradients = asked[t].gradients.get();
        in.factors = asked[t].factors.get();
        SumGradients(in, first, last, out[t] + first * in.dim);
      }
    };
    const int64_t number = static_cast<int64_t>(ranges.size());
    c->device()->tensorflow_cpu_worker_threads()->workers->ParallelFor(
        number, cost / std::max<int64_t>(1, number), part);
  }

  Attributes attributes_;
  std::vector<int64_t> dims_;
};

#define WORKBENCH_REGISTER(T, Id)                                          \
  REGISTER_KERNEL_BUILDER(Name("WorkbenchGroupedLookUpGrad")               \
                              .Device(tensorflow::DEVICE_CPU)              \
                              .TypeConstraint<T>("T")                      \
                              .TypeConstraint<Id>("Tid"),                  \
                          LookUpGradOp<T, Id>)
#define WORKBENCH_REGISTER_IDS(T) \
  WORKBENCH_REGISTER(T, int32_t); \
  WORKBENCH_REGISTER(T, int64_t)
WORKBENCH_REGISTER_IDS(float);
WORKBENCH_REGISTER_IDS(Eigen::half);
WORKBENCH_REGISTER_IDS(tensorflow::bfloat16);
#undef WORKBENCH_REGISTER_IDS
#undef WORKBENCH_REGISTER

}  // namespace
}  // namespace workbench::grouped
