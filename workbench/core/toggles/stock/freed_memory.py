"""Freed memory: kept by the process for its next step, or given back to the system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.core.toggles.toggle import Toggle, Training

_GIVEN_BACK = "given_back"


class _FreedMemory(Toggle):
    def environment(self, choice: Any) -> Mapping[str, str]:
        # Settings of one's own, if empty ones, keep `keep_freed_memory` from making any.
        return {"GLIBC_TUNABLES": ""} if choice == _GIVEN_BACK else {}

    def usual_gain(self, choice: Any) -> tuple[float, float]:
        return -0.05, 0.05

    def code(self, choice: Any, *, is_function: bool) -> list[str]:
        return ["# leave out wb.keep_freed_memory()"]


FREED_MEMORY = _FreedMemory(
    name="freed_memory",
    choices=("kept", _GIVEN_BACK),
    label="freed memory",
    help="What a step frees stays for the next one, as wb.keep_freed_memory has it, or goes back.",
    training=Training.SAME,
)
