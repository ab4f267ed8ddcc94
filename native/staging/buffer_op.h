#ifndef WORKBENCH_STAGING_BUFFER_OP_H_
#define WORKBENCH_STAGING_BUFFER_OP_H_

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {

// The shape of an op whose input 0 is an owner, [token, thread].
absl::Status OwnerIn(tensorflow::shape_inference::InferenceContext* c);

// Sets the shapes of the `count` outputs from `first` on by the attribute `attr`, which has the
// shapes on the side that sends them; if it is empty they are unknown.
absl::Status ListShape(tensorflow::shape_inference::InferenceContext* c, const char* attr,
                       int first, int count);

}  // namespace workbench

// The attributes of every op of a buffer; WorkbenchBufferPut describes them.
#define WORKBENCH_BUFFER_OP(name)                                                                  \
  REGISTER_OP(name)                                                                                \
      .SetIsStateful()                                                                             \
      .Attr("capacity: int >= 1 = 1")                                                              \
      .Attr("stage: string = ''")                                                                  \
      .Attr("container: string = ''")                                                              \
      .Attr("shared_name: string")

#endif  // WORKBENCH_STAGING_BUFFER_OP_H_
