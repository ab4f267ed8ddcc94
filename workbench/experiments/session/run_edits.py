"""RunEdits: what a user calls runs, notes of them, groups them by, and deletes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from workbench.errors import OptionError
from workbench.experiments.session.run import Run

# Characters at most.
_MOST = {"name": 80, "note": 2000, "group": 40}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunEdits:
    """Edits of a session's runs, by their numbers; the measurements themselves never change.

    Attributes:
      words: name, note and group of runs, as far as they differ from what was measured or loaded.
      deleted: runs that are left out.
    """

    words: Mapping[int, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    deleted: frozenset[int] = frozenset()

    def described(self, number: int, words: Mapping[str, str]) -> RunEdits:
        """The same with other words for a run.

        Args:
          number: of the run.
          words: by "name", "note" or "group"; what is missing stays.

        Raises:
          OptionError: one is too long, or no text.
        """
        clean = {key: _clean(key, value) for key, value in words.items()}
        before = self.words.get(number, {})
        return dataclasses.replace(self, words={**self.words, number: {**before, **clean}})

    def without(self, number: int) -> RunEdits:
        """The same without a run."""
        return dataclasses.replace(self, deleted=self.deleted | {number})

    def applied(self, runs: Iterable[Run]) -> tuple[Run, ...]:
        """The runs as the user has them."""
        kept = (run for run in runs if run.number not in self.deleted)
        return tuple(
            _with_words(run, self.words[run.number]) if run.number in self.words else run
            for run in kept
        )


def _with_words(run: Run, words: Mapping[str, str]) -> Run:
    return dataclasses.replace(
        run,
        name=words.get("name", run.name),
        note=words.get("note", run.note),
        group=words.get("group", run.group),
    )


def _clean(key: str, value: object) -> str:
    """A text without what is around it; of a name and a group a single line."""
    if not isinstance(value, str):
        raise OptionError(f"the {key} of a run is {value!r}; expected a text")
    text = value.strip() if key == "note" else " ".join(value.split())
    if len(text) > _MOST[key]:
        raise OptionError(
            f"the {key} of a run has {len(text)} characters; expected at most {_MOST[key]}"
        )
    return text
