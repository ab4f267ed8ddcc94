// The product of two float32 matrices, either of which may lie transposed.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("WorkbenchMatMul")
    .Input("a: float")
    .Input("b: float")
    .Output("product: float")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .SetShapeFn(tensorflow::shape_inference::MatMulShape)
    .Doc(R"doc(
What MatMul gives, by a kernel that copies both factors into the order in which it reads them.

Sums have one order whatever the threads.

a: float32 [rows, inner], or [inner, rows] where transpose_a.
b: float32 [inner, columns], or [columns, inner] where transpose_b.
product: [rows, columns].
)doc");
