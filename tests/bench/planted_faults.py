"""Twenty planted faults: the program, the findings that name it, and what mends it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import workbench as wb
from tests.bench import planted_programs as programs
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.core.what_if.faster import CLIENT_WORK, INPUT_WORK, PAGES_WORK, Faster

Build = Callable[[Optimizations], wb.Built]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """A change of code.

    Attributes:
      build: the program without the fault.
      faster: what it does to the traced steps, by which it is predicted.
    """

    build: Build
    faster: tuple[Faster, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planted:
    """A program with a fault.

    Attributes:
      fault: why it is slow.
      build: builds it.
      keys: the findings that name the reason.
      mends: toggles that mend it, as `compare` names them.
      setting: what mends it, where the finding's words name a setting and no toggle.
      change: the change of code that mends it, where neither does.
      on: what it is built with.
    """

    fault: str
    build: Build
    keys: tuple[str, ...]
    mends: tuple[str, ...] = ()
    setting: Optimizations | None = None
    change: Change | None = None
    on: Optimizations = dataclasses.field(default_factory=Optimizations)


def _without(build: Build, *work: str, times: float = math.inf) -> Change:
    """A change of code that makes this work so many times as fast, or leaves it out."""
    return Change(build=build, faster=tuple(Faster(work=each, times=times) for each in work))


_STAGE = Optimizations(stage=StageOptions(num_threads=1, capacity=1))
_TWO = Optimizations(stage=StageOptions(num_threads=2, capacity=2))
_TWO_THREADS = Optimizations(stage=StageOptions(num_threads=2, capacity=1))
_STAGES = ("stage", "smart_stage")
# Of 300,000 rows 512 are left.
_ROWS = 300_000 / 512
PLANTED: dict[str, Planted] = {
    each.build.__name__: each
    for each in (
        Planted(fault="each batch waits 20 ms", build=programs.waiting_input,
                keys=("nothing_staged",), mends=_STAGES),
        Planted(fault="text is parsed in the step", build=programs.parse_in_the_step,
                keys=("nothing_staged",), mends=_STAGES),
        Planted(fault="text is parsed behind the stage", build=programs.parse_behind_a_stage,
                keys=("little_staged",), mends=("smart_stage",), on=_STAGE),
        Planted(fault="words are hashed in the step", build=programs.ids_made_in_the_step,
                keys=("nothing_staged",), mends=_STAGES),
        Planted(fault="the stage waits 20 ms for each batch",
                build=programs.slow_input_behind_a_stage,
                keys=("input_bound",), on=_STAGE,
                change=_without(programs.input_of_two_calls, INPUT_WORK, times=2.0)),
        Planted(fault="one thread of a stage waits and parses",
                build=programs.one_thread_waits_and_parses,
                keys=("one_thread_stage",), setting=_TWO_THREADS, on=_STAGE),
        Planted(fault="the input computes longer than the step",
                build=programs.input_that_computes_too_long, keys=("input_bound",), on=_TWO,
                change=_without(programs.input_of_one_product, "product_1/*", "product_2/*")),
        Planted(fault="20 lookups of many ops each", build=programs.lookups_of_many_ops,
                keys=("many_op_lookups",), mends=("auto_fused",)),
        Planted(fault="batch normalizations of many ops", build=programs.normalized_op_by_op,
                keys=("many_op_norms",), mends=("auto_fused",)),
        Planted(fault="dot products by way of all of them", build=programs.all_dot_products,
                keys=("many_op_interactions",), mends=("auto_fused",)),
        Planted(fault="a factorization machine of many ops",
                build=programs.factorization_of_many_ops,
                keys=("many_op_interactions",), mends=("auto_fused",)),
        Planted(fault="a table is copied in each step", build=programs.copied_table,
                keys=("copied_table",),
                change=_without(programs.table_of_which_rows_are_read, "norm/*")),
        Planted(fault="the gradient of a table is dense", build=programs.dense_gradient,
                keys=("dense_gradient",),
                change=_without(programs.gradient_of_rows, "l2_normalize*",
                                "gradients/l2_normalize*", "gradients/embedding_lookup*",
                                "GradientDescent/update_table/*", times=_ROWS)),
        Planted(fault="Adam moves the whole table", build=programs.adam_over_the_whole_table,
                keys=("whole_table_update",), mends=("auto_fused",)),
        Planted(fault="3,200 ops of a few numbers", build=programs.many_small_ops,
                keys=("small_ops",), mends=("inline_executor",)),
        Planted(fault="one op of one thread", build=programs.one_long_op, keys=("lone_op",),
                change=_without(programs.two_ops_side_by_side, "order", times=2.0)),
        Planted(fault="24 threads on few cores", build=programs.too_many_threads,
                keys=("oversubscribed",), setting=Optimizations(inter_op_threads=2)),
        Planted(fault="a hook rests 20 ms", build=programs.slow_hook, keys=("client_time",),
                change=_without(programs.no_hook, CLIENT_WORK)),
        Planted(fault="tensors get fresh small pages in each step", build=programs.fresh_pages,
                keys=("new_pages",), change=_without(programs.kept_pages, PAGES_WORK)),
        Planted(fault="side work runs before the long chain",
                build=programs.long_chain_behind_side_work,
                keys=("order_of_ops",), mends=("cost_model_executor",)),
    )
}  # fmt: skip
