"""Mutants: those of each operator, their samples, their execution, and the survivors on record.

Each mutant compiles and differs from the source in one place. A source always has the same mutants.
"""

import ast
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

from chaos.mutants.mutations import mutants_of, mutated, source_of
from chaos.mutants.report import SURVIVORS, Survivor, load_survivors, score
from chaos.mutants.rules import CLASSIC, OMISSIONS, RULES
from chaos.mutants.sample import all_mutants, sample
from chaos.mutants.trial import Tried

ROOT = Path(__file__).parents[3]
SOURCE = textwrap.dedent('''
    """A module."""

    LIMIT = 7


    def keeps(self, offset: int = 0) -> bool:
        """Whether it does."""
        if offset < self.end and not self.closed:
            self.count += 1
            return True
        return min(offset, 3) in self.kept


    def __repr__(self) -> str:
        return f"{self.end + 1}"
''')


@cache
def core_mutants(rules):
    """Return all mutants of the core by a set of rules, which takes seconds."""
    return list(all_mutants(ROOT, rules=RULES[rules]))


def changes(source=SOURCE, rules=CLASSIC):
    return {(mutant.before, mutant.after) for mutant in mutants_of("module", source, rules)}


def omissions(body):
    """Return operator, text before and text after of each mutant of a function's body by the rules `OMISSIONS`."""
    source = "def f(self):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return {(mutant.operator, mutant.before, mutant.after) for mutant in mutants_of("module", source, OMISSIONS)}


def test_each_operator_makes_its_mutant():
    assert changes() == {
        ("offset < self.end and (not self.closed)", "True"),
        ("offset < self.end and (not self.closed)", "False"),
        ("offset < self.end and (not self.closed)", "offset < self.end or not self.closed"),
        ("offset < self.end and (not self.closed)", "not self.closed"),
        ("offset < self.end and (not self.closed)", "offset < self.end"),
        ("offset < self.end", "offset <= self.end"),
        ("not self.closed", "self.closed"),
        ("self.count += 1", ""),
        ("1", "2"),
        ("True", "False"),
        ("min(offset, 3)", "max(offset, 3)"),
        ("3", "4"),
        ("min(offset, 3) in self.kept", "min(offset, 3) not in self.kept"),
    }


@pytest.mark.parametrize("body", ["return 1", "raise KeyError", "continue", "break"])
def test_a_guard_is_dropped(body):
    guard = f"if self.closed: {body}"
    found = omissions(f"for _ in self.parts:\n    if self.closed:\n        {body}\n    self.append()")
    assert ("drop-guard", guard, "") in found
    assert ("negate-condition", "self.closed", "not self.closed") in found


@pytest.mark.parametrize(
    "statement",
    [
        "self.count = 0",
        "self.count += 1",
        "self.flush()",
        "del self.parts[0]",
        "yield self.count",
        "if self.closed: self.flush()",
        "for part in self.parts: self.flush(part)",
    ],
)
def test_a_statement_that_is_there_for_its_effect_is_dropped(statement):
    assert ("drop-statement", statement, "") in omissions(statement)


def test_a_local_assignment_and_a_return_value_are_not_dropped():
    assert omissions("count = self.count\nreturn count") == set()


def test_a_branch_is_dropped():
    found = omissions("if self.closed:\n    self.a()\nelif self.open:\n    self.b()")
    assert ("drop-statement", "if self.open: self.b()", "") in found
    assert (
        "drop-else",
        "if self.closed: self.a() elif self.open: self.b()",
        "if self.closed: self.a()",
    ) in found


def test_each_case_of_a_match_and_its_guard_are_dropped():
    found = omissions("match self.state:\n    case 1 if self.open:\n        self.a()\n    case _:\n        self.b()")
    text = "match self.state: case 1 if self.open: self.a() case _: self.b()"
    assert ("drop-case", text, "match self.state: case _: self.b()") in found
    assert ("drop-case", text, "match self.state: case 1 if self.open: self.a()") in found
    assert ("drop-filter", "self.open", "True") in found
    assert omissions("match self.state:\n    case _:\n        pass") == set()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a and b or c", {("drop-operand", rest) for rest in ("a", "b", "c", "a and b")}),
        ("min(a, b)", {("other-end", "max(a, b)"), ("drop-bound", "a"), ("drop-bound", "b")}),
        ("max(parts, default=0)", {("other-end", "min(parts, default=0)")}),
        ("a + b", {("drop-term", "a")}),
        ("'text' + b", set()),
        ("a[b:c]", {("slice", "b + 1:c"), ("slice", "b:c - 1")}),
        ("a[:]", set()),
        ("[b for b in a if b.open]", {("drop-filter", "True")}),
        ("a if b else c", {("negate-condition", "not b")}),
        ("any(a)", set()),
    ],
)  # fmt: skip
def test_part_of_an_expression_is_dropped(expression, expected):
    found = {(operator, after) for operator, _, after in omissions(f"x = {expression}")}
    assert found == expected


@pytest.mark.parametrize(
    ("predicate", "negated"),
    [
        ("a < b", "a >= b"),
        ("a == b", "a != b"),
        ("not a", "a"),
        ("a < b < c", "not a < b < c"),
        ("a in b", "a not in b"),
    ],
)
def test_a_predicate_is_negated(predicate, negated):
    assert ("negate-predicate", f"return {predicate}", f"return {negated}") in omissions(f"return {predicate}")
    assert ("negate-condition", predicate, negated) in omissions(f"if {predicate}:\n    pass")


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_a_mutant_differs_in_one_place_and_can_be_compiled(rules):
    original = ast.unparse(ast.parse(SOURCE))
    mutants = mutants_of("module", SOURCE, rules)
    assert mutants
    for mutant in mutants:
        text = ast.unparse(source_of(mutant, SOURCE))
        compile(text, "module", "exec")
        assert text != original
        assert text == ast.unparse(mutated(SOURCE, mutant.number, rules))


def test_the_core_has_thousands_of_mutants_and_a_seed_always_selects_the_same_ones():
    mutants = core_mutants("classic")
    assert len(mutants) > 5000
    assert len({mutant.id for mutant in mutants}) == len(mutants)
    assert sample(mutants, 200, 1) == sample(list(all_mutants(ROOT)), 200, 1)
    assert sample(mutants, 200, 1) != sample(mutants, 200, 2)


def test_each_set_of_rules_has_its_own_sample_and_ids():
    ids = {name: {mutant.id for mutant in core_mutants(name)} for name in RULES}
    assert min(map(len, ids.values())) > 4000
    assert not ids["classic"] & ids["omissions"]
    assert {mutant.rules for mutant in core_mutants("classic")} == {"classic"}


def test_a_process_that_installs_a_mutant_runs_it():
    mutants = mutants_of(
        "reference_broker.core.topic_names", (ROOT / "reference_broker/core/topic_names.py").read_text()
    )
    program = """
        import sys
        from chaos.mutants.loading import install
        from chaos.mutants.mutations import mutants_of
        source = open("reference_broker/core/topic_names.py").read()
        mutant = mutants_of("reference_broker.core.topic_names", source)[int(sys.argv[1])]
        install(mutant)
        import reference_broker.core.topic_names as module
        import inspect
        print([function.__code__.co_code.hex() for _, function in inspect.getmembers(module, inspect.isfunction)])
        print([function.__code__.co_consts for _, function in inspect.getmembers(module, inspect.isfunction)])
    """
    outputs = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), str(number)],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout
        for number in range(min(3, len(mutants)))
    }  # fmt: skip
    assert len(outputs) > 1


def test_an_unreviewed_survivor_is_a_hole():
    one, other, killed = (Tried(mutant, "", 1.0, 1) for mutant in mutants_of("module", SOURCE)[:3])
    verdicts = [one, other, Tried(killed.mutant, "lost-write", 1.0, 1)]
    found = score(verdicts, {one.mutant.id: Survivor("equivalent", "no test can detect it")})
    assert (found.killed, found.equivalent, found.holes) == (1, 1, 1)
    assert found.share == pytest.approx(0.5)


def test_every_survivor_on_record_is_a_mutant_of_this_source():
    known = {mutant.id for name in RULES for mutant in core_mutants(name)}
    for id_, survivor in load_survivors(SURVIVORS).items():
        assert id_ in known
        assert survivor.verdict in {"equivalent", "hole"}
        assert survivor.why


def test_no_mutant_has_no_score():
    assert str(score([], {})) == "none"
