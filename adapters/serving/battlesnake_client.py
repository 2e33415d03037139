"""The other side of Battlesnake's API: what a game's engine asks of a snake's server."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit


class BattlesnakeClient:
    """One connection to a server, kept open. Not thread-safe.

    Args:
        url: of the server, `http://127.0.0.1:8000`.
        timeout: seconds after which an answer no longer counts.
    """

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"url must be http://HOST:PORT, got {url!r}")
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout)

    def get(self, path: str = "/") -> dict[str, Any]:
        """What the server says at a path, such as its looks at `/`.

        Raises:
            OSError: no answer, or not one of status 200.
        """
        return self._ask("GET", path, None)

    def post(self, path: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request: `/start`, `/move`, `/end`.

        Raises:
            OSError: no answer, or not one of status 200.
        """
        return self._ask("POST", path, json.dumps(request))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        try:
            self._connection.request(method, path, body, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            text = response.read().decode()
        except http.client.HTTPException as error:
            self.close()
            raise ConnectionError(f"{method} {path} got no answer: {type(error).__name__}") from error
        except OSError:
            self.close()
            raise
        if response.status != 200:
            raise OSError(f"{method} {path} got status {response.status}: {text}")
        found: dict[str, Any] = json.loads(text)
        return found
