"""The widget that a panel is: its toggles and what it shows, which page and kernel share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import anywidget
import traitlets

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.session.session import Session
from workbench.viz.panel.job_view import NOTHING
from workbench.viz.panel.settings.choices import choices_of, known_toggles, text_of
from workbench.viz.panel.settings.setting import (
    CHOICES,
    MOVED,
    NOT_MOVED,
    PanelSetting,
    setting_of,
)
from workbench.viz.panel.tabs.contents import THROUGHPUT
from workbench.viz.panel.view import TABS_OF_PANEL
from workbench.viz.style import assets, still

TOGGLES = tuple(field.name for field in dataclasses.fields(PanelSetting))
_TABS = [key for key, _ in TABS_OF_PANEL]


class PanelWidget(anywidget.AnyWidget):
    """The state of a panel; `Workbench` does with it what a click asks for.

    Attributes:
      stage, capacity, threads, thread_pool, stale_lookups, fusion, executor, inter_op_threads,
        intra_op_threads, batch_size: the toggles; a number of 0 leaves the choice to the plan or
        the program, but for lookups, which then are exact.
      cut: where the boundary was last moved to, as of `PanelSetting`; what stage "moved" runs.
      chosen: where toggles with choices stand, by name, such as {"grappler": "off"}. It keeps those
        that are not usual, as texts.
      shown, base: numbers of the run that is shown and of the one that others are compared with.
      tab: what is shown of it.
      selected, selected_table: name of the graph node, and of the embedding table, that is marked
        in every view; "" for none.
      stop_when_clear: whether the blocks of a run end once its ratio is clear.
      news: what has just happened, as of `news`; empty for nothing.
      shape: the step's graph as markup, before anything has run; "" until it is known.
    """

    stage = traitlets.Enum(CHOICES["stage"], "off").tag(sync=True)
    capacity = traitlets.Int(0, min=0).tag(sync=True)
    threads = traitlets.Int(0, min=0).tag(sync=True)
    thread_pool = traitlets.Bool(False).tag(sync=True)
    stale_lookups = traitlets.Int(0, min=0).tag(sync=True)
    fusion = traitlets.Enum(CHOICES["fusion"], "off").tag(sync=True)
    executor = traitlets.Enum(CHOICES["executor"], "normal").tag(sync=True)
    inter_op_threads = traitlets.Int(0, min=0).tag(sync=True)
    intra_op_threads = traitlets.Int(0, min=0).tag(sync=True)
    batch_size = traitlets.Int(0, min=0).tag(sync=True)
    cut = traitlets.Unicode("").tag(sync=True)
    chosen: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    shown = traitlets.Int(0).tag(sync=True)
    base = traitlets.Int(0).tag(sync=True)
    tab = traitlets.Enum(_TABS, THROUGHPUT).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    selected_table = traitlets.Unicode("").tag(sync=True)
    stop_when_clear = traitlets.Bool(False).tag(sync=True)
    # What the browser draws, made here.
    view = traitlets.Dict().tag(sync=True)
    said = traitlets.Dict().tag(sync=True)
    run_list: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    job = traitlets.Dict().tag(sync=True)
    status = traitlets.Unicode("").tag(sync=True)
    news: traitlets.Dict[str, Any] = traitlets.Dict().tag(sync=True)
    shape = traitlets.Unicode("").tag(sync=True)
    # How often the program's graphs and predictions, or the machine's peaks, have become known.
    learned = traitlets.Int(0).tag(sync=True)
    saved = traitlets.Unicode("").tag(sync=True)
    # How often names, notes, groups or deletions of runs have changed.
    edited = traitlets.Int(0).tag(sync=True)
    can_undo = traitlets.Bool(False).tag(sync=True)
    can_redo = traitlets.Bool(False).tag(sync=True)
    # Where the report lies that `saved` names; "" for none.
    saved_path = traitlets.Unicode("").tag(sync=True)
    still = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self, session: Session, setting: PanelSetting, cut: str, view: dict[str, Any]
    ) -> None:
        """Puts the toggles where a setting has them; no run is shown yet.

        Args:
          session: whose program's author has toggles, too.
          setting: where they stand.
          cut: where the boundary was last moved to, whether that is chosen or not.
          view: header, toggles and tabs, as of `panel_view`.
        """
        self.session = session
        self._esm, self._css = assets.panel_script(), assets.panel_style()
        super().__init__(
            **{**setting.state(), "cut": cut},
            view=view,
            job=dataclasses.asdict(NOTHING),
            stop_when_clear=session.stop_when_clear,
            still=still.new_name(),
        )

    @traitlets.validate("stage")
    def _possible(self, proposal: dict[str, Any]) -> str:
        if proposal["value"] == MOVED and not self.cut:
            raise traitlets.TraitError(NOT_MOVED)
        return str(proposal["value"])

    @traitlets.validate("chosen")
    def _known_choices(self, proposal: dict[str, Any]) -> dict[str, str]:
        try:
            choices = choices_of(proposal["value"], known_toggles(self.session))
        except OptionError as error:
            raise traitlets.TraitError(str(error)) from None
        return {each.toggle.name: text_of(each.value) for each in choices}

    @property
    def setting(self) -> PanelSetting:
        """Where the toggles stand."""
        plain = {name: getattr(self, name) for name in TOGGLES}
        choices = choices_of(self.chosen, known_toggles(self.session))
        return PanelSetting(**{**plain, "chosen": choices})

    @property
    def optimizations(self) -> Optimizations:
        """What Run measures; may be set."""
        return self.session.completed(self.setting.optimizations())

    @optimizations.setter
    def optimizations(self, wish: Optimizations) -> None:
        setting = setting_of(self.session.completed(wish))
        choices_of(setting.state()["chosen"], known_toggles(self.session))
        self.set_toggles(setting, [name for name in TOGGLES if name != "cut" or setting.cut])

    def take_values(self, values: Mapping[str, Any]) -> None:
        """Puts the toggles, and when blocks end, where a page has them, at once or not at all.

        Args:
          values: by name; others than these are passed over.

        Raises:
          OptionError: a value that its toggle has not.
        """
        names = [name for name in (*TOGGLES, "stop_when_clear") if name in values]
        try:
            with self.hold_trait_notifications():
                for name in names:
                    setattr(self, name, values[name])
        except traitlets.TraitError as error:
            raise OptionError(str(error)) from None

    def set_toggles(self, setting: PanelSetting, names: Iterable[str]) -> None:
        """Puts these toggles where a setting has them, at once."""
        state = setting.state()
        with self.hold_trait_notifications():
            for name in names:
                setattr(self, name, state[name])
