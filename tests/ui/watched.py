"""A page, and what it complained of or asked the network for."""

from __future__ import annotations

from typing import Any


class Watched:
    """A page, and everything it complained of or asked the network for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def outside(self) -> list[str]:
        """Requests that left the machine's own files."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
