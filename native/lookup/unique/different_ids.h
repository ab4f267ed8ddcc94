#ifndef WORKBENCH_LOOKUP_UNIQUE_DIFFERENT_IDS_H_
#define WORKBENCH_LOOKUP_UNIQUE_DIFFERENT_IDS_H_

// Order and uniqueness of a kernel's ids, in memory that TensorFlow allocates.

#include <cstdint>

#include "lookup/unique/id_order.h"
#include "lookup/unique/unique_ids.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace workbench {

// Finds the ascending order of ids, kept in `memory`; null where they spread too widely.
template <typename Id>
absl::Status FindOrder(tensorflow::OpKernelContext* c, const Id* ids, int64_t count,
                       tensorflow::Tensor* memory, const int32_t** order) {
  tensorflow::Tensor scratch;
  TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DT_UINT64,
                                      tensorflow::TensorShape({2 * count}), &scratch));
  TF_RETURN_IF_ERROR(
      c->allocate_temp(tensorflow::DT_INT32, tensorflow::TensorShape({count}), memory));
  int32_t* found = memory->flat<int32_t>().data();
  *order = OrderIds(ids, count, scratch.flat<uint64_t>().data(), found) ? found : nullptr;
  return absl::OkStatus();
}

// Finds each id once, in ascending order where there is one: `different`, how often it came, and in
// `index` [count] where each id stands among them.
template <typename Id>
absl::Status FindDifferent(tensorflow::OpKernelContext* c, const Id* ids, int64_t count,
                           int32_t* index, tensorflow::Tensor* different,
                           tensorflow::Tensor* counts) {
  const tensorflow::TensorShape all({count});
  tensorflow::Tensor memory, slots, unique, often;
  const int32_t* order = nullptr;
  TF_RETURN_IF_ERROR(FindOrder(c, ids, count, &memory, &order));
  TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DataTypeToEnum<Id>::v(), all, &unique));
  TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DT_INT32, all, &often));
  Id* once = unique.flat<Id>().data();
  int32_t* times = often.flat<int32_t>().data();
  int64_t found = 0;
  if (order != nullptr) {
    found = UniqueInOrder(ids, count, order, once, index, times);
  } else {
    const tensorflow::TensorShape table({UniqueSlots(count)});
    TF_RETURN_IF_ERROR(c->allocate_temp(tensorflow::DT_INT32, table, &slots));
    found = UniqueIds(ids, count, slots.flat<int32_t>().data(), once, index, times);
  }
  // A slice shares the memory, from its aligned beginning on.
  *different = unique.Slice(0, found);
  *counts = often.Slice(0, found);
  return absl::OkStatus();
}

}  // namespace workbench

#endif  // WORKBENCH_LOOKUP_UNIQUE_DIFFERENT_IDS_H_
