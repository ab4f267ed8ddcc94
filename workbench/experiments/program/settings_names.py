"""Names of a comparison's settings that say how it was measured."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.errors import OptionError

# "data" and "rows" are those of a bundled model, which is a program.
OF_MEASURING = frozenset(
    {
        *("rounds", "steps_per_block", "steps_dropped_per_block", "groups"),
        *("budget_s", "took_s", "bootstrap_seed", "configuration"),
    }
)
_OF_TOGGLES = ("stage.", "smart_stage.", "cost_model_executor.")


def require_free(names: Iterable[object], what: str) -> None:
    """Requires that a comparison gives none of these names to a setting of its own.

    Args:
      names: of a program's settings.
      what: has them, such as "Program.settings".

    Raises:
      OptionError: a name is taken.
    """
    for name in names:
        if isinstance(name, str) and (name in OF_MEASURING or name.startswith(_OF_TOGGLES)):
            raise OptionError(
                f"{what} has {name!r}, which says of a comparison how it was measured; "
                "expected another name"
            )
