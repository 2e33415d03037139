"""A log of JSON lines: `{"time": ..., "event": "move", "game": ..., "move": "up", ...}`."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from typing_extensions import override

_log = logging.getLogger("snake_pz.serving")
_LONGEST = 200


def say(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event.

    Args:
        event: its name.
        level: how grave it is.
        fields: what there is to say of it; texts may be a stranger's and are cut short.
    """
    if _log.isEnabledFor(level):
        short = {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in fields.items()}
        _log.log(level, event, extra={"fields": short})


class JsonLines(logging.Formatter):
    """One JSON object a line; those of other programs have their message as `event`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_config(level: str) -> dict[str, Any]:
    """The settings of `logging` for a process that serves: JSON lines on standard output, of other programs warnings only."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonLines}},
        "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stdout"}},
        "root": {"handlers": ["out"], "level": "WARNING"},
        "loggers": {"snake_pz.serving": {"level": level.upper()}},
    }
