"""Every defect replaces one existing function, has a description, and leaves no trace."""

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from chaos.defects.defect import Area
from chaos.defects.live.registry import LIVE_DEFECTS
from chaos.defects.registry import DEFECTS, UnknownDefectError, defect
from conformance.registry import REQUIREMENTS
from linearizability.anomalies.catalogue import DEFINITIONS

ROOT = Path(__file__).parents[3]
INVARIANTS = ROOT / "reference_broker" / "simulation" / "invariants"
ALL = {**DEFECTS, **LIVE_DEFECTS}
OF_A_ROUND = {"node-ended", "replicas-differ", "not-recovered"}
"""Names of violations, other than anomalies, that a report of `kafkatrial chaos` can contain."""


def test_there_are_at_least_sixty_defects_and_four_in_every_area():
    by_area = {area: [each for each in ALL.values() if each.area is area] for area in Area}
    assert len(ALL) >= 60
    assert min(map(len, by_area.values())) >= 4


def test_a_defect_is_in_place_only_while_it_is_seeded():
    for each in ALL.values():
        before = vars(each.owner)[each.attribute]
        assert before is not each.replacement, each.name
        with each.seeded():
            assert vars(each.owner)[each.attribute] is each.replacement, each.name
        assert vars(each.owner)[each.attribute] is before, each.name


def test_a_defect_is_removed_after_an_error():
    each = next(iter(ALL.values()))
    before = vars(each.owner)[each.attribute]
    with pytest.raises(ZeroDivisionError), each.seeded():
        raise ZeroDivisionError
    assert vars(each.owner)[each.attribute] is before


def test_each_replacement_has_the_kind_and_parameters_of_the_original():
    for each in ALL.values():
        original, replacement = vars(each.owner)[each.attribute], each.replacement
        assert isinstance(replacement, property) is isinstance(original, property), each.name
        assert isinstance(replacement, staticmethod) is isinstance(original, staticmethod), each.name
        assert accepts_any(replacement) or names_of(replacement) == names_of(original), each.name


def test_each_replaced_function_is_called_by_its_own_module():
    """A module that imports the function by name keeps the original, and the replacement has no effect there."""
    for each in ALL.values():
        if isinstance(each.owner, ModuleType):
            assert each.attribute in names_loaded_in(each.owner), each.name


def test_each_defect_has_a_story():
    for each in ALL.values():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", each.name)
        assert 2 <= len(re.findall(r"[.?!](?: |$)", each.story)) <= 5, each.name
        assert all(re.fullmatch(r"KAFKA-\d+|KIP-\d+|https://\S+", source) for source in each.sources), each.name


def test_expected_violations_exist():
    for each in ALL.values():
        assert each.expected, each.name
        assert set(each.expected) <= known_violations(), each.name


def test_a_third_of_the_defects_cite_sources():
    assert sum(bool(each.sources) for each in ALL.values()) * 3 >= len(ALL)


def test_the_core_does_not_mention_defects():
    for path in (ROOT / "reference_broker").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "chaos" not in text
        assert not [name for name in ALL if name in text or name.replace("-", "_") in text]


def test_an_unknown_name_is_an_error_of_one_line():
    with pytest.raises(UnknownDefectError, match="there is no defect 'nosuch'"):
        defect("nosuch")


@cache
def known_violations() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in INVARIANTS.glob("*.py")]
    # A module header has a table with the invariants in its first column, or its first line names the only invariant.
    named = r"^\| `([a-z-]+)` *\||\A\"\"\".*: (?:the invariant )?`([a-z-]+)`\.$"
    invariants = {name for text in texts for found in re.findall(named, text, re.MULTILINE) for name in found if name}
    requirements = {requirement.id for requirement in REQUIREMENTS}
    anomalies = {anomaly.name for anomaly in DEFINITIONS}
    return invariants | requirements | anomalies | {"exception", "not-converged"} | OF_A_ROUND


@cache
def names_loaded_in(module: ModuleType) -> set[str]:
    tree = ast.parse(inspect.getsource(module))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def names_of(function: object) -> list[str]:
    return list(inspect.signature(inner(function)).parameters)


def accepts_any(function: object) -> bool:
    kinds = {parameter.kind for parameter in inspect.signature(inner(function)).parameters.values()}
    return inspect.Parameter.VAR_KEYWORD in kinds or inspect.Parameter.VAR_POSITIONAL in kinds


def inner(function: object) -> object:
    return getattr(function, "fget", None) or getattr(function, "__func__", function)
