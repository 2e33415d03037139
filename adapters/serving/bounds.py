"""Bounds on what strangers may ask of a server: how often, how much, and how slowly."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

MOST_BYTES = 262_144
"""A request for a 25x25 board full of snakes has less than 100 kB."""
MOST_SECONDS = 5.0
"""How long the body of a request may take to arrive."""
_MOST_HOSTS = 10_000


class RateBound:
    """Requests per second for each host; it may save up one second's worth.

    Args:
        rate: requests per second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._hosts: OrderedDict[str, tuple[float, float]] = OrderedDict()  # requests left, and when

    def allows(self, host: str) -> bool:
        """Whether one more request of this host is within its rate; then it counts."""
        most, now = max(self._rate, 1.0), time.monotonic()
        left, then = self._hosts.pop(host, (most, now))
        left = min(left + (now - then) * self._rate, most)
        allowed = left >= 1
        self._hosts[host] = (left - allowed, now)
        if len(self._hosts) > _MOST_HOSTS:
            self._hosts.popitem(last=False)
        return allowed


async def read_json(request: Request) -> dict[str, Any]:
    """The object in the body of a request.

    Raises:
        HTTPException: 413, it is too large; 408, it takes too long to arrive; 400, it is no JSON object.
    """
    parts, size = [], 0
    try:
        async with asyncio.timeout(MOST_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    raise HTTPException(413, f"the body must have at most {MOST_BYTES:,} bytes")
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, f"the body must arrive within {MOST_SECONDS:g} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body did not arrive whole") from None
    try:
        found = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body must be JSON") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the body must be a JSON object")
    return found
