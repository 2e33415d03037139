"""Data-parallel learning: one model in several processes, each with games of its own, by averaged gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cloudpickle
import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from typing_extensions import override

from adapters.vec_env.buffers import ActiveBuffer
from snake_pz.ranges import Range, check_number

PROCESSES = Range(1, 1024)


def run_processes(function: Callable[..., Any], processes: int, *args: Any) -> None:
    """Call `function(rank, *args)` in several new processes of this machine, which can reach each other, and wait for them.

    They are a group of `torch.distributed` (gloo), each with one torch thread. A script that calls this needs
    `if __name__ == "__main__":` around it, because new processes import it.

    Args:
        function: what each process does. Ranks are 0 to processes - 1.
        processes: how many.
        args: further arguments, pickled by cloudpickle.

    Raises:
        ValueError: the number of processes is out of range.
        torch.multiprocessing.ProcessRaisedException: one raised an exception; its traceback is in the text, and the others
            are ended. Files that were written stay.
        torch.multiprocessing.ProcessExitedException: one was killed; the others are ended.
    """
    check_number("processes", processes, PROCESSES)
    with TemporaryDirectory() as folder:
        call = cloudpickle.dumps((function, args))
        spawn: Any = vars(torch.multiprocessing)["spawn"]  # which has no types
        spawn(_run, (processes, Path(folder).absolute().as_uri() + "/meeting", call), processes)


def _run(rank: int, processes: int, meeting: str, call: bytes) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
    function, args = cloudpickle.loads(call)
    function(rank, *args)
    dist.barrier()  # nobody leaves while another has gradients to send
    dist.destroy_process_group()


def seed_of_rank(seed: int, rank: int) -> int:
    """A seed for the games and random streams of one process: independent ones for all ranks."""
    return int(np.random.SeedSequence(seed, spawn_key=(rank,)).generate_state(1)[0])


class DataParallel(BaseCallback):
    """Lets models of several processes learn as one: PPO, A2C and the like, unmodified, with ordinary checkpoints.

        def train(rank):
            env = make_sb3_env("greedy", num_games=64, seed=seed_of_rank(0, rank))
            model = PPO("CnnPolicy", env, policy_kwargs=policy_kwargs(), seed=seed_of_rank(0, rank))
            model.learn(10_000_000, callback=DataParallel())
            if rank == 0:
                model.save("snake.zip")

        if __name__ == "__main__":
            run_processes(train, 2)

    When training starts, all processes take the parameters and the state of the optimiser of rank 0. Each gradient is averaged
    over the processes as soon as it is computed, before it is clipped and before the optimiser's step, so that parameters stay
    equal in all. `batch_size` and `n_steps` are those of one process: an update uses as many batches, each with the samples of
    all processes. As there are batches of each process, advantages are normalised within them. Steps count those of all
    processes, here and in schedules, so `total_timesteps` is for all together.

    It must be the first callback. Others run in every process: what writes files should do so where the rank is 0, and what
    ends training must do so in all processes in the same step, since those that go on would wait for the others.

    Args:
        group: the processes; None: all of `torch.distributed`, as in a function of `run_processes` or under `torchrun`.

    Raises:
        ValueError: when training starts: no process group, an algorithm that is not on-policy, or settings with which
            processes would differ: `target_kl`, `VecNormalize`, several learners in a game, or another number of games,
            epochs, or steps done or to do.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        super().__init__()
        self._group = group
        self._hooks: list[Any] = []
        self._others = 0  # steps of other processes, for each of ours

    @override
    def _on_training_start(self) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise ValueError("DataParallel needs a process group: call run_processes, or torch.distributed.init_process_group")
        model: Any = self.model
        self._check(model)
        size = dist.get_world_size(self._group)
        self._others = (size - 1) * self.training_env.num_envs
        optimizer_state = [model.policy.optimizer.state_dict()]
        dist.broadcast_object_list(optimizer_state, group_src=0, group=self._group)
        model.policy.optimizer.load_state_dict(optimizer_state[0])
        for tensor in model.policy.state_dict().values():
            dist.broadcast(tensor, group_src=0, group=self._group)
        self._release()
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(lambda one: self._average(one, size))
            for parameter in model.policy.parameters()
            if parameter.requires_grad
        ]

    @override
    def _on_step(self) -> bool:
        self.model.num_timesteps += self._others
        self.num_timesteps = self.model.num_timesteps
        return True

    @override
    def _on_training_end(self) -> None:
        self._release()

    def _average(self, parameter: torch.Tensor, size: int) -> None:
        """Average the gradient of a parameter. Each process does so in the same order, that of the same backward pass."""
        assert parameter.grad is not None
        dist.all_reduce(parameter.grad, group=self._group)
        parameter.grad /= size

    def _release(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _check(self, model: Any) -> None:
        if not isinstance(model, OnPolicyAlgorithm):
            raise ValueError(f"DataParallel is for on-policy algorithms such as PPO and A2C, got {type(model).__name__}")
        if (target := getattr(model, "target_kl", None)) is not None:
            raise ValueError(
                f"target_kl must be None in several processes, which would stop at different batches, got {target}"
            )
        if model.get_vec_normalize_env() is not None:
            raise ValueError("VecNormalize has statistics of its own in every process: normalise inside the environment")
        if isinstance(model.rollout_buffer, ActiveBuffer):
            raise ValueError("with several learners in a game processes have different numbers of batches: take learners=1")
        own = {name: getattr(model, name, None) for name in ("n_steps", "batch_size", "n_epochs", "n_envs", "num_timesteps")}
        own["total_timesteps"] = self.locals["total_timesteps"]
        all_of_them: list[Any] = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(all_of_them, own, group=self._group)
        if any(other != own for other in all_of_them):
            raise ValueError(f"all processes must have the same settings, got {all_of_them}")
