// combine.h for the 16-bit floats that TensorFlow has.

#include "combine/combine_inl.h"
#include "tensorflow/core/framework/types.h"

namespace workbench {

WORKBENCH_COMBINE_FOR(Eigen::half)
WORKBENCH_COMBINE_FOR(tensorflow::bfloat16)

}  // namespace workbench
