"""Export: what was written, in words."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.number_words import counted

CAUTION = (
    "A SavedModel is code that may read and write files: load it only if you trust who made it."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Export:
    """A SavedModel that was written.

    Attributes:
      path: its folder.
      signatures: names of its signatures.
      replaced: how many nodes of each of Workbench's types became stock ops.
      kept: the types of Workbench's ops that it still has.
      rows: how many rows each EmbeddingVariable has, by its name.
      stage_inputs: inputs that stand for what a stage handed out.
      left_out: functions that no signature calls, and that it does not have, each with the reason.
      copied_files: by the paths by which the model read files the names of these among its assets.
      left_files: paths by which it reads files where they are, or nodes that compute such paths,
        each with the reason.
    """

    path: Path
    signatures: tuple[str, ...]
    replaced: Mapping[str, int] = dataclasses.field(default_factory=dict)
    kept: tuple[str, ...] = ()
    rows: Mapping[str, int] = dataclasses.field(default_factory=dict)
    stage_inputs: tuple[str, ...] = ()
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    copied_files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    left_files: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def describe(self) -> str:
        """What was written, and how it loads."""
        lines = [CAUTION, f"Wrote {self.path}: {', '.join(self.signatures) or 'no signature'}."]
        total = sum(self.replaced.values())
        if self.kept:
            lines.append(
                f"It keeps {counted(len(self.kept), 'type')} of Workbench's ops: load it with "
                "wb.load_saved(folder)."
            )
        else:
            lines.append(
                f"Stock TensorFlow loads it: {counted(total, 'node')} of Workbench's became stock "
                "ops."
            )
        lines += [f"  {name}: {counted(rows, 'row')}" for name, rows in self.rows.items()]
        if self.stage_inputs:
            lines.append(f"Stages are left out; new inputs: {', '.join(self.stage_inputs)}.")
        lines += [f"Left out {name}: {reason}." for name, reason in self.left_out.items()]
        lines += [f"Copied {path}: asset {name}." for path, name in self.copied_files.items()]
        lines += [f"Leaves {path} where it is: {why}." for path, why in self.left_files.items()]
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """The same as values that JSON can hold."""
        return {
            "kind": "export",
            **dataclasses.asdict(self),
            "path": os.fsdecode(self.path),
            "replaced": dict(self.replaced),
            "rows": dict(self.rows),
            "left_out": dict(self.left_out),
            "copied_files": dict(self.copied_files),
            "left_files": dict(self.left_files),
        }

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return self.describe()
