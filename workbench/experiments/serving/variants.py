"""The settings of a served model to compare, the baseline first."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError
from workbench.experiments.program.toggles import Wish, listed
from workbench.experiments.program.variant import Variant, require_few_environments
from workbench.experiments.serving.toggles import require_servable, setting_of


def serving_variants(
    toggles: Wish | Sequence[Wish], baseline: Optimizations | None = None
) -> list[Variant]:
    """The baseline, and one variant for each name, setting and other choice of a toggle.

    Raises:
      OptionError: an unknown toggle, a setting twice, or one that no served model can have.
    """
    settings = [baseline or Optimizations()]
    for toggle in listed(toggles):
        settings += _settings_of(toggle)
    variants: list[Variant] = []
    for setting in settings:
        require_servable(setting)
        label = setting.label(in_full=True)
        if label in {variant.label for variant in variants}:
            raise OptionError(f"setting {label!r} is asked for twice; name each once")
        variants.append(Variant(label=label, optimizations=setting))
    require_few_environments(variants)
    return variants


def _settings_of(toggle: Wish) -> list[Optimizations]:
    if isinstance(toggle, Optimizations):
        return [toggle]
    if isinstance(toggle, Toggle):
        return [Optimizations(chosen=(toggle.at(choice),)) for choice in toggle.choices[1:]]
    return [setting_of(toggle)]
