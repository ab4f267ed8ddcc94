// The kernel of HashColumns: each column on one of the intra-op threads.

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "hashing/fingerprint.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "threading/intra_op_threads.h"

namespace workbench {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;

// Nanoseconds that a text takes.
constexpr int64_t kCostOfText = 12;

// The coordinates of one text after the other.
class Place {
 public:
  explicit Place(const TensorShape& shape) : at_(shape.dims()) {
    for (int d = 0; d < shape.dims(); ++d) sizes_.push_back(shape.dim_size(d));
  }

  void Next() {
    for (int d = static_cast<int>(at_.size()) - 1; d >= 0; --d) {
      if (++at_[d] < sizes_[d]) return;
      at_[d] = 0;
    }
  }

  int64_t* Write(int64_t* to) const {
    for (int64_t each : at_) *to++ = each;
    return to;
  }

 private:
  absl::InlinedVector<int64_t, 4> at_, sizes_;
};

class HashColumnsOp : public OpKernel {
 public:
  explicit HashColumnsOp(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("buckets", &buckets_));
    OP_REQUIRES_OK(c, c->GetAttr("zero_last", &zero_last_));
    const size_t count = c->num_inputs();
    OP_REQUIRES(c, buckets_.size() == count && zero_last_.size() == count,
                absl::InvalidArgumentError(
                    absl::StrCat("buckets and zero_last have ", buckets_.size(), " and ",
                                 zero_last_.size(), " values; expected ", count)));
    for (int64_t each : buckets_) {
      OP_REQUIRES(c, each > 0, absl::InvalidArgumentError(absl::StrCat(each, " buckets")));
    }
  }

  void Compute(OpKernelContext* c) override {
    const int count = c->num_inputs();
    std::vector<Tensor> ids(count), indices(count);
    std::vector<int64_t> found(count);
    int64_t texts = 0;
    for (int i = 0; i < count; ++i) {
      const TensorShape& shape = c->input(i).shape();
      const int64_t size = shape.num_elements(), width = shape.dims() + zero_last_[i];
      OP_REQUIRES_OK(c, c->allocate_temp(tensorflow::DT_INT64, {size}, &ids[i]));
      OP_REQUIRES_OK(c, c->allocate_temp(tensorflow::DT_INT64, {size, width}, &indices[i]));
      texts += size;
    }
    ByRanges(WorthThreads(c, texts * kCostOfText), count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) found[i] = Hash(c->input(i), i, &ids[i], &indices[i]);
    });
    for (int i = 0; i < count; ++i) {
      c->set_output(i, ids[i].Slice(0, found[i]));
      c->set_output(count + i, indices[i].Slice(0, found[i]));
    }
  }

 private:
  // Returns how many texts are not empty.
  int64_t Hash(const Tensor& column, int64_t i, Tensor* ids, Tensor* indices) const {
    const auto texts = column.flat<tstring>();
    const uint64_t buckets = buckets_[i];
    int64_t* const first = ids->flat<int64_t>().data();
    int64_t *id = first, *index = indices->flat<int64_t>().data();
    Place place(column.shape());
    for (int64_t t = 0; t < texts.size(); ++t, place.Next()) {
      const tstring& text = texts(t);
      if (text.empty()) continue;
      *id++ = util::Fingerprint64(text.data(), text.size()) % buckets;
      index = place.Write(index);
      if (zero_last_[i]) *index++ = 0;
    }
    return id - first;
  }

  std::vector<int64_t> buckets_;
  std::vector<bool> zero_last_;
};

REGISTER_GUARDED_KERNEL(Name("WorkbenchHashColumns").Device(tensorflow::DEVICE_CPU),
                        HashColumnsOp);

}  // namespace
}  // namespace workbench
