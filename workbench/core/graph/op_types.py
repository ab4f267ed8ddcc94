"""What op types mean for a stage: which bring the input, hold state, may never move.

Facts about TensorFlow's ops by name, so that a graph can be judged without TensorFlow.
"""

from __future__ import annotations

from workbench.core.graph.workbench_ops import WORKBENCH_OPS

# Deliver a new batch each time they run.
SOURCES = frozenset(
    {
        "IteratorGetNext",
        "IteratorGetNextSync",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueManyV2",
        "QueueDequeueUpTo",
        "QueueDequeueUpToV2",
        "QueueDequeueV2",
        "ReaderRead",
        "ReaderReadUpTo",
        "ReaderReadUpToV2",
        "ReaderReadV2",
        "Unstage",
        "WorkbenchBufferTake",
    }
)
STAGE_PUT, STAGE_TAKE = "WorkbenchBufferPut", "WorkbenchBufferTake"
# Do nothing but wait for a stage's buffer, or for what a step returns of an item.
BUFFER_OPS = frozenset(
    {
        *(STAGE_PUT, STAGE_TAKE, "WorkbenchBufferAwait", "WorkbenchBufferBegin"),
        *("WorkbenchBufferReturn", "WorkbenchBufferSettle"),
    }
)
# Sources that are the model's own.
INPUTS = SOURCES - BUFFER_OPS
# Their edges lead back to the start of a loop.
LOOPS_BACK = frozenset({"NextIteration", "RefNextIteration"})

VARIABLES = frozenset(
    {
        "AutoReloadVariable",
        "TemporaryVariable",
        "VarHandleOp",
        "Variable",
        "VariableV2",
        "_VarHandlesOp",
    }
)
# Read rows of tables: the only readers of variables that may run ahead, where stale ones may.
LOOKUPS = frozenset(
    {
        *("Gather", "GatherV2", "ResourceGather", "ResourceGatherNd"),
        *("SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN"),
        *("SparseSegmentSqrtNWithNumSegments", "SparseSegmentSum"),
        *("SparseSegmentSumWithNumSegments", "WorkbenchEmbeddingGather"),
        *(op.type for op in WORKBENCH_OPS.values() if op.reads_rows),
    }
)
EMBEDDING_VARIABLE = "WorkbenchEmbeddingVariable"
# Give on what a variable holds, whole.
READS_WHOLE = frozenset({"Identity", "ReadVariableOp"})
# Make an iterator out of a handle that a run may feed.
FED_HANDLES = frozenset({"IteratorFromStringHandle", "IteratorFromStringHandleV2"})
# A run that needs one of them has to feed it.
# TensorFlow's number of the type.
FLOAT32 = 1
FED_ALWAYS = frozenset({"Placeholder", "PlaceholderV2"})
PLACEHOLDERS = FED_ALWAYS | {"PlaceholderWithDefault"}
CONTROL_FLOW = frozenset(
    {
        *("Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch", "_SwitchN"),
        *("RefEnter", "RefExit", "RefMerge", "RefNextIteration", "RefSelect", "RefSwitch"),
    }
)

# Handles of what brings the input; a stage may hold them.
INPUT_HANDLES = frozenset(
    {
        *("AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3", "Iterator"),
        *("IteratorFromStringHandle", "IteratorFromStringHandleV2", "IteratorV2"),
        *("OneShotIterator", "MultiDeviceIterator"),
        *("FIFOQueue", "FIFOQueueV2", "PaddingFIFOQueue", "PaddingFIFOQueueV2", "PriorityQueue"),
        *("PriorityQueueV2", "RandomShuffleQueue", "RandomShuffleQueueV2"),
        *("FixedLengthRecordReader", "FixedLengthRecordReaderV2", "IdentityReader"),
        *("IdentityReaderV2", "LMDBReader", "TFRecordReader", "TFRecordReaderV2"),
        *("TextLineReader", "TextLineReaderV2", "WholeFileReader", "WholeFileReaderV2"),
    }
)
# Tables that are filled once, before the first step.
FILLED_ONCE = frozenset({"AnonymousHashTable", "HashTable", "HashTableV2"})
MUTABLE_TABLES = frozenset(
    {
        *("AnonymousMutableDenseHashTable", "AnonymousMutableHashTable"),
        *("AnonymousMutableHashTableOfTensors", "MutableDenseHashTable"),
        *("MutableDenseHashTableV2", "MutableHashTable", "MutableHashTableOfTensors"),
        *("MutableHashTableOfTensorsV2", "MutableHashTableV2"),
    }
)
TABLE_CHANGES = frozenset(
    {
        *("LookupTableImport", "LookupTableImportV2", "LookupTableInsert", "LookupTableInsertV2"),
        *("LookupTableRemoveV2",),
    }
)
# Fill a queue, or watch it, from outside the step.
FEEDS_A_QUEUE = frozenset(
    {
        *("QueueClose", "QueueCloseV2", "QueueEnqueue", "QueueEnqueueMany", "QueueEnqueueManyV2"),
        *("QueueEnqueueV2", "QueueIsClosed", "QueueIsClosedV2", "QueueSize", "QueueSizeV2"),
        *("MakeIterator", "IteratorToStringHandle", "SerializeIterator", "DeserializeIterator"),
        *("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2", "ReaderReset"),
        *("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2", "ReaderResetV2"),
    }
)
# Stateful by their OpDef, but running them once more or earlier changes nothing.
SAFE_STATEFUL = frozenset(
    {
        *("Assert", "LookupTableFind", "LookupTableFindV2", "LookupTableSize"),
        *("LookupTableSizeV2", "NoOp", "_Arg", "_Retval"),
    }
)
# Outputs that cannot go through a buffer.
_CANNOT_TRAVEL = frozenset({"resource", "variant"})


def cannot_travel(dtype: str) -> bool:
    """Whether a tensor of this dtype must stay in the run that made it."""
    return dtype in _CANNOT_TRAVEL or dtype.endswith("_ref")
