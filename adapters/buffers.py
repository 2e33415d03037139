"""The buffers under their former names and with their former arguments, for checkpoints of version 0.1.0.

New code imports them from `adapters`.
"""

from __future__ import annotations

from typing import Any

from adapters.vec_env import buffers
from adapters.vec_env.buffers import ActiveMask

Rows = ActiveMask


class SavedArguments:
    """Accepts `rows=`, the former name of `active=`."""

    def __init__(self, *args: Any, rows: ActiveMask, **kwargs: Any) -> None:
        super().__init__(*args, active=rows, **kwargs)  # type: ignore[call-arg]


class ActiveRolloutBuffer(SavedArguments, buffers.ActiveRolloutBuffer):
    """`adapters.ActiveRolloutBuffer`."""


class ActiveDictRolloutBuffer(SavedArguments, buffers.ActiveDictRolloutBuffer):
    """`adapters.ActiveDictRolloutBuffer`."""


class ActiveReplayBuffer(SavedArguments, buffers.ActiveReplayBuffer):
    """`adapters.ActiveReplayBuffer`."""


class ActiveDictReplayBuffer(SavedArguments, buffers.ActiveDictReplayBuffer):
    """`adapters.ActiveDictReplayBuffer`."""
