"""Embedding lookups of one op: fused V1 and V2, beside the stock one."""
