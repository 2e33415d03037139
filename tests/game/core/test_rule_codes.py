from typing import get_args, get_type_hints

import pytest

from snake_pz import Rules
from snake_pz.core.rule_codes import RuleCodes, rule_codes

HINTS = get_type_hints(RuleCodes, include_extras=True)
CODES = {name: kind.__metadata__[0] for name, kind in HINTS.items() if hasattr(kind, "__metadata__")}
VALUES = {name: get_args(kind) for name, kind in get_type_hints(Rules).items() if isinstance(getattr(Rules(), name, None), str)}


def test_every_rule_with_named_values_has_codes_of_these_names() -> None:
    assert {name: sorted(values) for name, values in VALUES.items()} == {
        name: sorted(code.name.lower() for code in codes) for name, codes in CODES.items()
    }


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in VALUES.items() for value in values])
def test_a_named_value_becomes_its_code(name: str, value: str) -> None:
    code = getattr(rule_codes(Rules(start_length=1).replace(**{name: value})), name)
    assert CODES[name](code).name.lower() == value
    assert type(code) is int


def test_absent_limits_are_zero_and_the_rest_is_copied() -> None:
    codes = rule_codes(Rules(width=9, max_length=None, max_turns=None, food_chance=1, hunger="none", hazard_damage=0))
    assert (codes.width, codes.max_length, codes.max_turns, codes.uses_health) == (9, 0, 0, False)
    assert type(codes.food_chance) is float
