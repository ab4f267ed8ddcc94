#ifndef WORKBENCH_LOOKUP_GROUPED_GROUPED_OPS_H_
#define WORKBENCH_LOOKUP_GROUPED_GROUPED_OPS_H_

// What the registrations of all grouped ops share.

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace workbench {

// Of a lookup, whose inputs begin with the tables, then the ids, and whose outputs with the vectors.
absl::Status GroupedShape(tensorflow::shape_inference::InferenceContext* c);

}  // namespace workbench

// The ids of a grouped op, which follow its other inputs, and the attributes of all.
#define WORKBENCH_GROUPED_IDS(op)                                        \
  op.Input("ids: F * Tid")                                               \
      .Input("rows: F * int64")                                          \
      .Input("dense_shapes: F * int64")                                  \
      .Input("weights: W * float")                                       \
      .Attr("T: {float, half, bfloat16}")                                \
      .Attr("Tid: {int32, int64}")                                       \
      .Attr("N: int >= 1")                                               \
      .Attr("F: int >= 1")                                               \
      .Attr("M: int >= 1")                                               \
      .Attr("W: int >= 0 = 0")                                           \
      .Attr("weights_of: list(int) = []")                                \
      .Attr("table_of: list(int)")                                       \
      .Attr("combiners: list({'sum', 'mean', 'sqrtn'})")                 \
      .Attr("prune_invalid_ids: list(bool)")                             \
      .Attr("fill_empty_rows: list(bool)")                               \
      .Attr("default_ids: list(int)")                                    \
      .Attr("ends_with_ids: list(bool) = []")                            \
      .Attr("max_norms: list(float) = []")                               \
      .Attr("dims: list(int)")                                           \
      .Attr("features: list(string)")                                    \
      .Attr("concatenated: bool = false")

#endif  // WORKBENCH_LOOKUP_GROUPED_GROUPED_OPS_H_
