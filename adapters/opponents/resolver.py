"""Resolver: makes opponents from parsed words, for seats with the same spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adapters.games.common_spaces import OwnSpaces, own_spaces
from adapters.games.game_batch import GameBatch
from adapters.games.space_words import hidden_difference
from adapters.opponents.checkpoints import existing_checkpoint, is_onnx
from adapters.opponents.mixture_source import MixtureSource
from adapters.opponents.parse import CHAMPION, by_seat, parse
from adapters.opponents.parsed import Bot, Checkpoint, Function, Live, Mixture, Pool, Ready, Settings
from adapters.opponents.policy import PolicyOpponent
from adapters.opponents.pool_source import PoolSource, Sight
from adapters.opponents.protocol import Opponent, Source
from adapters.opponents.simple import CallableOpponent, RandomOpponent
from adapters.opponents.unpickling import Trust, checked_trust

if TYPE_CHECKING:
    import gymnasium
    import torch

    from snake_pz.core.encodings import Encoding
    from snake_pz.rules import Rules


class Resolver:
    """Makes opponents. Equal parsed words give the same object, which costs one forward pass for all its seats.

    Args:
        observation_space: observation space of functions, and the preferred one of policies.
        action_space: action space of functions.
        make_bot: makes a bot by name; raises a ValueError that lists the names if there is none.
        other_spaces: further observation spaces of the games, for policies that were trained in them.
        device: device on which policies predict.
        deterministic: whether policies play their likeliest action instead of sampling.
        trust: what files may ask for beside known classes, as for `frozen`.
        rules: of the snake's games, whose encodings and action sets have names; None: other games.
        own_encoding: returns the encoding of `observation_space`; None if it is not the snake's.
    """

    def __init__(
        self,
        *,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        make_bot: Callable[[str], Opponent],
        other_spaces: Sequence[gymnasium.Space[Any]] = (),
        device: torch.device | str = "auto",
        deterministic: bool = False,
        trust: Trust = False,
        rules: Rules | None = None,
        own_encoding: Callable[[], Encoding | None] = lambda: None,
    ) -> None:
        self._trust = checked_trust(trust)
        self._rules, self._own_encoding = rules, own_encoding
        self._observation_space, self._action_space = observation_space, action_space
        self._shown = [observation_space, *other_spaces]
        self._bot, self._device, self._deterministic = make_bot, device, deterministic
        self._made: dict[Any, Opponent | Source] = {}  # by what was parsed

    def make(self, word: Any) -> Opponent | Source:
        """The opponent or source for a word that `parse` takes.

        Raises:
            FileNotFoundError: there is no such checkpoint.
            TypeError: the word is none for an opponent.
            ValueError: a checkpoint that cannot be used, an unknown bot, or an empty pool.
        """
        parsed = parse(word)
        if parsed not in self._made:
            self._made[parsed] = self._new(parsed)
        return self._made[parsed]

    def _new(self, parsed: Any) -> Opponent | Source:
        match parsed:
            case Bot(name):
                return self._make_bot(name)
            case Checkpoint(file, settings, label):
                existing_checkpoint(file, called=label)
                if is_onnx(file):
                    return self._onnx(file, settings, label)
                return PolicyOpponent(file, **self._settings(settings, label))
            case Live():
                return PolicyOpponent(parsed.thing, **self._settings(parsed.settings))
            case Ready():
                ready: Opponent | Source = parsed.thing
                return ready
            case Function():
                spaces = {"observation_space": self._observation_space, "action_space": self._action_space}
                return CallableOpponent(parsed.thing, **spaces)
            case Mixture():
                return MixtureSource([self.make(member) for member in parsed.members], parsed.shares, parsed.per)
            case Pool():
                arguments, pool = self._settings(parsed.settings), parsed.opened()
                return PoolSource(
                    pool,
                    shown=self._shown,
                    make_bot=lambda name: self._pool_bot(name, parsed.settings),
                    prefix=parsed.prefix,
                    deterministic=arguments["deterministic"],
                    device=arguments["device"],
                    trust=arguments["trust"] or pool.trust,
                    encoded=lambda name: self._sight(parsed.settings.encode or name),
                )
        raise AssertionError(parsed)

    def _settings(self, settings: Settings, label: str | None = None) -> dict[str, Any]:
        """The arguments of a `PolicyOpponent`: the opponent's own settings go before those of all."""
        encoding, shown = self._sight(settings.encode)
        return {
            "encoding": encoding,
            "shown": shown,
            "deterministic": self._deterministic if settings.deterministic is None else settings.deterministic,
            "device": self._device if settings.device is None else settings.device,
            "vecnormalize": settings.vecnormalize,
            "name": settings.name or label,
            "custom_objects": settings.custom_objects,
            "trust": self._trust if settings.trust is None else settings.trust,
        }

    def _sight(self, encode: Encoding | str | None) -> Sight:
        """What a policy of this encoding is shown.

        Raises:
            ValueError: an unknown name, or the games are not the snake's.
        """
        if encode is None:
            return None, self._shown
        if self._rules is None:
            raise ValueError(
                f"encode= is for the snake of this package, which these games are not, got {encode!r}: leave it out"
            )
        from snake_pz.core.encodings import encoding

        own = self._own_encoding()
        if own is not None and encode in (own, own.name):
            return None, [self._observation_space]
        return (named := encoding(encode)), [named.space_for(self._rules)]

    def _onnx(self, file: Path, settings: Settings, label: str) -> Opponent:
        from adapters.opponents.onnx_opponent import OnnxOpponent

        observations, actions = named_spaces(self._rules)
        encoding, shown = self._sight(settings.encode)
        return OnnxOpponent(
            file,
            shown=shown,
            observation_space=_space(settings.observation, observations, "observation"),
            action_space=_space(settings.actions, actions, "actions"),
            actions=list(actions.values()) or [self._action_space],
            deterministic=self._deterministic if settings.deterministic is None else settings.deterministic,
            name=settings.name or label,
            encoding=encoding,
        )

    def _make_bot(self, name: str) -> Opponent:
        try:
            return self._bot(name)
        except ValueError as error:
            raise ValueError(f"{error} (beside them there is 'champion'; a checkpoint's path would end in .zip)") from error

    def _pool_bot(self, name: str, settings: Settings) -> Opponent:
        """A pool's member without a file. Not shared with other seats, because it has its own name in the pool."""
        if name != "champion":
            return self._bot(name)
        return PolicyOpponent(CHAMPION, **self._settings(replace(settings, encode=None), name))


def named_spaces(rules: Rules | None) -> tuple[Mapping[str, gymnasium.Space[Any]], Mapping[str, gymnasium.Space[Any]]]:
    """The spaces of the snake's encodings and of its action sets, by name; none for other games."""
    if rules is None:
        return {}, {}
    from snake_pz.core.actions import ACTIONS, action_space
    from snake_pz.core.encodings import known_encodings

    return {one.name: one.space_for(rules) for one in known_encodings()}, {name: action_space(name) for name in ACTIONS}


def _space(given: Any, named: Mapping[str, gymnasium.Space[Any]], setting: str) -> gymnasium.Space[Any] | None:
    if not isinstance(given, str):
        space: gymnasium.Space[Any] | None = given
        return space
    if given not in named:
        known = f"one of {', '.join(map(repr, named))} or a space" if named else "a space, because this is not the snake"
        raise ValueError(f"{setting} of an ONNX file must be {known}, got {given!r}")
    return named[given]


def opponents_for(
    games: GameBatch,
    words: Any,
    *,
    seats: int | None = None,
    named: bool = False,
    device: torch.device | str = "auto",
    deterministic: bool = False,
    trust: Trust = False,
) -> list[Opponent | Source]:
    """The opponents for the enemy seats of games.

    Args:
        games: the games.
        words: one word for all seats, a list in seat order, or, if learners are `named`, a dict by agent.
        seats: number of seats; None: the enemy seats.
        named: whether learners are named, so that agents never change seats.
        device: device on which policies predict.
        deterministic: whether policies play their likeliest action, unless a word says otherwise.
        trust: what files may ask for beside known classes, as for `frozen`, if they are not told otherwise.

    Returns:
        One entry per seat; the same object for equal words.

    Raises:
        ValueError: words that do not fit the seats, or an opponent that cannot play here.
        FileNotFoundError: there is no such checkpoint.
        TypeError: a word is none for an opponent.
    """
    agents = games.agents(0)[games.num_learners :]
    entries = by_seat(words, agents if named else None, len(agents) if seats is None else seats)
    own = own_spaces(games.action_space)
    if own is None:
        spaces = OwnSpaces(games.observation_space, games.action_space)
        resolver = _resolver(games, spaces, device, deterministic, trust)
        return [resolver.make(entry) for entry in entries]
    resolvers: list[tuple[OwnSpaces, Resolver]] = []  # agents have different spaces: one for each kind

    def resolver_for(spaces: OwnSpaces) -> Resolver:
        for known, resolver in resolvers:
            if known == spaces:
                return resolver
        resolvers.append((spaces, _resolver(games, spaces, device, deterministic, trust)))
        return resolvers[-1][1]

    made = [resolver_for(own[agent]).make(entry) for agent, entry in zip(agents, entries, strict=True)]
    for agent, entry in zip(agents, made, strict=True):
        _check_own_spaces(entry, agent, own[agent])
    return made


def resolver_for_rules(
    rules: Rules, *, device: torch.device | str = "auto", deterministic: bool = False, trust: Trust = False
) -> Resolver:
    """A resolver for snakes in games with these rules that no `GameBatch` plays.

    Args:
        rules: rules of the games.
        device: where policies predict.
        deterministic: whether policies take their likeliest action, if they are not told otherwise.
        trust: as for the `Resolver`.
    """
    from snake_pz.bots import make_bot

    observations, actions = named_spaces(rules)
    shown, *others = observations.values()
    return Resolver(
        observation_space=shown,
        action_space=actions["absolute"],
        make_bot=lambda name: make_bot(name, rules),
        rules=rules,
        other_spaces=others,
        device=device,
        deterministic=deterministic,
        trust=trust,
    )


def _resolver(games: GameBatch, spaces: OwnSpaces, device: torch.device | str, deterministic: bool, trust: Trust) -> Resolver:
    def make_bot(name: str) -> Opponent:
        if games.snake_rules is None:
            if name != "random":
                raise ValueError(
                    f"the only bot that plays any environment is 'random', got {name!r}: for the snake with observations or "
                    "rewards of your own, leave out the wrapper and give env_kwargs an Encoding or a function of rewards, see "
                    "docs/own-encoding.md; then all bots play"
                )
            return RandomOpponent(spaces.observation, spaces.action)
        from snake_pz.bots import make_bot as make_snake_bot

        bot = make_snake_bot(name, games.snake_rules)
        if name == "random":
            try:
                games.view(bot.observation_space, bot.action_space)
            except ValueError:  # it needs no observation, so it can have any spaces
                return RandomOpponent(spaces.observation, spaces.action, uses_masks=False)
        return bot

    return Resolver(
        observation_space=spaces.observation,
        action_space=spaces.action,
        make_bot=make_bot,
        other_spaces=games.other_spaces,
        rules=games.snake_rules,
        own_encoding=lambda: games.get_attr("encoding", [0])[0] if games.snake_rules else None,
        device=device,
        deterministic=deterministic,
        trust=trust,
    )


def _check_own_spaces(entry: Opponent | Source, agent: str, spaces: OwnSpaces) -> None:
    for one in entry.ready() if isinstance(entry, Source) else [entry]:
        if (one.observation_space, one.action_space) != spaces:
            raise ValueError(
                f"opponent {one.name!r} sees {one.observation_space} and acts in {one.action_space}, but agent {agent!r} "
                f"sees {spaces.observation} and acts in {spaces.action}"
                f"{hidden_difference(one.observation_space, spaces.observation)}"
                f"{hidden_difference(one.action_space, spaces.action)}: give this seat one that was trained for it"
            )
