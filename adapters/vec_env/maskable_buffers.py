"""Rollout buffers without padding for MaskablePPO, in their own module because sb3-contrib is an optional dependency."""

from __future__ import annotations

from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer

from adapters.vec_env.buffers import ActiveRollout


class ActiveMaskableRolloutBuffer(ActiveRollout, MaskableRolloutBuffer):  # type: ignore[misc]  # whose `add` takes any arguments
    """sb3-contrib's `MaskableRolloutBuffer` without padding."""


class ActiveMaskableDictRolloutBuffer(ActiveRollout, MaskableDictRolloutBuffer):  # type: ignore[misc]  # whose `add` takes any arguments
    """sb3-contrib's `MaskableDictRolloutBuffer` without padding."""
