"""A card for a checkpoint of the snake: what it is, what it needs, how strong it is, in the Markdown that model hubs read.

The head of the page is YAML as Hugging Face's hub expects it in a model card: licence, library, tags, and the results as a
`model-index` (https://huggingface.co/docs/hub/model-cards).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from adapters.evaluation.evaluate import play_games
from adapters.opponents.checkpoints import existing_checkpoint, is_onnx
from adapters.opponents.resolver import named_spaces, resolver_for_rules
from adapters.opponents.unpickling import Trust
from snake_pz.files import write_text
from snake_pz.rules import Rules

BOTS = ("random", "greedy", "survivor", "territorial")
"""The bots that a card measures a player against."""


class Strength(NamedTuple):
    """How often a player wins as one against others that are all the same bot.

    Attributes:
        bot: the bot's name.
        deterministic: whether the player plays its likeliest action.
        rate: the win rate.
        error: its standard error.
    """

    bot: str
    deterministic: bool
    rate: float
    error: float


def write_card(
    model: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    rules: Rules | None = None,
    games: int = 2000,
    seed: int = 0,
    name: str | None = None,
    license: str | None = None,
    notes: str = "",
    settings: Mapping[str, Any] | None = None,
    trust: Trust = False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Measure a checkpoint or ONNX file of the snake, and write its card.

    Args:
        model: path of the file.
        path: path of the card.
        rules: the rules to measure it by; None: the classic ones.
        games: how many against each bot, with actions sampled and with the likeliest ones each.
        seed: of the games.
        name: what it is called; None: the file's name.
        license: the licence's SPDX identifier; None: the card names none.
        notes: Markdown on how it came to be.
        settings: settings of its training, such as the config.json of a run.
        trust: what its file may ask for beside known classes, as for `frozen`.
        say: called with a line for each measurement.

    Returns:
        The path of the card.

    Raises:
        ValueError: it cannot play by these rules, or games is no number from 1 to 100,000.
        FileNotFoundError: there is no such file.
    """
    file, rules = existing_checkpoint(model), rules or Rules()
    player: Any = resolver_for_rules(rules, device="cpu", trust=trust).make(file)
    encoding, action_set = _names(player, rules)
    strengths = [*_measured(file, rules, games, seed, trust, say)]
    text = _template().render(
        name=name or file.stem,
        file=file.name,
        size=file.stat().st_size,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        license=license,
        rules=_changed(rules),
        width=rules.width,
        height=rules.height,
        num_snakes=rules.num_snakes,
        encoding=encoding,
        action_set=action_set,
        observation_space=str(player.observation_space),
        action_space=str(player.action_space),
        onnx=is_onnx(file),
        policy=_policy(player),
        versions=_versions(file),
        games=games,
        bots=BOTS,
        strengths={
            kind: {one.bot: one for one in strengths if one.deterministic == deterministic}
            for kind, deterministic in (("actions sampled, as opponents play", False), ("likeliest action", True))
        },
        chance=1 / rules.num_snakes,
        notes=notes.strip(),
        settings=None if settings is None else json.dumps(settings, indent=2),
    )
    target = Path(path)
    write_text(target, text)
    return target


def _measured(file: Path, rules: Rules, games: int, seed: int, trust: Trust, say: Callable[[str], None]) -> Sequence[Strength]:
    found = []
    for deterministic in (False, True):
        for bot in BOTS:
            players = [file, *[bot] * (rules.num_snakes - 1)]
            results = play_games(
                players,
                games=games,
                seed=seed,
                env_kwargs={"rules": rules},
                deterministic=deterministic,
                device="cpu",
                trust=trust,
            )
            wins = results.wins[:, 0]
            strength = Strength(bot, deterministic, float(wins.mean()), float(np.std(wins) / np.sqrt(games)))
            how = "its likeliest actions" if deterministic else "sampled actions"
            say(f"{strength.rate:.3f} against {bot}, {how}")
            found.append(strength)
    return found


def _names(player: Any, rules: Rules) -> tuple[str, str]:
    """The names of a player's encoding and action set."""
    encodings, action_sets = named_spaces(rules)
    found = [
        next((name for name, space in named.items() if space == own), None)
        for named, own in ((encodings, player.observation_space), (action_sets, player.action_space))
    ]
    if None in found:
        raise ValueError(
            f"a card needs a player of the snake on this board, {rules.width}x{rules.height}; this one sees "
            f"{player.observation_space} and acts in {player.action_space}"
        )
    return str(found[0]), str(found[1])


def _policy(player: Any) -> str | None:
    policy = getattr(player, "policy", None)
    return None if policy is None else f"{type(policy).__module__}.{type(policy).__qualname__}"


def _versions(file: Path) -> Mapping[str, str]:
    """The versions with which a checkpoint was saved, as its file says: lines of `- Package: version`."""
    if is_onnx(file):
        return {}
    with zipfile.ZipFile(file) as archive:
        if "system_info.txt" not in archive.namelist():
            return {}
        lines = archive.read("system_info.txt")[:10_000].decode("utf-8", "replace").splitlines()
    pairs = [line.removeprefix("- ").split(": ", 1) for line in lines if line.startswith("- ") and ": " in line]
    wanted = ("Python", "Stable-Baselines3", "PyTorch", "Numpy", "Gymnasium")
    return {name: version.strip() for name, version in pairs if name in wanted}


def _changed(rules: Rules) -> Mapping[str, Any]:
    """The rules that differ from the classic ones."""
    classic = dataclasses.asdict(Rules())
    return {name: value for name, value in dataclasses.asdict(rules).items() if value != classic[name]}


def _template() -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        autoescape=False,  # the page is Markdown
    )  # fmt: skip
    environment.filters["yaml"] = json.dumps  # every JSON string is one of YAML
    return environment.get_template("card.md.j2")
