"""A page, and what it complained of or asked the network for."""

from __future__ import annotations

import urllib.parse
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
        page.on("websocket", lambda socket: self.requests.append(socket.url))

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def outside(self, *servers: str) -> list[str]:
        """Requests that left the machine's own files, and these servers ("127.0.0.1:8888")."""
        return [url for url in self.requests if not _is_inside(url, servers)]


def _is_inside(url: str, servers: tuple[str, ...]) -> bool:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme in ("file", "data", "blob", "about") or parts.netloc in servers
