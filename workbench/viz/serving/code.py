"""The cell that measures a served model again, and the session that serves it with a setting."""

from __future__ import annotations

import contextlib
import json
import math

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError, one_line
from workbench.experiments.program.as_code import options_code
from workbench.experiments.program.refusals import has_no_pool
from workbench.experiments.program.toggles import AUTO_FUSED, EXECUTORS, THREADS, optimizations_of
from workbench.experiments.serving.p99_limit import P99Limit
from workbench.experiments.serving.results import ServedVariant, ServingComparison
from workbench.experiments.serving.toggles import SERVING, threads_of_each


def serving_code(comparison: ServingComparison) -> str:
    """Python that runs the same settings under the same loads.

    The program itself is not part of a result. It stands as `program`, with what it was.
    """
    loads = [load for load, _ in comparison.loads]
    clients = dict.fromkeys(load.clients for load in loads if load.rate is None)
    rates = dict.fromkeys(load.rate for load in loads if load.rate is not None)
    what = one_line(f"{comparison.program}, signature {comparison.signature}")
    lines = ["import workbench as wb", "", "comparison = wb.serve_bench("]
    lines.append(f"    program,  # of wb.served(…): {what}")
    lines.append(
        f"    [{', '.join(_expression(v.optimizations) for v in comparison.variants[1:])}],"
    )
    if comparison.baseline.optimizations != Optimizations():
        lines.append(f"    baseline={options_code(comparison.baseline.optimizations)},")
    lines.append(f"    clients={list(clients)},")
    lines += [f"    rates={list(rates)},"] if rates else []
    lines.append(f"    p99_limit={_limit(comparison)},")
    lines.append(f"    rounds={comparison.rounds},")
    for name in ("budget_s", "seed"):
        value = comparison.settings.get(name)
        if isinstance(value, int | float) and math.isfinite(value):
            lines.append(f"    {name.removesuffix('_s')}={value:g},")
    return "\n".join([*lines, ")", "comparison"])


def _limit(comparison: ServingComparison) -> str:
    """The limit of p99 as it was given, where that is known; else as it was, in seconds."""
    given = comparison.settings.get("p99_limit")
    with contextlib.suppress(OptionError):
        if isinstance(given, str) and P99Limit.of(given):
            return json.dumps(given)
    limit = next((one.limit_ns for one in comparison.baseline.rates_at_limit), None)
    return f"{limit / 1e9:g}" if limit else "None"


def session_code(variant: ServedVariant, signature: str, cores: int) -> str:
    """Python that loads a SavedModel into a session as a setting did; `folder` is the model's.

    Args:
      variant: the setting, with the sessions and the steps at one time that it had.
      signature: that requests call.
      cores: of the machine that measured it.
    """
    setting = variant.optimizations
    lines = ["import tensorflow as tf", "import workbench as wb", ""]
    of_session: list[str] = []
    for choice in (each for each in setting.switched if each.toggle not in SERVING):
        before = choice.toggle.environment(choice.value)
        (lines if before else of_session).extend(
            choice.toggle.code(choice.value, is_function=False)
        )
    policy = f'wb.executor_options("{setting.executor}")' if setting.executor else ""
    lines += [f"config = {policy or 'tf.compat.v1.ConfigProto()'}", *of_session]
    for name in ("inter_op", "intra_op"):
        if count := getattr(setting, f"{name}_threads"):
            lines.append(f"config.{name}_parallelism_threads = {count}")
    lines += _serving_lines(variant, cores)
    if setting.fuses_graph:
        lines += [
            "with tf.Graph().as_default(), tf.compat.v1.Session() as planning:",
            '    model = tf.compat.v1.saved_model.loader.load(planning, ["serve"], folder)',
            f"    plan = wb.plan_fusion(model, signature={json.dumps(signature)})",
            "config = wb.apply(plan, config)",
        ]
    lines += [
        "session = tf.compat.v1.Session(graph=tf.Graph(), config=config)",
        "with session.graph.as_default():",
        '    tf.compat.v1.saved_model.loader.load(session, ["serve"], folder)',
    ]
    return "\n".join(lines)


def _serving_lines(variant: ServedVariant, cores: int) -> list[str]:
    """How many sessions there are with which threads, and how many steps run at one time."""
    sessions, lines = variant.sessions, []
    if sessions > 1:
        lines.append(f"# load the model {sessions} times; client k calls session k % {sessions}")
        if not has_no_pool(variant.optimizations):
            lines.append("config.use_per_session_threads = True")
            if not variant.optimizations.inter_op_threads:
                threads = threads_of_each(sessions, cores)
                lines.append(f"config.inter_op_parallelism_threads = {threads}")
    if steps := variant.steps_at_once:
        lines.append(f"# a semaphore of {steps} around Session.run, first come, first served")
    return lines


def _expression(setting: Optimizations) -> str:
    """A setting by the names of its toggles where they say all of it, else as the value."""
    parts = [AUTO_FUSED] if setting.fuses_graph else []
    parts += [name for name, policy in EXECUTORS.items() if policy == setting.executor]
    parts += [f"{name}={getattr(setting, name)}" for name in THREADS if getattr(setting, name)]
    parts += [f"{one.toggle.name}={one.value}" for one in setting.switched]
    name = "+".join(parts)
    try:
        named = optimizations_of(name, StageOptions(), SmartStageOptions(), SERVING)
    except OptionError:
        return options_code(setting)
    return json.dumps(name) if named == setting else options_code(setting)
