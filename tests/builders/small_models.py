"""A model of eight nodes as text, and with its parsing behind a stage; see `graphs.graph`."""

from __future__ import annotations

MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string
parse = DecodeCSV(next)
hash = StringToHashBucketFast(parse) int64
w = VarHandleOp
read = ReadVariableOp(w)
dense = MatMul(read, hash)
train = AssignVariableOp(w, dense)
"""
STAGED = """
it = IteratorV2
next = IteratorGetNext(it) string
parse = DecodeCSV(next)
owner = Placeholder int64
put = WorkbenchBufferPut(owner, parse)
take = WorkbenchBufferTake float32
hash = StringToHashBucketFast(take) int64
w = VarHandleOp
read = ReadVariableOp(w)
dense = MatMul(read, hash)
train = AssignVariableOp(w, dense)
"""
