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
from stable_baselines3.common.utils import obs_as_tensor

from adapters.curry import CurryVecEnv
from adapters.matches import map_arrays
from adapters.opponents import Opponent


class Imitation(NamedTuple):
    """How close the policy came, over the last rollout."""

    steps: int  # that the learner played
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

    Rollouts are as long as the model's own and go through its rollout buffer, with the teacher's actions in place of those
    that were played; the games are those of the model's VecEnv, against its opponents. The model's optimizer is not touched.

    Args:
        model: PPO on a VecEnv of `make_sb3_env`, with discrete actions.
        teacher: an opponent that can play these games; it may see other observations and have another action set.
        steps: how many to play at least, over all games.
        epochs: how often each is used.
        batch_size: samples of one gradient step.
        learning_rate: at the start; it falls linearly to a third of it.
        value_weight: of the squared error of the values, beside the cross-entropy.
        each: called after each rollout with how it stands; it ends the lessons by returning False.

    Raises:
        ValueError: the model learns on some other VecEnv, or the teacher cannot play these games.
    """
    env = model.get_env()
    games = None if env is None else env.unwrapped
    if env is None or not isinstance(games, CurryVecEnv):
        raise ValueError(f"imitation needs a model whose VecEnv make_sb3_env made, got {type(games).__name__}")
    policy, buffer = model.policy, model.rollout_buffer
    advise = _advice(games, teacher)
    optimizer = torch.optim.Adam(policy.parameters(), lr=learning_rate, eps=1e-5)
    observations: Any = env.reset()
    starts = np.ones(env.num_envs, np.bool_)
    played = 0
    result = Imitation(0, 0.0, 0.0)
    while played < steps:
        policy.set_training_mode(False)
        buffer.reset()
        for _ in range(model.n_steps):
            with torch.no_grad():
                actions, values, log_probs = policy(obs_as_tensor(observations, model.device))
            advised = advise(actions.cpu().numpy())
            after, rewards, dones, _ = env.step(actions.cpu().numpy())
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


def _advice(env: CurryVecEnv, teacher: Opponent) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """From what the learner does on each row, what the teacher would do there, as the learner would say it.

    Where the learner has no word for it (a relative action cannot turn back), its own action stands.
    """
    matches = env.matches
    sight = matches.view(teacher.observation_space, teacher.action_space)
    own = matches.view(matches.observation_space, matches.action_space)
    games, seats = np.divmod(np.arange(env.num_envs), matches.num_learners)
    slots = games * matches.seats + seats
    if not isinstance(matches.action_space, spaces.Discrete):
        raise ValueError(f"imitation needs discrete actions, got {matches.action_space}")
    words = np.arange(matches.action_space.n)[:, None].repeat(env.num_envs, axis=1)

    def advise(played: NDArray[Any]) -> NDArray[Any]:
        seen = map_arrays(lambda array: np.ascontiguousarray(array[games, seats]), sight.observations())
        chosen = sight.decode(teacher.act(seen, slots, None), games, seats)
        said = np.stack([own.decode(word, games, seats) for word in words]) == chosen
        return np.where(said.any(axis=0), said.argmax(axis=0), played)

    return advise


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
            features = policy.extract_features(batch.observations)
            for_actor, for_critic = policy.mlp_extractor(features)
            logits, values = policy.action_net(for_actor), policy.value_net(for_critic).flatten()
            cross_entropy = torch.nn.functional.cross_entropy(logits, advised)
            loss = cross_entropy + value_weight * torch.nn.functional.mse_loss(values, batch.returns)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
            optimizer.step()
            agreements.append((logits.argmax(1) == advised).float().mean().item())
            entropies.append(cross_entropy.item())
    return float(np.mean(agreements)), float(np.mean(entropies))
