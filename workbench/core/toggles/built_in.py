"""Workbench's own toggles as values: what the command line, labels and the panel say of each.

What a position does is a field of `Optimizations`. Here are its names, which all consumers read.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Position:
    """One position of a toggle.

    Attributes:
      value: as the panel's trait has it.
      title: on its button.
      label: in tables; "" where the toggle is off.
      name: in the name of a setting of the panel; "" is `label`.
      named: on the command line; "" where that does not name it.
      help: what it does, a short sentence.
    """

    value: str
    title: str
    help: str
    label: str = ""
    name: str = ""
    named: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuiltInToggle:
    """One of Workbench's toggles.

    Attributes:
      key: of the panel's trait.
      title, help: on screen: a name, and a sentence or two.
      positions: the first is off; none of a number.
      label: of a number, in tables: what is counted.
      short: of a number, in the name of a setting of the panel.
    """

    key: str
    title: str
    help: str
    positions: tuple[Position, ...] = ()
    label: str = ""
    short: str = ""

    @property
    def values(self) -> tuple[str, ...]:
        """The values of its positions."""
        return tuple(each.value for each in self.positions)

    @property
    def named(self) -> dict[str, str]:
        """The values of its positions, by their names on the command line."""
        return {each.named: each.value for each in self.positions if each.named}

    def at(self, value: str) -> Position:
        """The position of a value."""
        return next(each for each in self.positions if each.value == value)

    def name(self, value: str) -> str:
        """A position in the name of a setting; "" where the toggle is off."""
        position = self.at(value)
        return position.name or position.label


STAGE = BuiltInToggle(
    key="stage",
    title="Stage",
    help="Runs the front of the next steps while this one computes.",
    positions=(
        Position(value="off", title="Off", help="A step waits for its input."),
        Position(
            value="own",
            title="Mine",
            help="The stage that your program makes.",
            label="stage",
            name="my stage",
            named="stage",
        ),
        Position(
            value="smart",
            title="SmartStage",
            help="Workbench finds what may run ahead.",
            label="smart stage",
            name="SmartStage",
            named="smart_stage",
        ),
        Position(
            value="moved",
            title="Moved",
            help="The boundary where you moved it.",
            label="moved boundary",
        ),
    ),
)
FUSION = BuiltInToggle(
    key="fusion",
    title="Fused lookups",
    help="Few ops do an embedding lookup instead of many. Auto fuses stock lookups, batch "
    "normalizations and interactions of vectors of the finished graph, and multiplies the matrices "
    "of dense layers' gradients by a faster kernel.",
    positions=(
        Position(value="off", title="Off", help="TensorFlow's own lookups."),
        Position(
            value="v1",
            title="V1",
            help="A lookup in a few ops.",
            label="fused V1",
            named="fused_v1",
        ),
        Position(
            value="v2",
            title="V2",
            help="Each id is looked up once.",
            label="fused V2",
            named="fused_v2",
        ),
        Position(
            value="grouped",
            title="Grouped",
            help="All features in one op.",
            label="fused grouped",
            named="grouped",
        ),
        Position(
            value="auto",
            title="Auto",
            help="Finds them in the graph.",
            label="auto fused",
            named="auto_fused",
        ),
    ),
)
EXECUTOR = BuiltInToggle(
    key="executor",
    title="Executor",
    help="Decides which ready op runs next, and where. Normal is TensorFlow's own.",
    positions=(
        Position(value="normal", title="Normal", help="TensorFlow's own.", label="normal executor"),
        Position(
            value="inline",
            title="Inline",
            help="Small ops stay on one thread.",
            label="inline executor",
            named="inline_executor",
        ),
        Position(
            value="cost_model",
            title="Cost model",
            help="The longest path goes first.",
            label="cost model executor",
            named="cost_model_executor",
        ),
    ),
)
INTER_OP_THREADS = BuiltInToggle(
    key="inter_op_threads",
    title="Inter-op threads",
    help="Threads that run ops. More than cores share them.",
    label="inter-op thread",
    short="inter-op",
)
INTRA_OP_THREADS = BuiltInToggle(
    key="intra_op_threads",
    title="Intra-op threads",
    help="Threads inside one op, such as a matmul.",
    label="intra-op thread",
    short="intra-op",
)
BATCH_SIZE = BuiltInToggle(
    key="batch_size",
    title="Batch size",
    help="Rows of a step. Ratios then are of samples a second.",
    label="batch",
    short="batch",
)
# Those with positions, in the order in which names and columns have them.
WITH_POSITIONS = (STAGE, FUSION, EXECUTOR)


def on_screen(named: str) -> tuple[str, str]:
    """The titles of a toggle and its position, of the position's name on the command line.

    Raises:
      KeyError: no position is named so.
    """
    found = {
        position.named: (toggle.title, position.title)
        for toggle in WITH_POSITIONS
        for position in toggle.positions
        if position.named
    }
    return found[named]
