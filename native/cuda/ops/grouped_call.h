#ifndef WORKBENCH_CUDA_OPS_GROUPED_CALL_H_
#define WORKBENCH_CUDA_OPS_GROUPED_CALL_H_

// The features of a grouped op as a call of calls.h. Shapes alone are read here: ids are on the GPU.

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/calls.h"
#include "cuda/ops/device_tables.h"
#include "lookup/grouped/grouped_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace workbench::cuda {

// The attributes of a grouped op, as far as a GPU can do them.
class GroupedAttributes {
 public:
  absl::Status Read(tensorflow::OpKernelConstruction* c);

  const grouped::Attributes& all() const { return all_; }
  const std::vector<std::string>& names() const { return names_; }
  int tables() const { return static_cast<int>(all_.dims().size()); }
  int64_t dim(int feature) const { return all_.dims()[all_.features()[feature].table]; }
  Scalar type() const { return type_; }
  bool wide_ids() const { return wide_ids_; }

 private:
  grouped::Attributes all_;
  std::vector<std::string> names_;
  Scalar type_ = Scalar::kFloat;
  bool wide_ids_ = false;
};

class GroupedCall {
 public:
  // Reads inputs "ids", "rows", "dense_shapes" and "weights". Tables have their widths, and any number
  // of rows.
  absl::Status Read(tensorflow::OpKernelContext* c, const GroupedAttributes& attributes,
                    uint64_t* complaint);

  // Reads tables that are held, which must be as wide as the attributes have them.
  absl::Status ReadTables(const DeviceTables& tables);

  // Allocates output list "vectors".
  absl::Status AllocateVectors(tensorflow::OpKernelContext* c, const GroupedAttributes& attributes);

  // Allocates output list "weight_gradients".
  absl::Status AllocateWeightGradients(tensorflow::OpKernelContext* c,
                                       const GroupedAttributes& attributes);

  // Reads input list "gradients".
  //
  //   columns: where in a concatenated gradient each feature begins; null: beside each other, and
  //     nothing else is there.
  absl::Status ReadGradients(tensorflow::OpKernelContext* c, const GroupedAttributes& attributes,
                             const std::vector<int64_t>* columns);

  TableCall* table(int number) { return &tables_[number]; }

  const GroupCall* get() const { return &call_; }

 private:
  absl::Status ReadFeature(const grouped::Feature& feature, const tensorflow::Tensor& ids,
                           const tensorflow::Tensor& rows, const tensorflow::Tensor& dense_shape,
                           FeatureCall* call, tensorflow::TensorShape* examples) const;
  absl::Status ReadIndices(const grouped::Feature& feature, const tensorflow::Tensor& ids,
                           const tensorflow::Tensor& indices,
                           const tensorflow::Tensor& dense_shape, FeatureCall* call,
                           tensorflow::TensorShape* examples) const;
  absl::Status ReadWeights(const grouped::Feature& feature, const tensorflow::Tensor& weights,
                           FeatureCall* call) const;
  absl::Status SameRows(const GroupedAttributes& attributes, int64_t* width) const;

  std::vector<FeatureCall> features_;
  std::vector<TableCall> tables_;
  std::vector<tensorflow::TensorShape> shapes_;
  GroupCall call_;
};

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_OPS_GROUPED_CALL_H_
