"""The op types that fusion puts into graphs: the one table of them.

What counts fused parts, colors ops by family, or tells stale lookups reads it here. A new kind of
fusion has a row for each of its ops.
"""

from __future__ import annotations

import dataclasses

# Names of families, as of op_families.FAMILY_NAMES.
_INPUT, _IDS, _LOOKUP, _DENSE = "Input, decode", "Ids, preprocess", "Lookup", "Dense matmul"
_GRADIENT, _UPDATE, _OTHER = "Gradient", "Update", "Control, other"


# Hands a tensor on, unchanged and without a copy.
HAND_ON = "WorkbenchHandOn"


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkbenchOp:
    """An op type of Workbench's in fused graphs.

    Attributes:
      type: its name in TensorFlow.
      family: name of the kind of work that it does.
      is_part: whether each of it stands for something that is fused, a lookup op or a layer; not a
        gradient or an update of one.
      reads_rows: whether it reads rows of tables, which may be stale where stages allow that.
    """

    type: str
    family: str
    is_part: bool = False
    reads_rows: bool = False


def _table() -> dict[str, WorkbenchOp]:
    lookups = [
        WorkbenchOp(type=f"Workbench{kind}LookUp", family=_LOOKUP, is_part=True, reads_rows=True)
        for kind in ("Grouped", "ResourceGrouped", "EmbeddingGrouped", "Local", "ResourceLocal")
    ]
    post = [
        WorkbenchOp(type=f"WorkbenchPostLookUp{version}", family=_LOOKUP, is_part=True)
        for version in ("", "V2")
    ]
    updates = [
        WorkbenchOp(type=f"Workbench{kind}GroupedApply{rows}", family=_UPDATE)
        for kind in ("", "Resource", "Embedding")
        for rows in ("", "All")
    ]
    layers = [
        op
        for kind in ("BatchNorm", "DotInteraction", "FmInteraction")
        for op in (
            WorkbenchOp(
                type=f"Workbench{kind}",
                family=_DENSE if kind == "DotInteraction" else _OTHER,
                is_part=True,
            ),
            WorkbenchOp(type=f"Workbench{kind}Grad", family=_GRADIENT),
        )
    ]
    swapped = [
        WorkbenchOp(type=name, family=family, is_part=True)
        for name, family in (
            ("WorkbenchMatMul", _DENSE),
            ("WorkbenchDecodeCsv", _INPUT),
            ("WorkbenchApplyAdam", _UPDATE),
            ("WorkbenchResourceApplyAdam", _UPDATE),
        )
    ]
    columns = [
        WorkbenchOp(type=f"Workbench{kind}Columns", family=_IDS, is_part=True)
        for kind in ("Hash", "Id")
    ]
    return {op.type: op for op in (*lookups, *post, *updates, *layers, *swapped, *columns)}


WORKBENCH_OPS = _table()
