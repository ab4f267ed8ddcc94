"""The text of a Chrome trace → its events and its notes, of a file that is cut or damaged too.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
The end of a list of events is optional there: programs that die do not write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from workbench.core.importing.faults import Faults
from workbench.core.importing.json_text import BadJsonError, CutOffError, JsonText, TooLongError
from workbench.errors import TraceError

# Where torch.profiler writes the moment from which its times count; what `Trace.to_chrome` adds.
BASE, OWN = "baseTimeNanoseconds", "otherData"
_EVENTS = "traceEvents"
CUT = "end of a file that is cut off"
# Where more is damaged than this, the file is something else.
_MOST_BAD = 1000
_FORM = '{"traceEvents": […]} or a bare list of events'


class ChromeText:
    """A document that is read once, from its begin to its end.

    Attributes:
      notes: what stands beside the events, as far as it is known here, once they were read.
      faults: values in the place of events that are no JSON.
      cut: whether the text ends before the document does.
    """

    def __init__(self, read: Callable[[int], bytes], faults: Faults) -> None:
        """Begins to read.

        Args:
          read: the next bytes of the file, about as many as it is asked for.
          faults: takes what is no JSON.
        """
        self._text = JsonText(read)
        self.notes: dict[str, Any] = {}
        self.faults, self.cut = faults, False
        self._bad = 0

    def events(self) -> Iterator[Any]:
        """The events, of any type, in the order of the file.

        Raises:
          TraceError: the document is no JSON, or has no list of events.
        """
        self._text.skip("\ufeff")
        if self._text.peek() == "[":
            yield from self._list()
            return
        names = []
        try:
            for name in self._names():
                names.append(name)
                if name == _EVENTS:
                    yield from self._listed()
                elif name in (BASE, OWN):
                    self.notes[name] = self._text.value()
                else:
                    self._text.skip_value()
        except CutOffError:
            self.cut = True
        except BadJsonError as bad:
            self.faults.add(f"{bad}; expected Chrome trace JSON: {_FORM}")
        if _EVENTS not in names and not self.faults.count:
            raise TraceError(self._without_events(names))

    def _names(self) -> Iterator[str]:
        """The names of an object's values, each behind its colon.

        Raises:
          BadJsonError, CutOffError: there is none.
        """
        text = self._text
        if not text.skip("{") or text.skip("}"):
            return
        while True:
            if not text.peek():
                raise CutOffError
            name = text.value()
            if type(name) is not str or not text.skip(":"):
                if not text.peek():
                    raise CutOffError
                raise BadJsonError(f"it has {_shown(name)} where a name and a colon were expected")
            yield name
            if text.skip("}"):
                return
            if not text.skip(",") and text.peek() != '"':
                if not text.peek():
                    raise CutOffError
                raise BadJsonError(f"it has {text.peek()!r} where a comma was expected")

    def _without_events(self, names: list[str]) -> str:
        if self.cut:
            return "it is cut off before its first event; write or copy it again"
        held = ", ".join(f"`{name[:30]}`" for name in names[:5]) or "nothing"
        return f"it has no `{_EVENTS}`, but {held}; expected Chrome trace JSON: {_FORM}"

    def _listed(self) -> Iterator[Any]:
        if self._text.peek() != "[":
            found = self._text.value()
            raise TraceError(f"its events are {_shown(found)}; expected a list: {_FORM}")
        yield from self._list()

    def _list(self) -> Iterator[Any]:
        """The values of a list, which may lack its end or commas."""
        text = self._text
        text.skip("[")
        while not text.skip("]"):
            if not text.peek():
                return
            if text.skip(","):
                continue
            if many := text.objects():
                yield from many
            else:
                yield from self._one()

    def _one(self) -> Iterator[Any]:
        """The next value, or the next event behind one that is no JSON."""
        try:
            try:
                yield self._text.value()
            except TooLongError as long:
                self.faults.add(f"{long}, so that one is left out")
                self._text.skip_value()
            return
        except BadJsonError as bad:
            fault = f"{bad}; write the file again"
        except CutOffError:
            # What looks cut off may be one bad text, behind which more events follow.
            fault = ""
        if fault:
            self.faults.add(fault)
        following = self._following()
        if following and not fault:
            self.faults.add("an event has a text without its end; write the file again")
        if following:
            yield following
        elif not fault:
            self.cut = True

    def _following(self) -> dict[str, Any] | None:
        """The next event behind a value that is no JSON; None if no more is found.

        Raises:
          TraceError: very much is no JSON.
        """
        while self._text.to_next_object():
            self._bad += 1
            if self._bad > _MOST_BAD:
                self.faults.raise_first()
            try:
                found = self._text.value()
            except (BadJsonError, CutOffError):
                continue
            if type(found) is dict and type(found.get("ph")) is str:
                return found
        return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
