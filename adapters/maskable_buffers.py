"""MaskablePPO's buffers under their former names, for checkpoints of version 0.1.0, as in `adapters.buffers`."""

from __future__ import annotations

from adapters.buffers import SavedArguments
from adapters.vec_env import maskable_buffers


class ActiveMaskableRolloutBuffer(SavedArguments, maskable_buffers.ActiveMaskableRolloutBuffer):  # type: ignore[misc]  # as there
    """`adapters.ActiveMaskableRolloutBuffer`."""


class ActiveMaskableDictRolloutBuffer(SavedArguments, maskable_buffers.ActiveMaskableDictRolloutBuffer):  # type: ignore[misc]  # as there
    """`adapters.ActiveMaskableDictRolloutBuffer`."""
