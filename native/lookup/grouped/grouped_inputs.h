#ifndef WORKBENCH_LOOKUP_GROUPED_GROUPED_INPUTS_H_
#define WORKBENCH_LOOKUP_GROUPED_GROUPED_INPUTS_H_

// What all kernels of grouped lookups read: attributes and ids of the features.

#include <cstdint>
#include <string>
#include <vector>

#include "combine/combine.h"
#include "lookup/grouped/feature_rows.h"
#include "lookup/row_ids.h"
#include "registration/guarded_kernel.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "threading/first_error.h"

namespace workbench::grouped {

// One feature as the attributes describe it.
struct Feature {
  std::string name;
  int table = 0;
  Combiner combiner = Combiner::kSum;
  KeepRules rules;
  int weights = -1;  // which of inputs "weights" is the feature's; below 0 none
  int64_t zero_id = -1;  // has a gradient of 0 where an example has no id; below 0 none
  float max_norm = -1;  // longer embeddings are shortened to it; below 0 none
  bool ends_with_ids = false;  // its last example is the last one that has an id
};

class Attributes {
 public:
  absl::Status Read(tensorflow::OpKernelConstruction* c);

  const std::vector<Feature>& features() const { return features_; }
  int count() const { return static_cast<int>(features_.size()); }
  const std::vector<int64_t>& dims() const { return dims_; }  // of each table
  bool concatenated() const { return concatenated_; }

 private:
  // Says of features which of the inputs "weights" is theirs.
  absl::Status ReadWeighted(tensorflow::OpKernelConstruction* c);

  std::vector<int64_t> dims_;
  std::vector<Feature> features_;
  bool concatenated_ = false;
};

// The error of a feature.
absl::Status FeatureError(const Feature& feature, const std::string& what);

// The ids of all features.
template <typename Id>
class Ids {
 public:
  // Reads inputs "ids", "rows", "dense_shapes" and "weights"; `table_rows` of each table.
  absl::Status Read(tensorflow::OpKernelContext* c, const Attributes& attributes,
                    const std::vector<int64_t>& table_rows);

  // The ids of a feature whose ids ReadBlock found unordered, brought into order.
  absl::Status Order(tensorflow::OpKernelContext* c, const Attributes& attributes, int feature);

  const FeatureIds<Id>& operator[](int feature) const { return features_[feature]; }

  // All but the last dimension of a feature.
  const tensorflow::TensorShape& examples(int feature) const { return shapes_[feature]; }

 private:
  absl::Status ReadOne(const Feature& feature, const tensorflow::Tensor& ids,
                       const tensorflow::Tensor& rows, const tensorflow::Tensor& dense_shape,
                       FeatureIds<Id>* in, tensorflow::TensorShape* examples, bool* flat) const;
  absl::Status ReadSplits(const Feature& feature, const tensorflow::Tensor& ids,
                          const tensorflow::Tensor& splits, FeatureIds<Id>* in) const;
  absl::Status ReadIndices(const Feature& feature, const tensorflow::Tensor& ids,
                           const tensorflow::Tensor& indices, const tensorflow::Tensor& dense_shape,
                           FeatureIds<Id>* in, tensorflow::TensorShape* examples) const;

  std::vector<FeatureIds<Id>> features_;
  std::vector<tensorflow::TensorShape> shapes_;
  std::vector<tensorflow::Tensor> ordered_;  // what Order made
};

// A part of a feature's examples.
struct Block {
  int feature = 0;
  int64_t number = 0;
};

template <typename Id>
std::vector<Block> AllBlocks(const Ids<Id>& ids, int features);

// Says what is wrong with a block of which ReadBlock said kNoSuchRow.
template <typename Id>
absl::Status NoSuchRow(const Feature& feature, const FeatureIds<Id>& in, const BlockRows& block);

// Where each feature's part of an example begins, and how far examples are apart.
template <typename T>
struct Layout {
  std::vector<T*> begins;
  std::vector<int64_t> strides;
};

// Checks that features which are to be one tensor have as many examples; says how many.
template <typename Id>
absl::Status SameRows(const Attributes& attributes, const Ids<Id>& ids, int64_t* examples);

// Attribute `columns`: where in a concatenated gradient each feature begins.
absl::Status ReadColumns(tensorflow::OpKernelConstruction* c, const Attributes& attributes,
                         std::vector<int64_t>* columns);

// Allocates what a grouped lookup gives: an output of each feature, or one of all.
template <typename T, typename Id>
absl::Status AllocateVectors(tensorflow::OpKernelContext* c, const Attributes& attributes,
                             const Ids<Id>& ids, Layout<T>* out) {
  const int count = attributes.count();
  if (!attributes.concatenated()) {
    for (int f = 0; f < count; ++f) {
      const int64_t dim = attributes.dims()[attributes.features()[f].table];
      tensorflow::TensorShape shape = ids.examples(f);
      TF_RETURN_IF_ERROR(shape.AddDimWithStatus(dim));
      tensorflow::Tensor* each = nullptr;
      TF_RETURN_IF_ERROR(c->allocate_output(f, shape, &each));
      out->begins.push_back(each->flat<T>().data());
      out->strides.push_back(dim);
    }
    return absl::OkStatus();
  }
  int64_t examples = 0, width = 0;
  TF_RETURN_IF_ERROR(SameRows(attributes, ids, &examples));
  std::vector<int64_t> begins;
  for (const Feature& each : attributes.features()) {
    begins.push_back(width);
    width += attributes.dims()[each.table];
  }
  tensorflow::Tensor* all = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, tensorflow::TensorShape({examples, width}), &all));
  for (int64_t begin : begins) out->begins.push_back(all->flat<T>().data() + begin);
  out->strides.assign(count, width);
  return absl::OkStatus();
}

// Nanoseconds that an id takes: reading it, and adding its row.
inline int64_t CostOfId(int64_t row_bytes) { return 3 + row_bytes / 16; }

}  // namespace workbench::grouped

#define WORKBENCH_GROUPED_KERNEL(op, T, Id, ...)              \
  REGISTER_GUARDED_KERNEL(Name(op)                            \
                              .Device(tensorflow::DEVICE_CPU) \
                              .TypeConstraint<T>("T")         \
                              .TypeConstraint<Id>("Tid"),     \
                          __VA_ARGS__)
#define WORKBENCH_GROUPED_KERNELS_OF(op, T, Kernel)               \
  WORKBENCH_GROUPED_KERNEL(op, T, int32_t, Kernel<T, int32_t>);   \
  WORKBENCH_GROUPED_KERNEL(op, T, int64_t, Kernel<T, int64_t>)

// Registers a kernel template for all types of tables and ids.
#define WORKBENCH_GROUPED_KERNELS(op, Kernel)                     \
  WORKBENCH_GROUPED_KERNELS_OF(op, float, Kernel);                \
  WORKBENCH_GROUPED_KERNELS_OF(op, Eigen::half, Kernel);          \
  WORKBENCH_GROUPED_KERNELS_OF(op, tensorflow::bfloat16, Kernel)

#endif  // WORKBENCH_LOOKUP_GROUPED_GROUPED_INPUTS_H_
