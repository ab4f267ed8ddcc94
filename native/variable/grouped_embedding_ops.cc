// The op of a grouped lookup in EmbeddingVariables. Its gradient is WorkbenchGroupedLookUpGrad.

#include "lookup/grouped/grouped_ops.h"
#include "tensorflow/core/framework/op.h"

namespace workbench {

WORKBENCH_GROUPED_IDS(REGISTER_OP("WorkbenchEmbeddingGroupedLookUp").Input("tables: N * resource"))
    .Input("default_rows: N * float")
    .Input("step: S * int64")
    .Output("vectors: M * T")
    .Attr("S: int >= 0 = 0")
    .Attr("read_only: bool = false")
    .SetIsStateful()
    .SetShapeFn(GroupedShape)
    .Doc(R"doc(
WorkbenchGroupedLookUp of EmbeddingVariables, whose rows are combined where they lie; a key without a
row gets row `key mod n` of its table's n default rows. Keys are ids at or above 0, and T is float.

tables: handles of WorkbenchEmbeddingVariable.
default_rows: of each table [n, dim], n at least 1.
step: at most one scalar, the number of this step, which tables with keep_versions remember.
read_only: make no rows, count nothing.
)doc");

}  // namespace workbench
