#ifndef WORKBENCH_LOOKUP_GROUPED_GROUPED_GRADIENTS_H_
#define WORKBENCH_LOOKUP_GROUPED_GROUPED_GRADIENTS_H_

// Where the gradients of a grouped lookup's outputs lie.

#include <cstdint>
#include <vector>

#include "lookup/grouped/grouped_inputs.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace workbench::grouped {

// Reads input list "gradients", of features with these ids.
//
//   columns: where in a concatenated gradient each feature begins; null: beside each other, and
//     nothing else is there.
template <typename T, typename Id>
absl::Status ReadGradients(tensorflow::OpKernelContext* c, const Attributes& attributes,
                           const std::vector<int64_t>* columns, const Ids<Id>& ids,
                           Layout<const T>* out);

}  // namespace workbench::grouped

#endif  // WORKBENCH_LOOKUP_GROUPED_GROUPED_GRADIENTS_H_
