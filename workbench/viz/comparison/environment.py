"""Where a result comes from: settings and environment as pairs of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.viz.style import format

_NAMES = {
    "measured": "Measured (UTC)",
    "tensorflow": "TensorFlow",
    "cpu": "CPU",
    "tf.data inject_prefetch": "tf.data's injected prefetch",
    "tf.data prefetch of its own": "Prefetch written in the pipeline",
}
_UNITS = {"_ms": "ms", "_s": "s"}


def environment_pairs(environment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What it ran on, in the given order."""
    return tuple((_NAMES.get(key, _words(key)), _text(v)) for key, v in environment.items())


def setting_pairs(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What was run and how it was measured; units move from the name to the value."""
    pairs = []
    for key, value in settings.items():
        if key in ("configuration", "machine"):
            continue  # The one says the same to a program, the other is a note.
        ending = next((e for e in _UNITS if key.endswith(e)), "")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if ending and number:
            words = f"{_text(value)}{format.NBSP}{_UNITS[ending]}"
            pairs.append((_words(key.removesuffix(ending)), words))
        else:
            # a seed is a name to copy, not a quantity
            pairs.append((_words(key), str(value) if key.endswith("seed") else _text(value)))
    return tuple(pairs)


def differing(many: list[tuple[tuple[str, str], ...]]) -> list[str]:
    """For each list of pairs what sets it apart from the others, "" where nothing does."""
    if len(many) < 2:
        return ["" for _ in many]
    values = [dict(pairs) for pairs in many]
    # measured plans differ by chance: only what all have as a plain value can name a run
    keys = [
        key
        for key in values[0]
        if all(key in v for v in values)
        and len({v[key] for v in values}) > 1
        and not key.startswith(("Steps ", "Rounds", "Took", "Machine"))
    ]
    return [", ".join(f"{key[:1].lower()}{key[1:]} {v[key]}" for key in keys) for v in values]


def machine_note(settings: Mapping[str, Any]) -> list[str]:
    """That the machine was busy when the measurement began, where it was."""
    return [str(settings["machine"])] if settings.get("machine") else []


def prefetch_note(environment: Mapping[str, Any]) -> list[str]:
    """What a reader must know about prefetching that the program itself does not show."""
    notes = []
    if environment.get("tf.data inject_prefetch") == "on":
        notes.append(
            "tf.data put a prefetch of its own at the end of this pipeline (inject_prefetch is "
            "on), so every variant reads ahead of the step, the baseline too."
        )
    if environment.get("tf.data prefetch of its own") == "yes":
        notes.append(
            "The pipeline has a prefetch written in it, so the baseline reads ahead of the step."
        )
    return notes


def _words(key: str) -> str:
    words = key.replace("_", " ").replace("stage.", "stage ")
    return words if words.startswith("tf.") else words[:1].upper() + words[1:]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return format.integer(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text(part) for part in value)
    return format.UNKNOWN if value is None else str(value)
