"""A pytest plugin: Keras's own tests, with each model fused or staged after each `compile`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.peer.modes import Mode
from tests.peer.product_counts import ProductCounts
from tests.peer.records import FAILED, PASSED, SKIPPED, RecordWriter


class KerasPlugin:
    """Records the tests of a session and changes the models that they compile.

    Args:
      mode: what is done to a model.
      counts: where models are counted.
      writer: where tests are recorded.
    """

    def __init__(self, mode: Mode, counts: ProductCounts, writer: RecordWriter) -> None:
        self._mode = mode
        self._counts = counts
        self._writer = writer
        # By id of the model, the handles of what was done to it.
        self._handles: dict[int, list[Any]] = {}

    def pytest_configure(self, config: pytest.Config) -> None:
        """Knows the marks of Keras's tests; changes `compile`."""
        for mark in ("requires_trainable_backend", "multi_device", "large"):
            config.addinivalue_line("markers", f"{mark}: of Keras's")
        if self._mode.fuses_models or self._mode.stages_models:
            self._follow_compile()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._writer.started(_name(nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test has ended."""
        name = _name(report.nodeid)
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._writer.ended(name, FAILED, crash.message if crash else str(report.longrepr))
        elif report.skipped:
            self._writer.ended(name, SKIPPED)
        elif report.when == "call":
            self._writer.ended(name, PASSED)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file could not be imported."""
        if report.failed:
            self._writer.ended("collection", FAILED, str(report.longrepr)[-300:])

    def pytest_runtest_teardown(self) -> None:
        """Counts the models of a test, and lets them go."""
        for handles in self._handles.values():
            self._counts.changed_models += any(map(_parts, handles))
            self._counts.parts += sum(map(_parts, handles))
        self._handles.clear()

    def _follow_compile(self) -> None:
        from keras.src.trainers.trainer import Trainer

        plain = Trainer.compile

        def compiled(model: Any, *arguments: Any, **named: Any) -> Any:
            result = plain(model, *arguments, **named)
            self._change(model)
            return result

        Trainer.compile = compiled

    def _change(self, model: Any) -> None:
        import keras

        import workbench as wb
        from workbench.core.function.keras_fit import smart_stage_model

        # Many tests have a layer that is a trainer and no keras.Model, which wb.smart_stage wants.
        stage = wb.smart_stage if isinstance(model, keras.Model) else smart_stage_model
        self._counts.models += id(model) not in self._handles
        handles = self._handles.setdefault(id(model), [])
        try:
            if self._mode.stages_models:
                handles.append(stage(model))
            if self._mode.fuses_models:
                handles.append(wb.fuse_model(model))
        except wb.WorkbenchError as refusal:
            # A model that is refused stays Keras's.
            self._counts.refusals[str(refusal)[:160]] += 1


def _parts(handle: Any) -> int:
    """How much of a model runs fused, or ahead."""
    if hasattr(handle, "plans"):
        return sum(plan.count for plan in handle.plans.values())
    return int(handle.plan is not None)


def _name(nodeid: str) -> str:
    return ".".join(nodeid.split("::")[1:])
