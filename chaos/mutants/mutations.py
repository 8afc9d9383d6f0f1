"""Mutants: each is one change in a function of a module, made by an operator of a set of rules (`rules.py`).

Strings, annotations, docstrings, imports, assertions, `raise` statements, `__repr__`, `__str__` and `describe` are not
changed, because a change there would be no bug. Conditions of `while` loops are not replaced as a whole, because the
loop might never end.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from chaos.mutants.rules import CLASSIC, RULES, Changes, Rules

_LEFT_ALONE = frozenset({"__repr__", "__str__", "describe"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a module's source.

    :param module: dotted name of the module.
    :param function: qualified name of the innermost function around the change.
    :param line: number of the line in the module.
    :param operator: name of the operator.
    :param before: original code.
    :param after: code that replaces it; empty for a deleted statement.
    :param number: index among the possible changes of the module, in the order of the source.
    :param nth: number among the changes of its function with the same `before` and `after`, from 1.
    :param rules: name of the set of rules of the operator.
    """

    module: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    number: int
    nth: int = 1
    rules: str = CLASSIC.name

    @property
    def id(self) -> str:
        """Identifier, unique across all sets of rules. It stays the same as long as the source of the function does."""
        nth = f" (no. {self.nth})" if self.nth > 1 else ""
        operator = "" if self.rules == CLASSIC.name else f" [{self.operator}]"
        return f"{self.module}:{self.function}: {self.before} -> {self.after}{nth}{operator}"


def mutants_of(module: str, source: str, rules: Rules = CLASSIC) -> list[Mutant]:
    """Return every mutant of a module by a set of rules, in the order of the source."""
    equal: Counter[tuple[str, str, str]] = Counter()
    found = []
    for number, place in enumerate(_Walk(rules).places(ast.parse(source))):
        change = place.function, place.before, place.after
        equal[change] += 1
        nth = equal[change]
        found.append(Mutant(module, place.function, place.line, place.operator, *change[1:], number, nth, rules.name))
    return found


def mutated(source: str, number: int, rules: Rules = CLASSIC) -> ast.Module:
    """Return the syntax tree of a module with the change that has this number."""
    tree = ast.parse(source)
    place = next(place for index, place in enumerate(_Walk(rules).places(tree)) if index == number)
    place.change()
    return ast.fix_missing_locations(tree)


def source_of(mutant: Mutant, source: str) -> ast.Module:
    """Return the syntax tree of a mutant.

    :param source: source of the original module, from which the mutant was generated.
    """
    return mutated(source, mutant.number, RULES[mutant.rules])


@dataclass(slots=True)
class _Place:
    """A possible change: `replacement` replaces the node `owner.field`, or its element `index` if that is not None."""

    owner: ast.AST
    field: str
    index: int | None
    replacement: ast.AST
    function: str
    line: int
    operator: str
    before: str
    after: str

    def change(self) -> None:
        if self.index is None:
            setattr(self.owner, self.field, self.replacement)
        else:
            getattr(self.owner, self.field)[self.index] = self.replacement


@dataclass(frozen=True, slots=True)
class _Walk:
    """Walk over the possible changes of a module by a set of rules, in the order of the source."""

    rules: Rules

    def places(self, tree: ast.Module) -> Iterator[_Place]:
        for statement in tree.body:
            yield from self._in_definition(statement, "")

    def _in_definition(self, node: ast.AST, path: str) -> Iterator[_Place]:
        """Yield the possible changes in the function, or in the functions of the class, that this node defines."""
        if isinstance(node, ast.ClassDef):
            for statement in node.body:
                yield from self._in_definition(statement, f"{path}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and node.name not in _LEFT_ALONE:
            yield from self._in_block(node, "body", f"{path}{node.name}")

    def _in_block(self, owner: ast.AST, field: str, function: str) -> Iterator[_Place]:
        statements: list[ast.stmt] = getattr(owner, field)
        for index, statement in enumerate(statements):
            if _is_docstring(statement) or isinstance(statement, ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
                continue
            yield from _changed(owner, field, index, self.rules.of_statement(statement), function)
            yield from self._in_statement(statement, function)

    def _in_statement(self, statement: ast.stmt, function: str) -> Iterator[_Place]:
        for field, value in ast.iter_fields(statement):
            if field in ("decorator_list", "annotation", "returns", "args", "type_params"):
                continue
            if field == "test" and isinstance(value, ast.expr):
                yield from self._in_condition(statement, value, function)
            if isinstance(value, ast.expr):
                yield from self._in_expression(statement, field, None, value, function)
            elif isinstance(value, list):
                yield from self._in_list(statement, field, value, function)

    def _in_list(self, owner: ast.AST, field: str, values: list[ast.AST], function: str) -> Iterator[_Place]:
        if values and isinstance(values[0], ast.stmt):
            if isinstance(owner, ast.FunctionDef):
                function = f"{function}.{owner.name}"
            yield from self._in_block(owner, field, function)
            return
        for index, value in enumerate(values):
            if isinstance(value, ast.expr):
                if isinstance(owner, ast.comprehension):
                    yield from _changed(owner, field, index, self.rules.of_filter(value), function)
                yield from self._in_expression(owner, field, index, value, function)
            elif isinstance(value, ast.match_case):
                if value.guard is not None:
                    yield from _changed(value, "guard", None, self.rules.of_filter(value.guard), function)
                    yield from self._in_expression(value, "guard", None, value.guard, function)
                yield from self._in_block(value, "body", function)
            elif isinstance(value, ast.ExceptHandler | ast.withitem | ast.comprehension | ast.keyword):
                yield from self._in_part(value, function)

    def _in_part(self, part: ast.AST, function: str) -> Iterator[_Place]:
        for field, value in ast.iter_fields(part):
            if field == "type":
                continue
            if isinstance(value, ast.expr):
                yield from self._in_expression(part, field, None, value, function)
            elif isinstance(value, list):
                yield from self._in_list(part, field, value, function)

    def _in_condition(self, owner: ast.AST, test: ast.expr, function: str) -> Iterator[_Place]:
        if not isinstance(owner, ast.While):  # the loop might never end, or never run
            yield from _changed(owner, "test", None, self.rules.of_condition(test), function)

    def _in_expression(
        self, owner: ast.AST, field: str, index: int | None, value: ast.expr, function: str
    ) -> Iterator[_Place]:
        yield from _changed(owner, field, index, self.rules.of_expression(value), function)
        if isinstance(value, ast.Lambda):
            yield from self._in_expression(value, "body", None, value.body, function)
            return
        if isinstance(value, ast.JoinedStr):
            return
        if isinstance(value, ast.IfExp):
            yield from self._in_condition(value, value.test, function)
        yield from self._in_part(value, function)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _changed(owner: ast.AST, field: str, index: int | None, changes: Changes, function: str) -> Iterator[_Place]:
    value = getattr(owner, field)
    before = value if index is None else value[index]
    for operator, replacement in changes:
        after = "" if isinstance(replacement, ast.Pass) else _shown(replacement)
        line = before.lineno
        yield _Place(owner, field, index, replacement, function, line, operator, _shown(before), after)


def _shown(node: ast.AST) -> str:
    """Return the text of a node on one line."""
    text = ast.unparse(ast.fix_missing_locations(node))
    return " ".join(text.split()) if "\n" in text else text
