"""Snake for several players.

Import: `from snake_pz import snake_v0`. Parallel API: `snake_v0.parallel_env()`. AEC API: `snake_v0.env()`. Agents: `snake_0`
to `snake_3` (4 by default). Manual control: yes, `snake_v0.ManualPolicy`. Also in PettingZoo's registry:
`pettingzoo.make("parallel", "snake_v0")` after `import snake_pz`.

All snakes move one cell on at once, then all outcomes are judged on the moved board. A snake dies that leaves the board, runs
into a body (its own too), meets a head of a snake as long or longer, or has not eaten for 100 turns. Eating makes it a segment
longer. The last one alive wins. All of this can be changed, see `snake_pz.Rules`.

Observations (uint8, channels first), chosen by `observation=`:

| name | shape | what |
|---|---|---|
| `board` | (7, H, W), sides padded with wall to 7 or more | planes of the board as it lies |
| `egocentric` | (6, S, S), S = 2 max(W, H) - 1 | the same turned: the own head in the centre, heading up |
| `single` | (1, H, W) | grey levels |

The planes are own body, own head (`board` only), other bodies, other heads, food, walls and hazards, health. Body planes carry
for how long the cell stays taken, the plane of other heads who is longer; see `snake_pz.core.observations`.

Actions, chosen by `actions=`: `absolute` Discrete(4) 0 up, 1 right, 2 down, 3 left (opposite to the last move: straight on);
`relative` Discrete(3) 0 left, 1 straight, 2 right. `infos[agent]["action_mask"]` says which moves do not kill at once.

Rewards by default: eating 0.5, dying -1, winning 1 (shared by those who tie); see `snake_pz.RewardWeights`.

Arguments: those of `snake_pz.env.SnakeParallelEnv`, any field of `snake_pz.Rules` among them.

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
    """The game in PettingZoo's turn-taking AEC API, with its usual checks; arguments as `parallel_env`."""
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(raw_env(**kwargs)))


def raw_env(**kwargs: Any) -> AECEnv[str, Any, Any]:
    """The AEC form without those checks."""
    return parallel_to_aec(parallel_env(**kwargs))
