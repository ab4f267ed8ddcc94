"""Options as the Python that makes them, with what differs from the defaults alone."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.environment import EnvironmentToggle
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Choice, Toggle
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.origin import Origin

_INTRA_OP = "tf.config.threading.set_intra_op_parallelism_threads({})"


def options_code(options: Optimizations | StageOptions | SmartStageOptions) -> str:
    """The expression that makes these options, as in "wb.StageOptions(capacity=2)"."""
    return f"wb.{type(options).__name__}({', '.join(_given(options))})"


def _given(options: Optimizations | StageOptions | SmartStageOptions) -> list[str]:
    return [
        f"{field.name}={_value(getattr(options, field.name))}"
        for field in dataclasses.fields(options)
        if getattr(options, field.name) != field.default
    ]


def model_code(origin: Origin) -> str:
    """The expression that makes one of the six models; "" of a program of the user's own."""
    if not origin.model:
        return ""
    given = ", ".join(f"{k}={v!r}" for k, v in origin.options.items() if v is not None)
    return f"wb.models.{origin.model}({given})"


def toggle_code(toggle: Toggle) -> str:
    """The expression that makes a toggle, as in "wb.Toggle("dim", [16, 32])"."""
    if toggle in STOCK:
        return f"wb.toggles.{toggle.name.upper()}"
    kind = "toggles.EnvironmentToggle" if isinstance(toggle, EnvironmentToggle) else "Toggle"
    usual = type(toggle)(toggle.name, toggle.choices)
    given = [_text(toggle.name), f"[{', '.join(map(_value, toggle.choices))}]"]
    for name in ("label", "help", "training"):
        if getattr(toggle, name) != getattr(usual, name):
            given.append(f"{name}={_value(getattr(toggle, name))}")
    return f"wb.{kind}({', '.join(given)})"


def _value(value: object) -> str:
    if isinstance(value, Choice):
        return f"{toggle_code(value.toggle)}.at({_value(value.value)})"
    if isinstance(value, Optimizations | StageOptions | SmartStageOptions):
        return options_code(value)
    if isinstance(value, enum.StrEnum):
        return _text(value.value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, tuple):
        return f"({''.join(f'{_value(each)}, ' for each in value).rstrip()})"
    return repr(value)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def compare_code(
    settings: Sequence[Optimizations],
    baseline: Optimizations,
    program: str = "program",
    **numbers: float,
) -> str:
    """A cell that measures settings of a program beside a baseline again.

    Args:
      settings: those beside the baseline; none measures it alone.
      baseline: what they are compared with.
      program: an expression for the program, or one and a comment.
      **numbers: further arguments of `compare`.
    """
    expression, mark, comment = program.partition("  #")
    lines = ["import workbench as wb", "", "comparison = wb.compare("]
    lines.append(f"    {expression},{mark}{comment}")
    lines.append("    [" if settings else "    [],")
    for each in settings:
        lines += _in_lines("", each, "        ")
    lines += ["    ],"] if settings else []
    if baseline != Optimizations() or not settings:
        lines += _in_lines("baseline=", baseline, "    ")
    lines += [f"    {name}={value:g}," for name, value in numbers.items()]
    return "\n".join([*lines, ")", "comparison"])


def _in_lines(name: str, setting: Optimizations, indent: str) -> list[str]:
    """A setting as an argument, a field in each line where there are several."""
    given = _given(setting)
    if len(given) < 2:
        return [f"{indent}{name}{options_code(setting)},"]
    fields = (f"{indent}    {each}," for each in given)
    return [f"{indent}{name}wb.Optimizations(", *fields, f"{indent}),"]


def program_code(setting: Optimizations, program: AnyProgram) -> str:
    """What to write in a program of one's own, so that it has this setting: lines of Python."""
    if setting.is_all_off:
        return "# Nothing: the program as it is."
    if isinstance(program, FunctionProgram):
        return "\n".join(_of_function(setting))
    return "\n".join(_of_graph(setting))


def _chosen_lines(setting: Optimizations, *, is_function: bool) -> tuple[list[str], list[str]]:
    """Lines before the model: of the environment, then of its data; and those of the others."""
    of_environment: list[str] = []
    of_data: list[str] = []
    rest: list[str] = []
    for each in setting.switched:
        before = of_data if each.toggle.is_of_data else rest
        lines = of_environment if each.toggle.environment(each.value) else before
        lines += each.toggle.code(each.value, is_function=is_function)
    return [*of_environment, *of_data], rest


def _of_function(setting: Optimizations) -> list[str]:
    first, then = _chosen_lines(setting, is_function=True)
    lines = [*first, *then]
    if setting.inter_op_threads:
        lines.append(
            f"tf.config.threading.set_inter_op_parallelism_threads({setting.inter_op_threads})"
        )
    if setting.intra_op_threads:
        lines.append(_INTRA_OP.format(setting.intra_op_threads))
    if setting.batch_size:
        lines.append(f"train_step, dataset = make(batch_size={setting.batch_size})")
    around = []
    if setting.built_fusion:
        around.append(f"wb.fused_embeddings({_text(setting.built_fusion)})")
    if setting.fuses_graph:
        lines += [
            "function = train_step.get_concrete_function(*dataset.element_spec)",
            "fused = wb.fuse_function(function)",
            "",
            "",
            "def train_step(*element):",
            "    return fused(*tf.nest.flatten(element, expand_composites=True))",
            "",
            "",
        ]
    if setting.executor:
        around.append(f"wb.executor({_value(setting.executor)})")
    loop = "for element in dataset:\n    train_step(*element)"
    if setting.smart_stage is not None:
        chosen = setting.smart_stage
        options = "" if chosen == SmartStageOptions() else f", {options_code(chosen)}"
        loop = f"for loss in wb.smart_stage(train_step, dataset{options}):\n    ..."
    if around:
        loop = f"with {', '.join(around)}:\n" + "\n".join(f"    {x}" for x in loop.splitlines())
    return [*lines, loop]


def _of_graph(setting: Optimizations) -> list[str]:
    config = "tf.compat.v1.ConfigProto()"
    lines, of_config = _chosen_lines(setting, is_function=False)
    if setting.intra_op_threads:
        # The functions of a tf.data pipeline make the process's threads before the session does.
        call = _INTRA_OP.format(setting.intra_op_threads)
        lines.append(f"{call}  # before the first dataset")
    if setting.executor:
        config = f"wb.executor_options({_value(setting.executor)})"
    if setting.stage is not None:
        lines.append(f"batch = wb.staged(batch, {options_code(setting.stage)})")
    build = "loss, train_op = build_my_model(batch)"
    if setting.built_fusion:
        lines += [f"with wb.fused_embeddings({_text(setting.built_fusion)}):", f"    {build}"]
    else:
        lines.append(build)
    lines += [f"config = {config}", *of_config]
    for name in ("inter_op", "intra_op"):
        count = getattr(setting, f"{name}_threads")
        if count:
            lines.append(f"config.{name}_parallelism_threads = {count}")
    if setting.fuses_graph:
        lines += [
            "fusion = wb.plan_fusion(tf.compat.v1.get_default_graph())",
            "wb.apply(fusion, config)",
        ]
    if setting.smart_stage is not None:
        chosen = setting.smart_stage
        options = "" if chosen == SmartStageOptions() else f", {options_code(chosen)}"
        lines += [
            "config, plan = wb.prepare_config(",
            f"    tf.compat.v1.get_default_graph(), config{options}, targets=[train_op]",
            ")",
        ]
    staged = setting.stage is not None or setting.smart_stage is not None
    hooks = ", hooks=[wb.make_prefetch_hook()]" if staged else ""
    return [
        *lines,
        "with tf.compat.v1.train.MonitoredTrainingSession(",
        f"    config=config{hooks}",
        ") as sess:",
        "    sess.run(train_op)",
    ]
