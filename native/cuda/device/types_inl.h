#ifndef WORKBENCH_CUDA_DEVICE_TYPES_INL_H_
#define WORKBENCH_CUDA_DEVICE_TYPES_INL_H_

#include <cstdint>

#include "cuda/calls.h"
#include "cuda/device/scalars.h"

namespace workbench::cuda {

// Calls `function` with a value of the type of tables.
template <typename Function>
void WithScalar(Scalar type, const Function& function) {
  switch (type) {
    case Scalar::kFloat: return function(float{});
    case Scalar::kHalf: return function(Half{});
    case Scalar::kBfloat16: return function(Bfloat16{});
  }
}

// Calls `function` with values of the types of tables and ids.
template <typename Function>
void WithTypes(const GroupCall& call, const Function& function) {
  WithScalar(call.type, [&](auto scalar) {
    if (call.wide_ids != 0) {
      function(scalar, int64_t{});
    } else {
      function(scalar, int32_t{});
    }
  });
}

}  // namespace workbench::cuda

#endif  // WORKBENCH_CUDA_DEVICE_TYPES_INL_H_
