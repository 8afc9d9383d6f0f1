"""Plausible mistakes, made by rule: each changes one place of a module's source.

The operators are those that mutation testing has always used (Offutt's sufficient set, and what deletes a statement):
a comparison off by one or turned round, arithmetic, a constant, a condition that always or never holds, `and` for `or`,
a missing `not`, the lesser for the greater, an assignment or a call that is left out.

What nobody would call a bug is left alone: text, annotations, docstrings, imports, assertions, what is raised, `repr`.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_BUILTINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LEFT_ALONE = frozenset({"__repr__", "__str__", "describe"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one place.

    :param module: dotted name.
    :param function: qualified name of the innermost function around the place.
    :param number: of the place in its module, in the order of the text.
    :param nth: among the equal changes of its function, from 1 on.
    """

    module: str
    function: str
    line: int
    operator: str
    before: str
    after: str
    number: int
    nth: int = 1

    @property
    def id(self) -> str:
        """Of no other mutant, and stable while the function's text is."""
        nth = f" (no. {self.nth})" if self.nth > 1 else ""
        return f"{self.module}:{self.function}: {self.before} -> {self.after}{nth}"


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    equal: Counter[tuple[str, str, str]] = Counter()
    found = []
    for number, place in enumerate(_places(ast.parse(source))):
        change = place.function, place.before, place.after
        equal[change] += 1
        found.append(Mutant(module, place.function, place.line, place.operator, *change[1:], number, equal[change]))
    return found


def mutated(source: str, number: int) -> ast.Module:
    """The module with the mutant of that number."""
    tree = ast.parse(source)
    place = next(place for index, place in enumerate(_places(tree)) if index == number)
    place.change()
    return ast.fix_missing_locations(tree)


@dataclass(slots=True)
class _Place:
    """A place that can be changed: `owner.field`, or an element of it, becomes `replacement`."""

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


def _places(tree: ast.Module) -> Iterator[_Place]:
    for statement in tree.body:
        yield from _in_definition(statement, "")


def _in_definition(node: ast.AST, path: str) -> Iterator[_Place]:
    """The functions of a module or class."""
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            yield from _in_definition(statement, f"{path}{node.name}.")
    elif isinstance(node, ast.FunctionDef) and node.name not in _LEFT_ALONE:
        yield from _in_block(node, "body", f"{path}{node.name}")


def _in_block(owner: ast.AST, field: str, function: str) -> Iterator[_Place]:
    statements: list[ast.stmt] = getattr(owner, field)
    for index, statement in enumerate(statements):
        if _is_docstring(statement) or isinstance(statement, ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
            continue
        if (deletion := _deletion(statement)) is not None:
            yield _place(owner, field, index, deletion, function=function, operator="delete-statement")
        yield from _in_statement(statement, function)


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _deletion(statement: ast.stmt) -> ast.stmt | None:
    """What leaves a statement out; a local name stays, since to miss it would be no plausible bug."""
    match statement:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            return ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return ast.Pass()
        case ast.Continue() | ast.Break():
            return ast.Pass()
    return None


def _in_statement(statement: ast.stmt, function: str) -> Iterator[_Place]:
    for field, value in ast.iter_fields(statement):
        if field in ("decorator_list", "annotation", "returns", "args", "type_params"):
            continue
        if field == "test" and isinstance(value, ast.expr):
            yield from _of_condition(statement, value, function)
        if isinstance(value, ast.expr):
            yield from _in_expression(statement, field, None, value, function)
        elif isinstance(value, list):
            yield from _in_list(statement, field, value, function)


def _in_list(owner: ast.AST, field: str, values: list[ast.AST], function: str) -> Iterator[_Place]:
    if values and isinstance(values[0], ast.stmt):
        if isinstance(owner, ast.FunctionDef):
            function = f"{function}.{owner.name}"
        yield from _in_block(owner, field, function)
        return
    for index, value in enumerate(values):
        if isinstance(value, ast.expr):
            yield from _in_expression(owner, field, index, value, function)
        elif isinstance(value, ast.match_case):
            if value.guard is not None:
                yield from _in_expression(value, "guard", None, value.guard, function)
            yield from _in_block(value, "body", function)
        elif isinstance(value, ast.ExceptHandler | ast.withitem | ast.comprehension | ast.keyword):
            yield from _in_part(value, function)


def _in_part(part: ast.AST, function: str) -> Iterator[_Place]:
    for field, value in ast.iter_fields(part):
        if field == "type":
            continue
        if isinstance(value, ast.expr):
            yield from _in_expression(part, field, None, value, function)
        elif isinstance(value, list):
            yield from _in_list(part, field, value, function)


def _of_condition(owner: ast.AST, test: ast.expr, function: str) -> Iterator[_Place]:
    if not isinstance(owner, ast.While):  # which would not end, or never begin
        yield _place(owner, "test", None, ast.Constant(value=True), function=function, operator="always", shown=test)
        yield _place(owner, "test", None, ast.Constant(value=False), function=function, operator="never", shown=test)


def _in_expression(owner: ast.AST, field: str, index: int | None, value: ast.expr, function: str) -> Iterator[_Place]:
    for operator, replacement in _replacements(value):
        yield _place(owner, field, index, replacement, function=function, operator=operator)
    if isinstance(value, ast.Lambda):
        yield from _in_expression(value, "body", None, value.body, function)
        return
    if isinstance(value, ast.JoinedStr):
        return
    if isinstance(value, ast.IfExp):
        yield from _of_condition(value, value.test, function)
    yield from _in_part(value, function)


def _replacements(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match value:
        case ast.Compare(ops=[operation]) if type(operation) in _COMPARISONS:
            changed = copy.copy(value)
            changed.ops = [_COMPARISONS[type(operation)]()]
            yield "comparison", changed
        case ast.BinOp(op=operation) if type(operation) in _ARITHMETIC and not _is_text(value):
            changed_operation = copy.copy(value)
            changed_operation.op = _ARITHMETIC[type(operation)]()
            yield "arithmetic", changed_operation
        case ast.BoolOp(op=operation, values=values):
            swapped = copy.copy(value)
            swapped.op = ast.Or() if isinstance(operation, ast.And) else ast.And()
            yield "and-or", swapped
            for index in range(len(values)):
                rest = values[:index] + values[index + 1 :]
                yield "drop-operand", rest[0] if len(rest) == 1 else ast.BoolOp(op=operation, values=rest)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "drop-not", operand
        case ast.Constant(value=bool() as truth):
            yield "constant", ast.Constant(value=not truth)
        case ast.Constant(value=int() as number):
            yield "constant", ast.Constant(value=number + 1)
        case ast.Call(func=ast.Name(id=name)) if name in _BUILTINS:
            call = copy.copy(value)
            call.func = ast.Name(id=_BUILTINS[name], ctx=ast.Load())
            yield "other-end", call


def _is_text(value: ast.BinOp) -> bool:
    sides = (value.left, value.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _place(
    owner: ast.AST,
    field: str,
    index: int | None,
    replacement: ast.AST,
    *,
    function: str,
    operator: str,
    shown: ast.AST | None = None,
) -> _Place:
    value = getattr(owner, field)
    before = shown or (value if index is None else value[index])
    after = "" if isinstance(replacement, ast.Pass) else ast.unparse(ast.fix_missing_locations(replacement))
    line = getattr(before, "lineno", 0)
    return _Place(owner, field, index, replacement, function, line, operator, ast.unparse(before), after)
