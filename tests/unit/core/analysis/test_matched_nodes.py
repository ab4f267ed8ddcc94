"""Which nodes of two traces do the same work, and what became of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.core.analysis.matched_nodes import STATUSES, RanNode, match_nodes

MIRRORED = {
    "matched": "matched",
    "moved to the stage": "moved to the step",
    "moved to the step": "moved to the stage",
    "fused": "unfused",
    "unfused": "fused",
    "new": "gone",
    "gone": "new",
}


def nodes(*names: str, staged: tuple[str, ...] = (), ops: dict[str, str] | None = None):
    return [
        RanNode(name=n, op=(ops or {}).get(n, n.split("/")[-1]), in_step=n not in staged)
        for n in names
    ]


def found(a, b, stages_a=(), stages_b=()):
    return {
        group.name: (group.status, len(group.a), len(group.b))
        for group in match_nodes(a, b, stages_a, stages_b)
    }


def test_the_same_name_is_the_same_node():
    assert found(nodes("x", "y"), nodes("y", "z")) == {
        "x": ("gone", 1, 0),
        "y": ("matched", 1, 1),
        "z": ("new", 0, 1),
    }


def test_a_node_that_a_stage_runs_has_moved():
    a, b = nodes("read", "dense"), nodes("read", "dense", staged=("read",))
    assert found(a, b)["read"] == ("moved to the stage", 1, 1)
    assert found(b, a)["read"] == ("moved to the step", 1, 1)
    assert found(b, b)["read"] == ("matched", 1, 1)


def test_a_copy_of_a_stage_is_the_node_that_it_was_made_from():
    a = nodes("dlrm/C1/x", "dense")
    b = nodes("smart_stage/dlrm/C1/x", "dense", staged=("smart_stage/dlrm/C1/x",))
    assert found(a, b, (), ("smart_stage",))["dlrm/C1/x"] == ("moved to the stage", 1, 1)
    # without a stage of that name it is a scope like any other
    assert found(a, b)["smart_stage/dlrm/C1/x"] == ("new", 0, 1)


def test_a_scope_named_like_a_stage_keeps_its_name():
    a = nodes("input/read")
    b = nodes("input/read", staged=("input/read",))
    assert found(a, b, (), ("input",)) == {"input/read": ("moved to the stage", 1, 1)}


def test_a_copy_beside_the_node_itself_is_one_group_that_still_runs_in_the_step():
    a, b = nodes("axis"), nodes("axis", "smart_stage/axis", staged=("smart_stage/axis",))
    assert found(a, b, (), ("smart_stage",)) == {"axis": ("matched", 1, 2)}


def test_two_stages_of_other_names_hold_the_same_node():
    a, b = (nodes(n, staged=(n,)) for n in ("one/x", "two/x"))
    assert found(a, b, ("one",), ("two",)) == {"one/x": ("matched", 1, 1)}


def test_numbers_of_inlined_functions_do_not_count():
    a = nodes("scan/while/body/_1/MatMul", "f/_1/input/_603", "f/_1/input/_604")
    b = nodes("scan/while/body/_2/MatMul", "f/_2/input/_604", "f/_2/input/_605")
    assert found(a, b) == {
        "scan/while/body/_1/MatMul": ("matched", 1, 1),
        "f/_#/input/_#": ("matched", 2, 2),
    }


STOCK = nodes(
    "m/C1/hash",
    "m/C1/embedding_lookup/SparseFillEmptyRows",
    "m/C1/embedding_lookup/embedding_lookup_sparse",
    "m/C1/embedding_lookup",
    "m/C2/embedding_lookup/Where",
    "gradients/m/C1/embedding_lookup/Reshape_grad/Reshape",
    "gradients/m/C1/embedding_lookup_grad/Select",
    "Adagrad/update_m/C1_table/SparseApplyAdagrad",
    "Adagrad/update_m/C1_table/Unique",
)
LOOKUP = "m/C1/fused_embedding_lookup"
V2 = nodes(
    "m/C1/hash",
    f"{LOOKUP}/WorkbenchPruneInvalidAndFillEmptyRows",
    f"{LOOKUP}/WorkbenchUniqueWithCounts",
    f"{LOOKUP}/Const",
    LOOKUP,
    f"gradients/{LOOKUP}_grad/WorkbenchLocalLookUpGrad",
    "Adagrad/update_m/C1_table/WorkbenchRowsApply",
    ops={LOOKUP: "WorkbenchLocalLookUp"},
)


def test_fused_ops_replace_the_stock_ops_of_their_scope():
    assert found(STOCK, V2) == {
        "m/C1/hash": ("matched", 1, 1),
        "m/C1/embedding_lookup": ("fused", 3, 4),
        "m/C2/embedding_lookup/Where": ("gone", 1, 0),
        "gradients/m/C1/embedding_lookup": ("fused", 2, 1),
        "Adagrad/update_m/C1_table": ("fused", 2, 1),
    }
    assert found(V2, STOCK)["m/C1/embedding_lookup"] == ("unfused", 4, 3)


def test_a_staged_fused_lookup_is_fused():
    ahead = f"smart_stage/{LOOKUP}/WorkbenchPreLookUp"
    got = found(STOCK, nodes(ahead, staged=(ahead,)), (), ("smart_stage",))
    assert got["m/C1/embedding_lookup"] == ("fused", 3, 1)


def test_another_generation_of_the_fused_ops_is_the_same_lookup():
    v1 = nodes(f"{LOOKUP}/WorkbenchPreLookUp", LOOKUP, ops={LOOKUP: "WorkbenchLocalLookUp"})
    assert found(v1, V2)["m/C1/embedding_lookup"] == ("matched", 1, 3)
    assert found(v1, V2)[LOOKUP] == ("matched", 1, 1)


def test_a_named_lookup_and_one_without_a_scope_around_it():
    for stock, fused in (
        ("item/Where", "item/WorkbenchPreLookUp"),
        ("embedding_lookup_1/Where", "fused_embedding_lookup_1/WorkbenchPreLookUp"),
        ("m/item/embedding_lookup_sparse/Where", "m/item/WorkbenchPreLookUp"),
    ):
        assert [status for status, _, _ in found(nodes(stock), nodes(fused)).values()] == ["fused"]


def test_a_fused_op_far_from_what_is_gone_replaces_nothing():
    assert found(nodes("m/loss"), nodes("m/C1/fused_embedding_lookup/WorkbenchPreLookUp")) == {
        "m/loss": ("gone", 1, 0),
        "m/C1/fused_embedding_lookup/WorkbenchPreLookUp": ("new", 0, 1),
    }


NAMES = ["x", "m/x", "m/_1/x", "m/_2/x", "m/embedding_lookup/Where", "m/embedding_lookup"]
NAMES += ["m/fused_embedding_lookup/WorkbenchPreLookUp", "g/m/embedding_lookup_grad/y"]
names = st.lists(
    st.sampled_from([stage + name for stage in ("s/", "t/", "") for name in NAMES]),
    unique=True,
    max_size=12,
)


@given(names, names)
def test_each_node_is_in_one_group_and_the_way_back_mirrors_it(a, b):
    one, other = nodes(*a, staged=("s/x", "s/m/x")), nodes(*b, staged=("t/x",))
    groups = match_nodes(one, other, ("s",), ("t",))
    assert sorted(i for g in groups for i in g.a) == list(range(len(a)))
    assert sorted(i for g in groups for i in g.b) == list(range(len(b)))
    assert {g.status for g in groups} <= set(STATUSES)
    back = match_nodes(other, one, ("t",), ("s",))
    assert {(g.b, g.a, MIRRORED[g.status]) for g in back} == {(g.a, g.b, g.status) for g in groups}


@given(names)
def test_a_trace_matches_itself(a):
    one = nodes(*a)
    assert {g.status for g in match_nodes(one, one, ("s",), ("s",))} <= {"matched"}


def test_a_fused_batch_normalization_replaces_moments_and_what_they_normalize():
    stock = [f"m/norm/{name}" for name in ("moments/mean", "batchnorm/Rsqrt", "batchnorm/add_1")]
    stock += ["gradients/m/norm/batchnorm/mul_1_grad/Mul", "gradients/m/norm/moments/truediv"]
    forward, back = "m/norm/fused_batch_norm", "gradients/m/norm/fused_batch_norm_grad"
    ops = {forward: "WorkbenchBatchNorm", back: "WorkbenchBatchNormGrad"}
    assert found(nodes("m/dense", *stock), nodes("m/dense", forward, back, ops=ops)) == {
        "m/dense": ("matched", 1, 1),
        "m/norm": ("fused", 3, 1),
        "gradients/m/norm": ("fused", 2, 1),
    }


def test_the_gradient_of_a_relu_is_gone_with_that_of_the_norm_behind_it():
    """It is in the scope of another layer, and what is left of it is an Identity, if it runs."""
    relu, bias = "gradients/m/l/Relu_grad/ReluGrad", "gradients/m/l/BiasAdd_grad/BiasAddGrad"
    stock = nodes(
        "gradients/m/l_norm/moments/truediv", relu, bias, "gradients/m/l/MatMul_grad/MatMul"
    )
    back = "gradients/m/l_norm/fused_batch_norm_grad"
    ops = {back: "WorkbenchBatchNormGrad", relu: "Identity"}
    fused = nodes(back, relu, "gradients/m/l/MatMul_grad/MatMul", ops=ops)
    assert found(stock, fused) == {
        "gradients/m/l_norm": ("fused", 1, 1),
        relu: ("matched", 1, 1),
        bias: ("gone", 1, 0),
        "gradients/m/l/MatMul_grad/MatMul": ("matched", 1, 1),
    }
