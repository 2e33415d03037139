"""Several processes that learn as one: equal parameters, gradients of all, steps, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from adapters.training.data_parallel import DataParallel, run_processes, seed_of_rank
from tests.support.toys import VECTOR, Toy

SMALL: dict[str, Any] = {"n_steps": 16, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}


class Steps(BaseCallback):
    """Notes the steps that a later callback sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def _on_step(self) -> bool:
        self.seen.append(self.num_timesteps)
        return True


def parameters(model: Any) -> torch.Tensor:
    return torch.nn.utils.parameters_to_vector(model.policy.parameters()).detach()


def learns(rank: int, folder: Path) -> None:
    """In each process: PPO from a start of its own, then A2C that takes one step of SGD."""
    steps = Steps()
    model = PPO("MlpPolicy", Toy(), batch_size=8, n_epochs=2, seed=seed_of_rank(0, rank), **SMALL)
    before = parameters(model)
    model.learn(128, callback=[DataParallel(), steps])
    again = parameters(model)
    model.learn(64, callback=[DataParallel(), steps], reset_num_timesteps=False)
    a2c = A2C(
        "MlpPolicy",
        Toy(),
        seed=seed_of_rank(0, rank),
        n_steps=16,
        learning_rate=1.0,
        max_grad_norm=1e9,
        device="cpu",
        policy_kwargs={"net_arch": [8], "optimizer_class": torch.optim.SGD, "optimizer_kwargs": {}},
    )
    a2c.learn(32, callback=Gradients(folder / f"gradients{rank}.pt"))
    torch.save(
        {
            "before": before,
            "after": again,
            "end": parameters(model),
            "steps": steps.seen,
            "total": model.num_timesteps,
            "progress": model._current_progress_remaining,
            "hooks": sum(len(one._post_accumulate_grad_hooks or ()) for one in model.policy.parameters()),
        },
        folder / f"{rank}.pt",
    )


class Gradients(DataParallel):
    """Keeps gradients as they were in this process, and as they became."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.kept = path, []

    def _average(self, parameter: torch.Tensor, size: int) -> None:
        assert parameter.grad is not None
        own = parameter.grad.clone()
        super()._average(parameter, size)
        self.kept.append((own, parameter.grad.clone()))

    def _on_training_end(self) -> None:
        super()._on_training_end()
        torch.save(self.kept, self.path)


def fails(rank: int) -> None:
    model = PPO("MlpPolicy", Toy(), batch_size=8, **SMALL)
    if rank == 1:
        raise ArithmeticError("the second process gave up")
    model.learn(64, callback=DataParallel())


def differs(rank: int) -> None:
    PPO("MlpPolicy", Toy(), batch_size=8, n_epochs=1 + rank, **SMALL).learn(64, callback=DataParallel())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    run_processes(learns, 2, folder)
    return folder


@pytest.mark.slow
def test_parameters_are_equal_in_all_processes(two: Path) -> None:
    one, other = (torch.load(two / f"{rank}.pt") for rank in (0, 1))
    assert not torch.equal(one["before"], other["before"])
    assert torch.equal(one["after"], other["after"])
    assert torch.equal(one["end"], other["end"])
    assert not torch.equal(one["before"], one["after"])
    assert not torch.equal(one["after"], one["end"])


@pytest.mark.slow
def test_steps_are_those_of_all_processes(two: Path) -> None:
    for rank in (0, 1):
        told = torch.load(two / f"{rank}.pt")
        assert told["steps"] == list(range(2, 194, 2))
        assert (told["total"], told["progress"], told["hooks"]) == (192, 0.0, 0)


@pytest.mark.slow
def test_gradients_are_averages(two: Path) -> None:
    one, other = (torch.load(two / f"gradients{rank}.pt") for rank in (0, 1))
    assert len(one) == len(other) > 0
    for (own, average), (its_own, its_average) in zip(one, other, strict=True):
        assert torch.equal(average, its_average)
        torch.testing.assert_close(average, (own + its_own) / 2)
    assert not torch.equal(one[0][0], other[0][0])


@pytest.mark.slow
def test_the_first_error_ends_all_processes_and_is_told() -> None:
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="the second process gave up"):
        run_processes(fails, 2)


@pytest.mark.slow
def test_other_settings_in_another_process_are_refused() -> None:
    with pytest.raises(torch.multiprocessing.ProcessRaisedException, match="all processes must have the same settings"):
        run_processes(differs, 2)


@pytest.fixture
def alone(tmp_path: Path) -> Any:
    """A group of this process."""
    dist.init_process_group("gloo", init_method=(tmp_path / "meeting").as_uri(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


REFUSED = {
    "target_kl": lambda: PPO("MlpPolicy", Toy(), batch_size=8, target_kl=0.1, **SMALL),
    "VecNormalize": lambda: PPO("MlpPolicy", VecNormalize(DummyVecEnv([Toy])), batch_size=8, **SMALL),
    "on-policy": lambda: DQN("MlpPolicy", Toy(), buffer_size=10, device="cpu"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_differ_between_processes_is_refused(what: str, alone: None) -> None:
    with pytest.raises(ValueError, match=what):
        REFUSED[what]().learn(16, callback=DataParallel())


def test_without_a_group_it_is_said_what_makes_one() -> None:
    with pytest.raises(ValueError, match="run_processes"):
        PPO("MlpPolicy", Toy(), batch_size=8, **SMALL).learn(16, callback=DataParallel())


def test_one_process_learns_as_without(alone: None) -> None:
    weights = []
    for callback in (None, DataParallel()):
        VECTOR.seed(0)  # of which Toy samples
        weights.append(parameters(PPO("MlpPolicy", Toy(), batch_size=8, seed=0, **SMALL).learn(32, callback=callback)))
    assert torch.equal(*weights)


def test_seeds_differ_by_rank_and_are_not_neighbours() -> None:
    seeds = {seed_of_rank(seed, rank) for seed in range(10) for rank in range(10)}
    assert len(seeds) == 100
    assert seed_of_rank(3, 1) == seed_of_rank(3, 1)


@pytest.mark.parametrize("processes", [0, 1.5])
def test_the_number_of_processes_is_checked(processes: Any) -> None:
    with pytest.raises(ValueError, match="processes"):
        run_processes(fails, processes)
