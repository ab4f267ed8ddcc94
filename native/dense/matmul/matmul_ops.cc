// The product of two float32 matrices, either of which may lie transposed.

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"

REGISTER_OP("WorkbenchMatMul")
    .Input("a: float")
    .Input("b: float")
    .Input("bias: biases * float")
    .Output("product: float")
    .Attr("transpose_a: bool = false")
    .Attr("transpose_b: bool = false")
    .Attr("biases: int >= 0 = 0")
    .Attr("relu: bool = false")
    .SetShapeFn(tensorflow::shape_inference::MatMulShape)
    .Doc(R"doc(
What MatMul gives, and BiasAdd and Relu behind it, by a kernel that copies both factors into the
order in which it reads them.

Sums have one order whatever the threads.

a: float32 [rows, inner], or [inner, rows] where transpose_a.
b: float32 [inner, columns], or [columns, inner] where transpose_b.
bias: float32 [columns], added to each row; at most one.
product: [rows, columns].
relu: whether what is below 0 becomes 0.
)doc");
