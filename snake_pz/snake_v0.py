"""Multi-player snake.

Import: `from snake_pz import snake_v0`. Parallel API: `snake_v0.parallel_env()`. AEC API: `snake_v0.env()`. Agents: `snake_0`
to `snake_3` (4 by default). Manual control: yes, `snake_v0.ManualPolicy`. Also in PettingZoo's registry:
`pettingzoo.make("parallel", "snake_v0")` after `import snake_pz`.

All snakes move one cell at the same time; outcomes are judged after all have moved. A snake dies if it leaves the board, runs
into a body (its own included), meets the head of a snake that is as long or longer, or has not eaten for 100 turns. Eating
makes it one segment longer. The last snake alive wins. `snake_pz.Rules` has all the rules that can be changed.

Observations (uint8, channels first), chosen by `observation=`:

| name | shape | what |
|---|---|---|
| `board` | (7, H, W), sides padded with wall to 7 or more | planes of the board |
| `egocentric` | (6, S, S), S = 2 max(W, H) - 1 | the same, turned: the own head in the centre, heading up |
| `single` | (1, H, W) | grey levels |

The planes are own body, own head (`board` only), other bodies, other heads, food, walls and hazards, clock. Body planes encode
how long a cell stays occupied; the plane of other heads encodes which snakes are as long or longer. Details:
`snake_pz.core.observations`, or an encoding of your own, see docs/own-encoding.md.

Actions, chosen by `actions=`: `absolute` Discrete(4) 0 up, 1 right, 2 down, 3 left (opposite to the last move: straight on);
`relative` Discrete(3) 0 left, 1 straight, 2 right. `infos[agent]["action_mask"]` marks the moves that do not certainly kill.

Default rewards: eating 0.5, dying -1, winning 1 (divided among those who tie). Others: `snake_pz.RewardWeights`.

Arguments: those of `snake_pz.env.SnakeParallelEnv`, which include every field of `snake_pz.Rules`.

Version history: v0, the first.
"""

from __future__ import annotations

from typing import Any

from pettingzoo import AECEnv
from pettingzoo.utils import wrappers
from pettingzoo.utils.conversions import parallel_to_aec

from snake_pz.env import SnakeParallelEnv
from snake_pz.play.manual_policy import ManualPolicy

__all__ = ["ManualPolicy", "env", "parallel_env", "raw_env"]

parallel_env = SnakeParallelEnv


def env(**kwargs: Any) -> AECEnv[str, Any, Any]:
    """The game in PettingZoo's turn-taking AEC API with PettingZoo's usual checks. Arguments as for `parallel_env`."""
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(raw_env(**kwargs)))


def raw_env(**kwargs: Any) -> AECEnv[str, Any, Any]:
    """The game in the AEC API without those checks. Arguments as for `parallel_env`."""
    return parallel_to_aec(parallel_env(**kwargs))
