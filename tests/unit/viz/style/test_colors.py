"""The palette keeps its distances; ops find their families."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from workbench.core.graph import op_families
from workbench.viz.style import colors

# panel, raised, well of each theme: what spans and swatches may stand on
SURFACES = {"light": ("#ffffff", "#f5f5f5"), "dark": ("#111111", "#212121")}
# full dichromacy, linear RGB, after Machado, Oliveira and Fernandes (2009)
BLINDNESS = {
    "none": np.eye(3),
    "red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
LEAST = {"none": {"light": 0.12, "dark": 0.13}, "red": 0.08, "green": 0.08, "blue": 0.066}
TO_LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_LAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def oklab(color: str, blindness: str) -> np.ndarray:
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(BLINDNESS[blindness]) @ linear, 0, 1)
    return np.array(TO_LAB) @ np.cbrt(np.array(TO_LMS) @ seen)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_on_every_surface_and_of_the_text(theme: str) -> None:
    for family in colors.FAMILIES:
        fill = getattr(family, theme)
        for surface in SURFACES[theme]:
            assert colors.contrast(fill, surface) >= 3, (family.name, surface)
        assert colors.contrast(colors.text_on(fill), fill) >= 4.5, family.name


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_families_stay_apart(theme: str, blindness: str) -> None:
    least = LEAST[blindness]
    wanted = least[theme] if isinstance(least, dict) else least
    for one, other in itertools.combinations(colors.FAMILIES, 2):
        pair = [oklab(getattr(f, theme), blindness) for f in (one, other)]
        assert np.linalg.norm(pair[0] - pair[1]) >= wanted, (one.name, other.name)


def test_second_channel_differs_for_every_family() -> None:
    assert len({f.code for f in colors.FAMILIES}) == len(colors.FAMILIES)
    assert len({f.pattern for f in colors.FAMILIES}) == len(colors.FAMILIES)


def test_contrast_of_black_on_white_is_21() -> None:
    assert colors.contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize(
    ("op", "name", "code"),
    [
        ("IteratorGetNext", "IteratorGetNext", "IN"),
        ("DecodeCSV", "DecodeCSV", "IN"),
        ("ReaderReadUpToV2", "ReadLines", "IN"),
        ("ParseExampleV2", "parse", "IN"),
        ("EagerPyFunc", "load", "IN"),
        ("QueueDequeueManyV2", "batch", "IN"),
        ("StringToHashBucketFast", "hash", "ID"),
        ("LookupTableFindV2", "vocabulary", "ID"),
        ("UniqueV2", "ids", "ID"),
        ("SparseFillEmptyRows", "emb/SparseFillEmptyRows", "ID"),
        ("ResourceGather", "emb/lookup", "LK"),
        ("GatherV2", "emb/GatherV2", "LK"),
        ("WorkbenchPreLookUp", "emb/WorkbenchPreLookUp", "ID"),
        ("WorkbenchPruneInvalidAndFillEmptyRows", "emb/prune", "ID"),
        ("WorkbenchUniqueWithCounts", "emb/unique", "ID"),
        ("WorkbenchPostLookUpV2", "emb", "LK"),
        ("WorkbenchResourceLocalLookUp", "emb", "LK"),
        ("WorkbenchEmbeddingGather", "emb/rows", "LK"),
        ("WorkbenchEmbeddingGroupedLookUp", "emb", "LK"),
        ("WorkbenchLocalLookUpGrad", "gradients/emb_grad", "GR"),
        ("WorkbenchEmbeddingApplyAdagrad", "Adagrad/update", "UP"),
        ("WorkbenchEmbeddingGroupedApply", "Adagrad/update", "UP"),
        ("WorkbenchRowsApply", "Adagrad/update_table/Apply", "UP"),
        ("WorkbenchGroupedApply", "update", "UP"),
        ("SparseSegmentMean", "emb/mean", "LK"),
        ("MatMul", "top/MatMul", "MM"),
        ("_FusedMatMul", "top/MatMul", "MM"),
        ("_MklNativeFusedMatMul", "top/MatMul", "MM"),
        ("_MklMatMul", "gradients/top/MatMul_grad/MatMul", "GR"),
        ("_MklTranspose", "interact/transpose", "CP"),
        ("BatchMatMulV2", "dot", "MM"),
        ("WorkbenchDotInteraction", "dot_interaction", "MM"),
        ("MatMul", "gradients/top/MatMul_grad/MatMul", "GR"),
        ("Reshape", "train/gradients/emb/Reshape_grad", "GR"),
        ("Mul", "gradient_tape/model/mul", "GR"),
        ("ReluGrad", "custom/relu", "GR"),
        ("ResourceApplyAdagradV2", "train/update", "UP"),
        ("ResourceSparseApplyAdagradV2", "gradients/update", "UP"),
        ("AssignAddVariableOp", "global_step", "UP"),
        ("ResourceScatterAdd", "emb/scatter", "UP"),
        ("ScatterUpdate", "emb/scatter", "UP"),
        ("_Send", "send", "CP"),
        ("_Recv", "gradients/recv", "CP"),
        ("ConcatV2", "interact", "CP"),
        ("Stage", "stage", "CP"),
        ("StridedSlice", "strided_slice", "CP"),
        ("TextLineReaderV2", "reader", "IN"),
        ("DynamicPartition", "emb/partition", "ID"),
        ("DynamicStitch", "emb/rows", "LK"),
        ("SparseTensorDenseMatMul", "wide", "MM"),
        ("Einsum", "attention", "MM"),
        ("DepthwiseConv2dNative", "conv", "MM"),
        ("BlockLSTM", "rnn", "MM"),
        ("NoOp", "init", "CT"),
        ("ScatterNd", "dense", "CT"),
        ("Reshape", "emb/Reshape", "CT"),
        ("gradients", "my_gradients/x", "CT"),
        # as those of stock batch normalizations: no product of matrices
        ("WorkbenchBatchNorm", "top_mlp/fused_batch_norm", "CT"),
        ("WorkbenchBatchNormGrad", "my_gradients/fused_batch_norm_grad", "GR"),
        ("FusedBatchNormGradV3", "x", "GR"),
        ("AnOpNobodyKnows", "x", "CT"),
    ],
)
def test_family_of(op: str, name: str, code: str) -> None:
    assert colors.FAMILIES[op_families.family_of(op, name)].code == code


NOT_MATRICES = """
Abs Add AddN AddV2 All Any ArgMax BiasAdd Cast ClipByValue Cumsum Div DivNoNan Elu Equal Erf Exp
FusedBatchNormV3 Greater L2Loss LeakyRelu Less Log LogSoftmax Max Maximum Mean Min Minimum Mul Neg
Pow Prod RealDiv Reciprocal Relu Relu6 Round Rsqrt SelectV2 Selu Sigmoid
SigmoidCrossEntropyWithLogits Sign Softmax Softplus SparseSoftmaxCrossEntropyWithLogits Sqrt Square
SquaredDifference Sub Sum Tanh TopKV2 Where Xdivy
"""


@pytest.mark.parametrize("op", re.findall(r"\w+", NOT_MATRICES))
def test_only_what_multiplies_matrices_is_a_dense_matmul(op: str) -> None:
    assert op_families.family_of(op, f"top_mlp/{op}") == op_families.CONTROL
    assert op_families.family_of(op, f"gradients/top_mlp/{op}") == op_families.GRADIENT


def test_families_of_many() -> None:
    found = op_families.families_of(["MatMul", "NoOp"], ["a", "b"])
    assert found.tolist() == [op_families.DENSE, op_families.CONTROL]
    assert found.dtype == np.uint8


def test_css_names_fill_and_text_of_each_family() -> None:
    css = colors.css("dark")
    assert "--wb-f0:#e2951f;" in css
    assert css.count("--wb-t") == 8
