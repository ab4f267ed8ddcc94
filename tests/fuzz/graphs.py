"""Programs in sessions: stock, fused, and fused with a smart stage."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

import workbench as wb
from tests.fuzz.built import Built, build
from tests.fuzz.compare import Difference, differences
from tests.fuzz.program import Program, Run
from tests.fuzz.result import Result
from tests.fuzz.sessions import Outcome, outcomes
from tests.fuzz.steps import Chooser, Step

v1 = tf.compat.v1
# About two of float32's last digits.
_NUDGE = 2e-7
_TIME_LIMIT_MS = 60_000
# By which TensorFlow refuses a program.
_NOT_BUILT = (TypeError, ValueError, LookupError, tf.errors.OpError)


def check(program: Program, smart: bool = False, served: bool = False) -> Result:
    """Runs a program in a stock session and in a rewritten one.

    Args:
      program: as drawn.
      smart: whether a stage runs ahead as well.
      served: whether the plan is made for what some runs fetch, and others fetch and feed a part.
    """
    try:
        built = build(program)
    except _NOT_BUILT as error:
        return Result(program=program, skipped=f"{type(error).__name__}: {error}"[:200])
    stock_config = config_of(program)
    chooser = Chooser(built, stock_config)
    runs, steps = chooser.steps()
    result = Result(program=dataclasses.replace(program, runs=runs), raced=chooser.raced)
    result.steps = len(steps)
    stock = outcomes(built, stock_config, steps)
    try:
        plan = wb.plan_fusion(built.graph, fetches=fetches_of(built) if served else None)
        config = with_executor(program, wb.apply(plan, stock_config))
        targets = list(dict.fromkeys(name for step in steps for name in step.fetches))
        # A program may read no input, where all that does races.
        if smart and chooser.order.reads_input(targets):
            config, stages = wb.prepare_config(built.graph, config, targets=targets)
            result.staged = len(stages.stages)
    except wb.WorkbenchError as error:
        result.add("plan", "planning", f"{type(error).__name__}: {error}")
        return result
    result.fused = plan.count
    found = _attempted(built, config, steps, result)
    if found is not None:
        result.differences += _confirmed(result, built, steps, stock, found)
    if result.differences and program.grappler and _grappler_changes(built, steps, stock):
        return check(dataclasses.replace(program, grappler=False), smart, served)
    if program.edit is not None and not smart:
        _try_edit(result, built, plan)
    return result


def fetches_of(built: Built) -> list[str]:
    """What runs are said to fetch: a step, a step and its losses, or losses and metrics."""
    choices = [built.train], [built.train, *built.losses], [*built.losses, *built.metrics]
    return choices[built.program.seed % len(choices)]


def config_of(program: Program) -> Any:
    """The config of stock sessions of a program."""
    config = v1.ConfigProto(operation_timeout_in_ms=_TIME_LIMIT_MS)
    config.inter_op_parallelism_threads = program.threads
    config.graph_options.rewrite_options.disable_meta_optimizer = not program.grappler
    return config


def with_executor(program: Program, config: Any) -> Any:
    """The config with the program's executor, if it asks for one."""
    return wb.executor_options(program.executor, config=config) if program.executor else config


def _attempted(
    built: Built, config: Any, steps: Sequence[Step], result: Result
) -> list[Outcome] | None:
    """The outcomes of a rewritten session; None where it cannot even be initialized."""
    try:
        return outcomes(built, config, steps, ahead=result.staged > 0)
    except (wb.WorkbenchError, tf.errors.OpError) as error:
        result.add("error", "begin", f"stock runs, here {type(error).__name__}: {error}"[:500])
        return None


def _confirmed(
    result: Result,
    built: Built,
    steps: Sequence[Step],
    stock: Sequence[Outcome],
    found: Sequence[Outcome],
) -> list[Difference]:
    """The differences that stock does not show to itself."""
    labels = [step.what for step in steps]
    seen = list(differences(stock, found, labels))
    kept = []
    for each in seen:
        step, outcome = next(
            pair for pair in zip(steps, found, strict=True) if pair[0].what == each.where
        )
        if _names_the_feed(step, outcome):
            result.refused_feeds += 1
        else:
            kept.append(each)
    if not kept:
        return []
    config = config_of(built.program)
    others = [outcomes(built, each, steps) for each in _schedules(config)]
    others.append(outcomes(built, config, steps, _NUDGE))
    varying = {
        (one.where, one.kind, one.name)
        for other in others
        for one in differences(stock, other, labels, 1e-5)
    }
    # TensorFlow's optimizer leaves out what nothing needs, and an error of it then.
    other = config_of(dataclasses.replace(built.program, grappler=not built.program.grappler))
    varying |= {
        (one.where, one.kind, one.name)
        for one in differences(stock, outcomes(built, other, steps), labels)
        if one.kind == "error"
    }
    # From there on the two sessions have trained otherwise, and no later step can tell.
    first = next((where for where in labels if any(key[0] == where for key in varying)), None)
    known = labels if first is None else labels[: labels.index(first) + 1]
    certain = [
        each
        for each in kept
        if each.where in known and (each.where, each.kind, each.name) not in varying
    ]
    result.varied += len(kept) - len(certain)
    return certain


def _schedules(config: Any) -> Iterator[Any]:
    """Configs by which stock's graph runs in other orders that it allows.

    TensorFlow's optimizer drops waits, and one thread then hides that ops race.
    """
    yield config
    threads = v1.ConfigProto.FromString(config.SerializeToString())
    threads.inter_op_parallelism_threads = 4
    yield threads
    for policy in wb.ExecutorPolicy:
        if policy.value != "normal":
            yield wb.executor_options(policy, config=config)


def _grappler_changes(built: Built, steps: Sequence[Step], stock: Sequence[Outcome]) -> bool:
    """Whether stock gives something else without TensorFlow's optimizer, which drops waits."""
    config = config_of(dataclasses.replace(built.program, grappler=False))
    labels = [step.what for step in steps]
    return any(differences(stock, outcomes(built, config, steps), labels))


def _names_the_feed(step: Step, outcome: Outcome) -> bool:
    """Whether a run ended with an error that says that something may not be fed."""
    name = step.fed.split(":")[0]
    return bool(name) and name in outcome.message and "fe" in outcome.message


def _try_edit(result: Result, old: Built, plan: Any) -> None:
    """Runs the edited program with the plan of the old one."""
    program: Program = old.program.edited()
    edit = old.program.edit
    try:
        new = build(program)
    except _NOT_BUILT:
        return
    if _definition(old) == _definition(new):
        return
    result.edits = 1
    where = f"part {edit.part}: {edit.name} becomes {edit.value!r}, with the old plan"
    config = config_of(program)
    program = dataclasses.replace(program, runs=(Run("train", picks=(1, 1, 1, 1)),))
    new = dataclasses.replace(new, program=program)
    _, steps = Chooser(new, config).steps()
    stock = outcomes(new, config, steps)
    try:
        graph = new.graph if program.seed % 2 else None
        found = outcomes(new, wb.apply(plan, config, graph=graph), steps)
    except (wb.WorkbenchError, tf.errors.InvalidArgumentError) as error:
        _require_plan_again(result, where, str(error))
        return
    refused = [outcome.message for outcome in found if outcome.error]
    if refused and not any(outcome.error for outcome in stock):
        _require_plan_again(result, where, refused[0])
        return
    for each in _confirmed(result, new, steps, stock, found):
        result.add("edit", where, str(each))


def _require_plan_again(result: Result, where: str, message: str) -> None:
    result.refused_edits = 1
    if "plan" not in message:
        result.add("edit", where, f"an error that does not say to plan again: {message[:300]}")


def _definition(built: Built) -> bytes:
    return bytes(built.graph.as_graph_def().SerializeToString(deterministic=True))
