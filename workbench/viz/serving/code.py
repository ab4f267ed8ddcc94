"""The cell that measures a served model again, and the session that serves it with a setting."""

from __future__ import annotations

import json

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import OptionError
from workbench.experiments.program.as_code import options_code
from workbench.experiments.program.toggles import AUTO_FUSED, EXECUTORS, THREADS, optimizations_of
from workbench.experiments.serving.results import ServingComparison
from workbench.experiments.serving.toggles import SERVING


def serving_code(comparison: ServingComparison) -> str:
    """Python that runs the same settings under the same loads.

    The program itself is not part of a result. It stands as `program`, with what it was.
    """
    loads = [load for load, _ in comparison.loads]
    clients = dict.fromkeys(load.clients for load in loads if load.rate is None)
    rates = dict.fromkeys(load.rate for load in loads if load.rate is not None)
    limit = next((one.limit_ns for one in comparison.baseline.rates_at_limit), None)
    what = f"{comparison.program}, signature {comparison.signature}"
    lines = ["import workbench as wb", "", "comparison = wb.serve_bench("]
    lines.append(f"    program,  # of wb.served(…): {what}")
    lines.append(
        f"    [{', '.join(_expression(v.optimizations) for v in comparison.variants[1:])}],"
    )
    if comparison.baseline.optimizations != Optimizations():
        lines.append(f"    baseline={options_code(comparison.baseline.optimizations)},")
    lines.append(f"    clients={list(clients)},")
    lines += [f"    rates={list(rates)},"] if rates else []
    lines.append(f"    p99_limit={limit / 1e9:g}," if limit else "    p99_limit=None,")
    return "\n".join([*lines, f"    rounds={comparison.rounds},", ")", "comparison"])


def session_code(setting: Optimizations, signature: str) -> str:
    """Python that loads a SavedModel into a session with this setting; `folder` is the model's."""
    lines = ["import tensorflow as tf", "import workbench as wb", ""]
    of_session: list[str] = []
    for choice in setting.switched:
        before = choice.toggle.environment(choice.value)
        (lines if before else of_session).extend(
            choice.toggle.code(choice.value, is_function=False)
        )
    policy = f'wb.executor_options("{setting.executor}")' if setting.executor else ""
    lines += [f"config = {policy or 'tf.compat.v1.ConfigProto()'}", *of_session]
    for name in ("inter_op", "intra_op"):
        if count := getattr(setting, f"{name}_threads"):
            lines.append(f"config.{name}_parallelism_threads = {count}")
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
