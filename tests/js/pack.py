"""Packs the views that the tests of the scripts draw."""

from __future__ import annotations

import base64
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.builders.plans import towers
from tests.builders.timelines import TRACE
from tests.builders.traces import staged_trace, unstaged_trace
from workbench.core.planning.planner import plan_stages
from workbench.core.toggles.stock import XLA
from workbench.core.toggles.toggle import Toggle
from workbench.core.trace.trace import Trace
from workbench.viz.boundary.view import boundary_view
from workbench.viz.panel.settings.setting import CHOICES, MOVED, PanelSetting
from workbench.viz.style import format
from workbench.viz.timeline.view import timeline_view

_DURATIONS = [
    *(0, 1, 99, 100, 950, 9_949, 9_950, 99_499, 99_500, 994_999, 995_000, 99_949_999, 99_950_000),
    *(999_499_999, 999_500_000, 99_949_999_999, 99_950_000_000, 12_345_678_900_000, -1_500_000),
]
_INTEGERS = [0, 7, 999, 1000, 1_234_567, -45_000]


def main(folder: Path) -> None:
    """Writes views.json into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "views.json").write_text(json.dumps(_views()), "utf-8")


def _views() -> dict[str, Any]:
    found = towers()
    ahead = plan_stages(found, include=["tower_0/hash", "tower_1/hash"])
    return {
        "timelines": {
            "staged": _timeline(staged_trace(2)),
            "unstaged": _timeline(unstaged_trace(2)),
            "by hand": _timeline(TRACE),
        },
        "boundaries": [boundary_view(each).to_json() for each in (found, ahead)],
        "settings": [[each.state(), each.key] for each in _settings()],
        "durations": [[ns, format.duration(ns)] for ns in _DURATIONS],
        "integers": [[count, format.integer(count)] for count in _INTEGERS],
    }


def _settings() -> Iterator[PanelSetting]:
    """Settings of every stage, with and without numbers."""
    for stage, capacity, threads, pool in itertools.product(
        CHOICES["stage"], (0, 1, 3), (0, 2), (False, True)
    ):
        cut = "-net/hash -b" if stage == MOVED else ""
        yield PanelSetting(
            stage=stage, capacity=capacity, threads=threads, thread_pool=pool, cut=cut
        )
    for stage, stale in itertools.product(CHOICES["stage"], (0, 2)):
        yield PanelSetting(stage=stage, stale_lookups=stale, cut="-b" if stage == MOVED else "")
    yield PanelSetting(fusion="v2", executor="inline", inter_op_threads=4, batch_size=512)
    # Names and texts in which a key must keep everything apart.
    words = Toggle("words", ["plain", 'a "b" | ü, \\ 数'])
    yield PanelSetting(chosen=(XLA.at("clusters"), words.at(words.choices[1])))
    yield PanelSetting(
        chosen=(Toggle("jit", [False, True]).at(True), Toggle("a", [1, 2.5]).at(2.5))
    )


def _timeline(trace: Trace) -> dict[str, Any]:
    view = timeline_view(trace)
    packed = base64.b64encode(view.columns.buffer()).decode("ascii")
    return {"header": view.to_json_header(), "blob": packed}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
