"""Imitation: supervised training of a PPO policy with the actions of a bot, before reinforcement learning.

    model = PPO("CnnPolicy", make_sb3_env("survivor", ...), ...)
    imitate(model, make_bot("territorial", rules), steps=450_000)
    model.learn(...)

The learner plays, and the bot gives its action for every step (DAgger, Ross et al. 2011), so the policy learns in the positions
that it reaches itself, not only in those of the bot. Meanwhile the value head learns the returns of these games; without it
PPO's first advantages would be noise and undo what was learned.

    imitate(model, replays=[Replay.load("game.jsonl"), ...], players=["somebody"])

learns from recorded games instead, of people or of programs that are not here to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.utils import obs_as_tensor
from stable_baselines3.common.vec_env import VecEnv

from adapters.opponents.protocol import Opponent
from adapters.training.replay_lessons import Lessons, lessons_of
from adapters.vec_env.buffers import ActiveBuffer, ActiveRolloutBuffer, twin_of
from adapters.vec_env.curry import CurryVecEnv
from adapters.vec_env.sb3_internals import reset_when_learning
from snake_pz.players import SeatedPlayer
from snake_pz.replay import Replay


class Imitation(NamedTuple):
    """How well the policy imitates the teacher, over the last rollout."""

    steps: int  # steps so far of all environments of the VecEnv, padding included, as SB3 counts timesteps; recorded moves
    agreement: float  # share of steps in which its likeliest action was the teacher's
    cross_entropy: float  # in nats; above 0 even for a perfect imitation if the teacher acts at random


def imitate(
    model: PPO,
    teacher: Opponent | None = None,
    steps: int | None = None,
    *,
    replays: Sequence[Replay] | None = None,
    players: Collection[str] | None = None,
    epochs: int = 2,
    batch_size: int = 512,
    learning_rate: float = 1e-3,
    value_weight: float = 0.25,
    each: Callable[[Imitation], bool | None] | None = None,
) -> Imitation:
    """Train the policy of a model to act as the teacher, or as the players of recorded games.

    Rollouts have the length of the model's own and go through its rollout buffer, with the teacher's actions in place of those
    that were played. The games are those of the model's VecEnv, against its opponents. They restart before, and again when the
    model learns next. The model's optimiser is not used.

    With several learners in a game only their real steps are used.

    From `replays` nothing is played: each move in them is a sample, and the values learn the returns by the rewards of the
    model's environment. A game that is cut short counts as if nothing came after it.

    Args:
        model: PPO with an `ActorCriticPolicy` (all of SB3's policies for PPO are) on a VecEnv of `make_sb3_env` with discrete
            actions. With several learners it needs an `Active` buffer, which is bound to the VecEnv's mask.
        teacher: an opponent that can play these games. Its observations and action set may differ from the learner's. Its slots
            are the learner's seats; it is reset when games restart and given masks if it uses them.
        steps: least number of steps to play, over all environments of the VecEnv.
        replays: recorded games of the snake, in place of `teacher` and `steps`. Their boards need the model's encoding.
        players: names of those in the replays whose moves are learned; None: all.
        epochs: how often each step is used.
        batch_size: samples per gradient step.
        learning_rate: at the start; it falls linearly to a third.
        value_weight: weight of the squared error of the values, relative to the cross-entropy.
        each: called after each rollout, or epoch over replays; returning False ends the imitation.

    Raises:
        ValueError: another algorithm, kind of policy or VecEnv, actions that are not discrete, a buffer that would store
            padding, a teacher that cannot play these games, or a number out of range. Raised before anything is played.
    """
    env, games = _environment(model)
    _check_numbers(steps=1 if steps is None else steps, epochs=epochs, batch_size=batch_size)
    if not (learning_rate > 0 and value_weight >= 0):
        raise ValueError(
            f"learning_rate must be > 0 and value_weight >= 0, got learning_rate={learning_rate}, value_weight={value_weight}"
        )
    if replays is not None:
        if teacher is not None or steps is not None:
            raise ValueError("replays are in place of teacher and steps: give either them or these")
        recorded = _recorded(model, games, replays, players)
        return _imitate_recorded(model, recorded, epochs, batch_size, learning_rate, value_weight, each)
    if teacher is None or steps is None or players is not None:
        raise ValueError("imitation needs a teacher and steps, or replays and, if not all, the players in them to learn from")
    policy, buffer, lessons = model.policy, model.rollout_buffer, _Lessons(games, teacher)
    optimizer = torch.optim.Adam(policy.parameters(), lr=learning_rate, eps=1e-5)
    reset_when_learning(model)  # because the games advance without it
    observations: Any = env.reset()
    lessons.begin()
    if isinstance(buffer, ActiveBuffer):
        buffer.bind(games.active)
    starts = np.ones(env.num_envs, np.bool_)
    played = 0
    result = Imitation(0, 0.0, 0.0)
    while played < steps:
        policy.set_training_mode(False)
        buffer.reset()
        for _ in range(model.n_steps):
            with torch.no_grad():
                actions, values, log_probs = policy(obs_as_tensor(observations, model.device))
            advised = lessons.advise(actions.cpu().numpy())
            after, rewards, dones, infos = env.step(actions.cpu().numpy())
            lessons.step(dones)
            _add_what_was_cut_off(model, rewards, dones, infos)
            buffer.add(observations, advised.reshape(-1, 1), rewards, starts, values, log_probs)
            observations, starts = after, dones
        with torch.no_grad():
            values = policy.predict_values(obs_as_tensor(observations, model.device))
        buffer.compute_returns_and_advantage(values, dones)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (1 - 2 / 3 * min(played / steps, 1.0))
        batches = (batch for _ in range(epochs) for batch in buffer.get(batch_size))
        agreement, cross_entropy = _fit(model, optimizer, batches, value_weight)
        played += model.n_steps * env.num_envs
        result = Imitation(played, agreement, cross_entropy)
        if each is not None and each(result) is False:
            break
    buffer.reset()
    return result


class _Lessons:
    """The teacher's actions for the learner's seats, in the learner's action space.

    Args:
        games: the learner's VecEnv.
        teacher: the teacher. Its slots are `game * seats + seat`, as in a `Lineup`.

    Raises:
        ValueError: the teacher cannot play these games.
    """

    def __init__(self, games: CurryVecEnv, teacher: Opponent) -> None:
        game_batch = games.game_batch
        self._teacher = SeatedPlayer(teacher, game_batch)
        self._own = game_batch.view(game_batch.observation_space, game_batch.action_space)
        self._games, self._seats = np.divmod(np.arange(games.num_envs), game_batch.num_learners)  # of each environment
        self._slots = self._games * game_batch.seats + self._seats
        assert isinstance(game_batch.action_space, spaces.Discrete)
        self._choices = range(int(game_batch.action_space.n))  # the learner's actions
        self._in_game = np.ones((game_batch.num_games, game_batch.num_learners), np.bool_)  # the others are padding

    def begin(self) -> None:
        """Reset the teacher, because all games have restarted."""
        self._in_game[:] = True
        self._teacher.player.reset(self._slots)

    def advise(self, played: NDArray[Any]) -> NDArray[Any]:
        """The teacher's actions for the current step.

        Args:
            played: (num_envs,) the learner's actions.

        Returns:
            (num_envs,) the teacher's actions in the learner's action space. Where there is none (a relative action cannot
            reverse), and for padding, the learner's own action.
        """
        env_ids = np.flatnonzero(self._in_game)
        games, seats = self._games[env_ids], self._seats[env_ids]
        chosen = self._teacher.act(self._slots[env_ids])
        equal = np.stack([self._own.decode(np.full(len(env_ids), one), games, seats) for one in self._choices]) == chosen
        advised = played.copy()
        advised[env_ids] = np.where(equal.any(axis=0), equal.argmax(axis=0), played[env_ids])
        return advised

    def step(self, dones: NDArray[np.bool_]) -> None:
        """Follow a step of the games with these `dones` (num_envs,). A game restarts with its last learner's end."""
        self._in_game &= ~dones.reshape(self._in_game.shape)
        restarted = np.flatnonzero(~self._in_game.any(axis=1))
        self._in_game[restarted] = True
        if len(restarted):
            self._teacher.player.reset(self._slots[np.isin(self._games, restarted)])


def _environment(model: PPO) -> tuple[VecEnv, CurryVecEnv]:
    """The VecEnv of a model and the CurryVecEnv in it, after checks of both."""
    if not isinstance(model, PPO) or not isinstance(model.policy, ActorCriticPolicy):
        raise ValueError(
            f"imitation needs PPO with an ActorCriticPolicy, got {type(model).__name__} with {type(model.policy).__name__}: "
            "use PPO; MaskablePPO with the same networks can continue from it, policy.load_state_dict(ppo.policy.state_dict())"
        )
    env = model.get_env()
    games = None if env is None else env.unwrapped
    if env is None or not isinstance(games, CurryVecEnv):
        raise ValueError(f"imitation needs a model on a VecEnv of make_sb3_env, got {type(games).__name__}")
    if not isinstance(games.action_space, spaces.Discrete):
        raise ValueError(f"imitation needs discrete actions, got {games.action_space}")
    buffer = type(model.rollout_buffer)
    if games.padded and not issubclass(buffer, ActiveBuffer):
        raise ValueError(
            "imitation with several learners needs a rollout buffer that leaves out the steps in which a learner only waits "
            f"for the end of its game, got {buffer.__name__}: make the model with rollout_buffer_class=adapters."
            f"{(twin_of(buffer) or ActiveRolloutBuffer).__name__}, rollout_buffer_kwargs={{'active': env.active}}"
        )
    return env, games


def _check_numbers(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} must be >= 1, got {number}")


def _add_what_was_cut_off(
    model: PPO, rewards: NDArray[np.float32], dones: NDArray[np.bool_], infos: list[dict[str, Any]]
) -> None:
    """Add the value of the last observation of truncated games to `rewards` (num_envs,) in place, as SB3 does."""
    for env_id in np.flatnonzero(dones):
        last = infos[env_id].get("terminal_observation")
        if last is not None and infos[env_id].get("TimeLimit.truncated", False):
            with torch.no_grad():
                value = model.policy.predict_values(model.policy.obs_to_tensor(last)[0])
            rewards[env_id] += (model.gamma * value).item()


def _recorded(model: PPO, games: CurryVecEnv, replays: Sequence[Replay], players: Collection[str] | None) -> Lessons:
    """The lessons of replays for a model on these games."""
    if games.game_batch.snake_rules is None or model.get_vec_normalize_env() is not None:
        raise ValueError("replays are of the snake: expected a model on its games, without VecNormalize")
    if model.observation_space != games.observation_space:
        raise ValueError(f"replays are seen as the games show themselves, but the model sees {model.observation_space}")
    weights = games.game_batch.get_attr("reward_weights", [0])[0]
    return lessons_of(replays, games.observation_space, games.action_space, weights, model.gamma, players)


def _imitate_recorded(
    model: PPO,
    lessons: Lessons,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    value_weight: float,
    each: Callable[[Imitation], bool | None] | None,
) -> Imitation:
    """Train on recorded moves, which are shuffled for each epoch."""
    optimizer = torch.optim.Adam(model.policy.parameters(), lr=learning_rate, eps=1e-5)
    total, result = len(lessons.actions), Imitation(0, 0.0, 0.0)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * (1 - 2 / 3 * epoch / epochs)
        result = Imitation(total * (epoch + 1), *_fit(model, optimizer, _shuffled(model, lessons, batch_size), value_weight))
        if each is not None and each(result) is False:
            break
    return result


class _Batch(NamedTuple):
    """Samples as a rollout buffer gives them."""

    observations: Any
    actions: torch.Tensor
    returns: torch.Tensor


def _shuffled(model: PPO, lessons: Lessons, batch_size: int) -> Iterator[_Batch]:
    order = np.random.permutation(len(lessons.actions))  # noqa: NPY002, as SB3's buffers do, which it seeds
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        yield _Batch(*(torch.as_tensor(array[rows], device=model.device) for array in lessons))


def _fit(model: PPO, optimizer: torch.optim.Optimizer, batches: Iterable[Any], value_weight: float) -> tuple[float, float]:
    """Train on batches; returns agreement and cross-entropy before each gradient step, averaged."""
    policy = model.policy
    policy.set_training_mode(True)
    agreements, entropies = [], []
    for batch in batches:
        advised = batch.actions.long().flatten()
        features: Any = policy.extract_features(batch.observations)
        of_actor, of_critic = (features, features) if policy.share_features_extractor else features
        extractor = policy.mlp_extractor
        logits = policy.action_net(extractor.forward_actor(of_actor))  # faster than through a distribution
        values = policy.value_net(extractor.forward_critic(of_critic)).flatten()
        cross_entropy = torch.nn.functional.cross_entropy(logits, advised)
        loss = cross_entropy + value_weight * torch.nn.functional.mse_loss(values, batch.returns)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        agreements.append((logits.argmax(1) == advised).float().mean().item())
        entropies.append(cross_entropy.item())
    return float(np.mean(agreements)), float(np.mean(entropies))
