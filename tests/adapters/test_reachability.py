"""SnakeNet and its ReachabilityFeatures: the walk on bit boards is the walk that anyone would program cell by cell."""

import numpy as np
import pytest
import torch

from adapters.networks import ReachabilityFeatures, SnakeNet, snake_policy_kwargs
from adapters.sb3 import make_sb3_env
from snake_pz import Rules
from snake_pz.core.encodings import observation_space

torch.set_num_threads(1)

AROUND = [(-1, 0), (1, 0), (0, -1), (0, 1)]


def slow_walk(view, turns):
    """The same numbers, one cell at a time: sets of cells and nothing else."""
    view = view.astype(np.float64) * 255
    centre = view.shape[-1] // 2
    cells = [(y, x) for y in range(centre - turns, centre + turns + 1) for x in range(centre - turns, centre + turns + 1)]
    inside = set(cells)

    def free(cell, turn):
        own, others, _, _, wall = view[:5, *cell]
        return max(own, others) <= 10 * turn + 5 and wall < 250

    def spread(reached, turn):
        near = {(y + dy, x + dx) for y, x in reached for dy, dx in [*AROUND, (0, 0)]}
        return {cell for cell in near & inside if free(cell, turn)}

    foods = {cell for cell in cells if view[3, *cell] > 127}
    longer = [{cell for cell in cells if view[2, *cell] > 191}]
    shorter = [{cell for cell in cells if 64 < view[2, *cell] < 191}]
    beside = [{(y + dy, x + dx) for y, x in heads[0] for dy, dx in [*AROUND, (0, 0)]} for heads in (longer, shorter)]
    for turn in range(1, turns + 1):
        longer.append(spread(longer[-1], turn))
        shorter.append(spread(shorter[-1], turn))
    counts, fed, meets = np.zeros((turns, 6)), np.zeros((turns, 6)), np.zeros((2, 3))
    for move, step in enumerate([(0, -1), (-1, 0), (0, 1)]):
        first = (centre + step[0], centre + step[1])
        ours = anyway = {first} if free(first, 1) else set()
        for kind in (0, 1):
            meets[kind, move] = bool(ours & beside[kind])
        for turn in range(1, turns + 1):
            if turn > 1:
                ours = spread(ours, turn) - longer[turn] - shorter[turn - 1]
                anyway = spread(anyway, turn)
            counts[turn - 1, move], counts[turn - 1, 3 + move] = len(ours), len(anyway)
            fed[turn - 1, move], fed[turn - 1, 3 + move] = bool(ours & foods), bool(anyway & foods)
    scale = 0.5 / np.arange(1, turns + 1)[:, None] ** 1.5
    return np.concatenate([(counts * scale).ravel(), fed.ravel(), meets.ravel()])


def views(rules, turns):
    """What learners see in the middle of games of survivors."""
    env = make_sb3_env(
        "survivor", env_kwargs={"rules": rules, "observation": "egocentric", "actions": "relative"}, seed=3, num_games=12
    )
    seen = env.reset()
    rng = np.random.default_rng(0)
    for _ in range(turns):
        seen, *_ = env.step(rng.integers(3, size=12))
    return seen


@pytest.mark.parametrize("turns", [7, 10])
@pytest.mark.parametrize(
    "rules", [Rules(), Rules.hungry_geese(), Rules.battlesnake("royale")], ids=["classic", "geese", "royale"]
)
def test_reachability_is_a_walk_over_the_view(rules, turns):
    seen = np.concatenate([views(rules, number) for number in (0, 12)]).astype(np.float32) / 255
    features = ReachabilityFeatures(turns)
    found = features(torch.as_tensor(seen))
    assert found.shape == (24, features.width)
    np.testing.assert_allclose(found, [slow_walk(view, turns) for view in seen], atol=1e-5)


def test_reachability_loses_no_cell_of_the_widest_rows():
    view = torch.zeros(1, 6, 77, 77)
    view[0, 0] = torch.rand(77, 77, generator=torch.Generator().manual_seed(0)) < 0.3
    np.testing.assert_allclose(ReachabilityFeatures(11)(view)[0], slow_walk(view[0].numpy(), 11), atol=1e-5)


def test_reachability_loses_no_cell_at_half_precision():
    seen = torch.as_tensor(views(Rules(width=39, height=39), 12)).float() / 255
    expected = [slow_walk(view, 7) for view in seen.numpy()]
    with torch.autocast("cpu", torch.bfloat16):
        np.testing.assert_allclose(ReachabilityFeatures(7)(seen), expected, atol=1e-5)
    np.testing.assert_allclose(ReachabilityFeatures(7).half()(seen.half()).float(), expected, rtol=2e-3)


def test_reachability_tells_the_dead_end_from_the_way_out():
    view = torch.zeros(1, 6, 21, 21)
    view[0, 4, 9, 8:13] = view[0, 4, 8:11, 8] = view[0, 4, 11, 8:10] = 1  # wall ahead, and a pocket of one cell on the left
    view[0, 0, 10, 10] = 1  # and we stay behind ourselves
    counts = ReachabilityFeatures(7)(view)[0, :42].reshape(7, 6) / ReachabilityFeatures(7).scale[:, :, 0]
    assert counts[-1, :3].tolist()[:2] == [1, 0]
    assert counts[-1, 2] > 30


@pytest.mark.parametrize(
    "rules", [Rules(), Rules(width=39, height=39), Rules(width=4, height=4, num_snakes=2), Rules.hungry_geese()]
)
def test_every_board_becomes_128_features(rules):
    space = observation_space(rules, "egocentric")
    network = SnakeNet(space)
    assert network(torch.zeros(3, *space.shape)).shape == (3, 128)
    assert sum(parameter.numel() for parameter in network.parameters()) < 500_000


def test_every_cell_of_the_view_reaches_the_features():
    torch.manual_seed(0)
    view = torch.rand(1, 6, 21, 21, requires_grad=True)
    SnakeNet(observation_space(Rules(), "egocentric"))(view).sum().backward()
    assert view.grad.abs().sum(dim=(0, 1)).min() > 0


def test_other_encodings_are_refused():
    with pytest.raises(ValueError, match="needs the egocentric encoding"):
        SnakeNet(observation_space(Rules(), "board"))
    with pytest.raises(ValueError, match="of one length"):
        SnakeNet(observation_space(Rules(), "egocentric"), channels=(8,))
    with pytest.raises(ValueError, match="from 1 to 11"):
        ReachabilityFeatures(12)
    with pytest.raises(ValueError, match="7 turns ahead takes a view of 15 cells a side or more, got 13"):
        ReachabilityFeatures(7)(torch.zeros(2, 6, 13, 13))


def test_policy_kwargs_name_the_network_and_its_settings():
    kwargs = snake_policy_kwargs(heads=32, turns=10)
    assert kwargs["features_extractor_class"] is SnakeNet
    assert kwargs["features_extractor_kwargs"] == {"turns": 10}
    assert kwargs["net_arch"] == {"pi": [32], "vf": [32]}


@pytest.mark.parametrize("turns", [3, 7, 10])
def test_the_form_for_onnx_is_the_same(turns, monkeypatch):
    seen = torch.as_tensor(views(Rules.battlesnake("royale"), 12).astype(np.float32) / 255)
    features = ReachabilityFeatures(turns)
    found = features(seen)
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    np.testing.assert_allclose(features(seen), found, atol=5e-6)
