"""SnakeParallelEnv: one game of a SnakeEngine behind PettingZoo's parallel API."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from typing_extensions import override

from snake_pz.core.actions import action_count, action_space
from snake_pz.core.encodings import Encoding
from snake_pz.core.encodings import encoding as as_encoding
from snake_pz.core.engine import SnakeEngine
from snake_pz.core.observations import TTL_STEP
from snake_pz.core.state import CAUSES, SnakeState, body_cells
from snake_pz.reward_weights import Rewards, reward_weights
from snake_pz.rules import Rules, check_names

RENDER_MODES = ("human", "rgb_array", "ansi")

Observation = NDArray[Any] | dict[str, Any]


class SnakeParallelEnv(ParallelEnv[str, Any, Any]):
    """One game of snake for the agents `snake_0`, `snake_1`, ..., which all move at the same time. `snake_v0` has the rules.

    A snake that dies is terminated in that step, with its reward and its real last observation, and then leaves `agents`. The
    winner is terminated when the game ends. Snakes alive after `max_cycles` steps are truncated. Pickle and deepcopy keep a
    running game, its random stream included.

    `infos[agent]` has `cause` of death (one of `state.CAUSES`, None while alive), `killer` (an agent; the agent itself if it
    ran into its own body; None for nobody, or several equally), `length`, `health`, `rank` (1 is best, None until known) and
    `action_mask` (A,) int8. In the agent's last step it also has `placements` {agent: rank}, in which snakes that play on share
    first place.

    Args:
        rules: rules of the game, `Rules.classic()` by default. Fields of Rules may also be given by name: `width=19`.
        observation: `board`, `egocentric` or `single`, see `core.observations`; or an Encoding or the name of a registered one.
        actions: `absolute` (up, right, down, left) or `relative` (left, straight, right).
        rewards: RewardWeights, the name of a preset, a dict of weights, or a function, see `reward_weights`.
        max_cycles: steps until snakes that are alive are truncated, at least 1.
        mask_in_observation: whether observations are {"observation", "action_mask"}, PettingZoo's Dict form.
        render_mode: `human`, `rgb_array`, `ansi` or None.
        **rule_fields: fields of Rules.

    Attributes:
        rules: rules of the game.
        reward_weights: the RewardWeights that `rewards` came to, or the function.
        encoding: the Encoding that `observation` came to.
        action_set: `actions` as given.

    Raises:
        ValueError: an argument out of its range, or an unknown keyword.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  PettingZoo declares it as a plain class attribute
        "name": "snake_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": True,
        "render_fps": 10,
        "has_manual_policy": True,
    }

    def __init__(
        self,
        *,
        rules: Rules | None = None,
        observation: Encoding | str = "board",
        actions: str = "absolute",
        rewards: Rewards | str | dict[str, float] | None = None,
        max_cycles: int = 500,
        mask_in_observation: bool = False,
        render_mode: str | None = None,
        **rule_fields: Any,
    ) -> None:
        self.rules = game_rules(rules, rule_fields)
        self.reward_weights = reward_weights(rewards)
        if isinstance(max_cycles, bool) or not isinstance(max_cycles, int) or max_cycles < 1:
            raise ValueError(f"max_cycles must be an int >= 1, got {max_cycles!r}")
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"render_mode must be one of {', '.join(map(repr, RENDER_MODES))} or None, got {render_mode!r}")
        self.max_cycles = max_cycles
        self.observation, self.encoding = observation, as_encoding(observation)
        self.action_set = actions
        self.mask_in_observation = mask_in_observation
        self.render_mode = render_mode
        self.possible_agents = [f"snake_{i}" for i in range(self.rules.num_snakes)]
        self.agents: list[str] = []

        shown = self.encoding.space_for(self.rules)
        moves = action_count(actions)
        self._observation_spaces: dict[str, gymnasium.Space[Any]] = {}
        for agent in self.possible_agents:
            space: gymnasium.Space[Any] = gymnasium.spaces.Box(shown.low, shown.high, shown.shape, shown.dtype)
            if mask_in_observation:
                mask = gymnasium.spaces.Box(0, 1, (moves,), np.int8)
                space = gymnasium.spaces.Dict({"observation": space, "action_mask": mask})
            self._observation_spaces[agent] = space
        self._action_spaces = {agent: action_space(actions) for agent in self.possible_agents}
        planes = 2 * self.rules.num_snakes + 2
        self.state_space = gymnasium.spaces.Box(0, 255, (planes, self.rules.height, self.rules.width), np.uint8)

        self._engine = SnakeEngine(self.rules, 1)
        self._index = {agent: i for i, agent in enumerate(self.possible_agents)}
        self._moves = moves
        self._directions = np.zeros((1, self.rules.num_snakes), np.int8)
        self._views = self._engine.observe(observation)
        self._masks = self._engine.action_masks(actions)
        self._paid = np.zeros((1, self.rules.num_snakes), np.float32)
        self._window: Any = None

    @override
    def observation_space(self, agent: str) -> gymnasium.Space[Any]:
        """The agent's observation space, the same object on every call."""
        return self._observation_spaces[agent]

    @override
    def action_space(self, agent: str) -> gymnasium.Space[Any]:
        """The agent's action space, the same object on every call."""
        return self._action_spaces[agent]

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start a new game.

        Args:
            seed: an integer, 0 to 2**64 - 1; equal seeds give equal games. None: the next seed of this environment's own
                stream.
            options: ignored; there are none.

        Returns:
            Observations and infos by agent.

        Raises:
            ValueError: `seed` is not such an integer.
        """
        self._engine.reset(seeds=None if seed is None else [seed])
        self.agents = self.possible_agents[:]
        self._engine.observe(self.observation, self._views)
        self._engine.action_masks(self.action_set, self._masks)
        if self.render_mode == "human":
            self.render()
        return self._observations(), self._infos()

    @override
    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one turn.

        Args:
            actions: an action for each of `agents`; other keys are ignored.

        Returns:
            Observations, rewards, terminations, truncations and infos of the agents that were alive before this step; empty
            dicts if there were none.

        Raises:
            ValueError: an action is missing or not in the action space.
            RuntimeError: called before the first `reset`.
        """
        if not self.agents:
            if self._engine.state.entrants[0] == 0:
                raise RuntimeError("call reset() before step()")
            return {}, {}, {}, {}, {}
        self._read(actions)
        self._engine.turn(
            self._directions, self.observation, self.action_set, self.reward_weights, self._views, self._masks, self._paid
        )
        state = self._engine.state
        ended = bool(state.over[0])
        cut = not ended and int(state.turn[0]) >= self.max_cycles
        if cut:
            self._engine.rank_survivors()
        died = state.just_died[0].tolist()
        paid = self._paid[0].tolist()
        before, index = self.agents, self._index
        result = (
            self._observations(),
            {agent: paid[index[agent]] for agent in before},
            {agent: ended or died[index[agent]] for agent in before},
            {agent: cut and not died[index[agent]] for agent in before},
            self._infos(),
        )
        self.agents = [] if ended or cut else [agent for agent in before if not died[index[agent]]]
        if self.render_mode == "human":
            self.render()
        return result

    @override
    def state(self) -> NDArray[np.uint8]:
        """(2 N + 2, H, W) uint8, the state of the whole game for centralised training.

        N body planes as in `observations.BOARD_PLANES`; N head planes whose one cell is 55 + 2 * health in percent; food (255);
        hazards, 64 per listing, at most 192.
        """
        state, snakes = self._engine.state, self.rules.num_snakes
        planes = np.zeros((2 * snakes + 2, self.rules.num_cells), np.uint8)
        for i in np.flatnonzero(state.alive[0]):
            cells = body_cells(state, 0, int(i))
            for k in range(len(cells) - 1, -1, -1):
                planes[i, cells[k]] = min((len(cells) - k) * TTL_STEP, 255)
            planes[snakes + i, cells[0]] = 55 + 200 * int(state.health[0, i]) // self.rules.max_health
        planes[-2] = np.minimum(state.food[0], 1) * 255
        planes[-1] = np.minimum(state.hazard[0], 3) * 64
        return planes.reshape(self.state_space.shape or ())

    def get_state(self) -> SnakeState:
        """A copy of the running game, its random stream included, for `set_state`."""
        return self._engine.save()

    def set_state(self, state: SnakeState) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Continue a saved game of the same rules.

        Returns:
            Observations and infos of the agents that are alive in it, as from `reset`.

        Raises:
            ValueError: no SnakeState, or one that no game with these rules can be in.
        """
        self._engine.load(state)
        self.sync()
        self._engine.observe(self.observation, self._views)
        self._engine.action_masks(self.action_set, self._masks)
        return self._observations(), self._infos()

    @override
    def render(self) -> NDArray[np.uint8] | str | None:
        """Draw the game as `render_mode` says.

        Returns:
            An (h, w, 3) uint8 picture for `rgb_array`, text for `ansi`, None for `human`, which draws in a window.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render_mode: pass one to the environment, rgb_array for example")
            return None
        from snake_pz.drawing import render

        state, names = self._engine.state, self.possible_agents
        if self.render_mode == "ansi":
            return render.ansi(state, self.rules, names=names)
        if self.render_mode == "rgb_array":
            return render.rgb_array(state, self.rules, names=names)
        if self._window is None:
            self._window = render.Window(fps=self.metadata["render_fps"])
        self._window.show(state, self.rules, names=names)
        return None

    @override
    def close(self) -> None:
        """Close the window if there is one. May be called again."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: everything but the window."""
        return {**self.__dict__, "_window": None}

    def _read(self, actions: dict[str, Any]) -> None:
        """Check the actions and write them into `_directions` as absolute directions."""
        headings = self._engine.state.heading[0].tolist() if self.action_set == "relative" else None
        for agent in self.agents:
            if agent not in actions:
                raise ValueError(f"step needs an action for each of {self.agents}, got none for {agent!r}")
            action = actions[agent]
            try:
                number = int(action)
            except (TypeError, ValueError, OverflowError):  # infinite
                number = -1
            if not 0 <= number < self._moves or number != action:
                raise ValueError(f"action of {agent!r} must be an integer from 0 to {self._moves - 1}, got {action!r}")
            i = self._index[agent]
            self._directions[0, i] = number if headings is None else (max(headings[i], 0) + number - 1) % 4

    def _observations(self) -> dict[str, Observation]:
        views = self._views[0].copy()
        if not self.mask_in_observation:
            return {agent: views[self._index[agent]] for agent in self.agents}
        masks = self._masks[0].copy()
        return {
            agent: {"observation": views[self._index[agent]], "action_mask": masks[self._index[agent]]} for agent in self.agents
        }

    def _infos(self) -> dict[str, dict[str, Any]]:
        masks = self._masks[0].copy()
        snakes = [self._index[agent] for agent in self.agents]
        infos = snake_infos(self._engine.state, 0, snakes, self.possible_agents)
        for i, info in zip(snakes, infos, strict=True):
            info["action_mask"] = masks[i]
        return dict(zip(self.agents, infos, strict=True))

    def bind(self, engine: SnakeEngine) -> SnakeParallelEnv:
        """A copy of this environment around another engine with one game, such as `SnakeEngine.game` of a batch."""
        bound = copy.copy(self)
        bound._engine, bound._window = engine, None
        bound._views, bound._masks = self._views.copy(), self._masks.copy()
        bound.sync()
        return bound

    def sync(self) -> None:
        """Update `agents` after the engine was stepped from outside."""
        alive = self._engine.state.alive[0]
        over = self._engine.state.over[0] or self._engine.state.turn[0] >= self.max_cycles
        self.agents = [] if over else [agent for agent, lives in zip(self.possible_agents, alive, strict=True) if lives]


def snake_infos(state: SnakeState, game: int, snakes: list[int], names: list[str]) -> list[dict[str, Any]]:
    """The infos of these snakes without `action_mask`, as `SnakeParallelEnv` documents them.

    Args:
        state: E games.
        game: index of the game.
        snakes: indices of the snakes.
        names: agents' names by snake.
    """
    cause, killer, rank = state.cause[game].tolist(), state.killer[game].tolist(), state.rank[game].tolist()
    length, health = state.length[game].tolist(), state.health[game].tolist()
    infos: list[dict[str, Any]] = [
        {
            "cause": CAUSES[cause[i]] or None,
            "killer": names[killer[i]] if killer[i] >= 0 else None,
            "length": length[i],
            "health": health[i],
            "rank": rank[i] or None,
        }
        for i in snakes
    ]
    for info in infos:
        if info["rank"]:
            info["placements"] = {name: its_rank or 1 for name, its_rank in zip(names, rank, strict=True)}
    return infos


def game_rules(rules: Rules | None, fields: dict[str, Any]) -> Rules:
    """The rules given by an environment's keyword `rules=` and by fields of Rules.

    Raises:
        ValueError: a keyword that is neither a field of Rules nor of the environment, or `rules` that are no Rules.
    """
    if rules is not None and not isinstance(rules, Rules):
        raise ValueError(f"rules must be Rules, Rules.classic() for example, got {type(rules).__name__}")
    check_names("keyword", fields, KEYWORDS)
    return Rules.from_fields(fields, rules)


_PARAMETERS = inspect.signature(SnakeParallelEnv.__init__).parameters.values()
KEYWORDS = [p.name for p in _PARAMETERS if p.kind is p.KEYWORD_ONLY] + list(Rules.__dataclass_fields__)
"""Keywords of the environment's constructor, fields of Rules included."""
