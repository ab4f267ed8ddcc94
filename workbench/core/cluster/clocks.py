"""Clocks of two tasks, aligned from what they sent each other; plain numpy.

A tensor is received after it was sent. Sent by the other task, at `s` of its clock, and received at
`r` of the own: the other clock is ahead by `s - r` at least. Sent by the own and received by the
other: ahead by `r - s` at most. All pairs together leave an interval; no assumption about how long
messages travel is needed for it to hold the truth.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.errors import TraceError
from workbench.number_words import duration


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """How far another task's clock is ahead of the own.

    Attributes:
      offset_ns: what the other clock shows more at one moment; the middle of what is possible.
      error_ns: the truth is at most this much more or less.
      pairs: messages that it comes from.
    """

    offset_ns: int
    error_ns: int
    pairs: int


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Messages:
    """Messages of one direction, int64 ns each: sent by the sender's clock, received by the
    receiver's. A sending time may be early, a receiving time late."""

    sent_ns: np.ndarray
    received_ns: np.ndarray


def clock_offset(from_other: Messages, to_other: Messages, *, task: str) -> ClockOffset:
    """The offset of another task's clock.

    Args:
      from_other: what it sent.
      to_other: what it received.
      task: its name, for messages.

    Raises:
      TraceError: it only sends or only receives, or its clock moved meanwhile.
    """
    for messages, does in ((from_other, "sent nothing"), (to_other, "received nothing")):
        if not len(messages.sent_ns):
            raise TraceError(
                f"the clock of {task} cannot be aligned: in the traced steps it {does}; trace "
                "steps in which tensors travel both ways, as they do in training"
            )
    low = int((from_other.sent_ns - from_other.received_ns).max())
    high = int((to_other.received_ns - to_other.sent_ns).min())
    if low > high:
        raise TraceError(
            f"the clock of {task} moved by {duration(low - high)} or more while it was traced: "
            "some tensors were received before they were sent, whatever its offset; trace fewer "
            "steps, or when no time service corrects the clocks"
        )
    return ClockOffset(
        offset_ns=(low + high) // 2,
        # Half up, so that both ends are within it.
        error_ns=(high - low + 1) // 2,
        pairs=len(from_other.sent_ns) + len(to_other.sent_ns),
    )


def require_order(gaps_ns: np.ndarray, error_ns: int, *, task: str) -> None:
    """Refuses an offset that cannot tell which of two events came first.

    Args:
      gaps_ns: times between events of two tasks that are compared, on the aligned clock.
      error_ns: of the offset between them.
      task: whose clock it is, for the message.

    Raises:
      TraceError: the error exceeds the shortest gap.
    """
    # Halving an interval of an odd length rounds by a nanosecond.
    if len(gaps_ns) and error_ns - 1 > (shortest := int(gaps_ns.min())):
        raise TraceError(
            f"the clock of {task} is known to ±{duration(error_ns)}, and the shortest time between "
            f"a Send and its Recv is {duration(shortest)}: their order would be a guess; trace "
            "more steps, so that more messages narrow it"
        )
