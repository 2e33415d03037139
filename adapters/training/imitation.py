"""A head start: a new PPO policy learns to do what a bot would do, before it learns for itself.

    model = PPO("CnnPolicy", make_sb3_env("survivor", ...), ...)
    imitate(model, make_bot("territorial", rules), steps=450_000)
    model.learn(...)

The learner plays, and the bot says at every step what it would have done there (DAgger, Ross et al. 2011): so the policy
learns what to do in the very positions that it gets into, not only in those of the bot. The value head learns the returns of
those games meanwhile; without it PPO's first advantages would be noise, and undo what was learned.
"""

from __future__ import annotations

from collections.abc import Callable
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
from adapters.vec_env.buffers import ActiveBuffer, ActiveRolloutBuffer, twin_of
from adapters.vec_env.curry import CurryVecEnv
from adapters.vec_env.sb3_internals import reset_when_learning
from snake_pz.players import SeatedPlayer


class Imitation(NamedTuple):
    """How close the policy came, over the last rollout."""

    steps: int  # of all environments of the VecEnv, those that only wait included, as SB3 counts its timesteps
    agreement: float  # share of steps on which its likeliest action was the teacher's
    cross_entropy: float  # of its distribution, in nats; where the teacher draws lots it cannot be 0


def imitate(
    model: PPO,
    teacher: Opponent,
    steps: int,
    *,
    epochs: int = 2,
    batch_size: int = 512,
    learning_rate: float = 1e-3,
    value_weight: float = 0.25,
    each: Callable[[Imitation], bool | None] | None = None,
) -> Imitation:
    """Teach the policy of a model to act as the teacher would.

    Rollouts are as long as the model's own and go through its rollout buffer, as PPO fills it, with the teacher's actions in
    place of those that were played; the games are those of the model's VecEnv, against its opponents. All of them start anew,
    and once more when the model learns next, however the lessons ended. The model's optimizer is not touched.

    With several learners to a game the teacher is asked only about those that are still in it, and only these are learnt from.

    Args:
        model: PPO with an `ActorCriticPolicy`, as all of its own policies are, on a VecEnv of `make_sb3_env` with discrete
            actions. With several learners it needs a buffer of `adapters.buffers`, which is bound to the VecEnv's mask.
        teacher: an opponent that can play these games; it may see other observations and have another action set. Its slots
            are the learner's seats; it is reset as their games restart, and given masks if it uses them, as on an enemy seat.
        steps: how many to play at least, over all environments of the VecEnv.
        epochs: how often each is used.
        batch_size: samples of one gradient step.
        learning_rate: at the start; it falls linearly to a third of it.
        value_weight: of the squared error of the values, beside the cross-entropy.
        each: called after each rollout with how it stands; it ends the lessons by returning False.

    Raises:
        ValueError: before anything is played: the model is another algorithm or has another kind of policy, learns on some
            other VecEnv, has actions that are not discrete, or would store padding; the teacher cannot play these games; or a
            number is out of range.
    """
    env, games = _environment(model)
    _check_numbers(steps=steps, epochs=epochs, batch_size=batch_size)
    if not (learning_rate > 0 and value_weight >= 0):
        raise ValueError(
            f"learning_rate must be > 0 and value_weight >= 0, got learning_rate={learning_rate}, value_weight={value_weight}"
        )
    policy, buffer, lessons = model.policy, model.rollout_buffer, _Lessons(games, teacher)
    optimizer = torch.optim.Adam(policy.parameters(), lr=learning_rate, eps=1e-5)
    reset_when_learning(model)  # for these games are played on without it
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
        agreement, cross_entropy = _fit(model, optimizer, epochs, batch_size, value_weight)
        played += model.n_steps * env.num_envs
        result = Imitation(played, agreement, cross_entropy)
        if each is not None and each(result) is False:
            break
    buffer.reset()
    return result


class _Lessons:
    """The teacher beside the learner: what it would do in each environment of the VecEnv, as the learner would say it.

    Args:
        games: on whose learner seats it is asked.
        teacher: whom to ask; its slots are `game * seats + seat`, as in a `Lineup`.

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
        self._words = range(int(game_batch.action_space.n))  # what the learner can say
        self._in_game = np.ones((game_batch.num_games, game_batch.num_learners), np.bool_)  # the others are padding

    def begin(self) -> None:
        """All games have started anew."""
        self._in_game[:] = True
        self._teacher.player.reset(self._slots)

    def advise(self, played: NDArray[Any]) -> NDArray[Any]:
        """(num_envs,) what the learner does now -> what the teacher would do.

        Where the learner has no word for that (a relative action cannot turn back), and on padding, its own action stands.
        """
        env_ids = np.flatnonzero(self._in_game)
        games, seats = self._games[env_ids], self._seats[env_ids]
        chosen = self._teacher.act(self._slots[env_ids])
        said = np.stack([self._own.decode(np.full(len(env_ids), word), games, seats) for word in self._words]) == chosen
        advised = played.copy()
        advised[env_ids] = np.where(said.any(axis=0), said.argmax(axis=0), played[env_ids])
        return advised

    def step(self, dones: NDArray[np.bool_]) -> None:
        """The games went on: (num_envs,) which learners left theirs. It has restarted where that was the last one."""
        self._in_game &= ~dones.reshape(self._in_game.shape)
        restarted = np.flatnonzero(~self._in_game.any(axis=1))
        self._in_game[restarted] = True
        if len(restarted):
            self._teacher.player.reset(self._slots[np.isin(self._games, restarted)])


def _environment(model: PPO) -> tuple[VecEnv, CurryVecEnv]:
    """The VecEnv that a model learns on and the games under it, if the model can be taught there."""
    if not isinstance(model, PPO) or not isinstance(model.policy, ActorCriticPolicy):
        raise ValueError(
            f"imitation needs PPO with an ActorCriticPolicy, got {type(model).__name__} with {type(model.policy).__name__}: "
            "teach a PPO; MaskablePPO with the same networks can go on from it, policy.load_state_dict(ppo.policy.state_dict())"
        )
    env = model.get_env()
    games = None if env is None else env.unwrapped
    if env is None or not isinstance(games, CurryVecEnv):
        raise ValueError(f"imitation needs a model whose VecEnv make_sb3_env made, got {type(games).__name__}")
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
    """Add to `rewards` (num_envs,), in place, what the rest of a truncated game is worth to the policy, as SB3 does."""
    for env_id in np.flatnonzero(dones):
        last = infos[env_id].get("terminal_observation")
        if last is not None and infos[env_id].get("TimeLimit.truncated", False):
            with torch.no_grad():
                value = model.policy.predict_values(model.policy.obs_to_tensor(last)[0])
            rewards[env_id] += (model.gamma * value).item()


def _fit(
    model: PPO, optimizer: torch.optim.Optimizer, epochs: int, batch_size: int, value_weight: float
) -> tuple[float, float]:
    """Learn from what the buffer holds; agreement and cross-entropy before each gradient step, averaged."""
    policy = model.policy
    policy.set_training_mode(True)
    agreements, entropies = [], []
    for _ in range(epochs):
        for batch in model.rollout_buffer.get(batch_size):
            advised = batch.actions.long().flatten()
            features: Any = policy.extract_features(batch.observations)
            of_actor, of_critic = (features, features) if policy.share_features_extractor else features
            extractor = policy.mlp_extractor
            logits = policy.action_net(extractor.forward_actor(of_actor))  # a distribution would take longer
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
