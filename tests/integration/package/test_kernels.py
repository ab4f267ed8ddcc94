"""Which ops have kernels for a device, as TensorFlow's registry says on this machine."""

from __future__ import annotations

from workbench import _native
from workbench.core.tf_graph.kernels import without_kernel


def test_what_has_no_kernel_for_a_gpu_is_named():
    ops = ("MatMul", "Reshape", "PartitionedCall", "StringSplit", "MatMul", "StringToNumber")
    assert without_kernel(ops, "GPU") == {"StringSplit", "StringToNumber"}
    assert without_kernel(ops, "CPU") == frozenset()


def test_functions_and_ops_without_any_kernel_are_left_out():
    assert without_kernel(("__inference_step_7", "ArgMax"), "GPU") == frozenset()


def test_our_own_ops_count_once_the_library_is_loaded():
    _native.library()
    ops = ("WorkbenchBufferPut", "WorkbenchPreLookUp")
    assert without_kernel(ops, "GPU") == {"WorkbenchPreLookUp"}
