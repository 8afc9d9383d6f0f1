"""Mutation operators: two sets of rules for one change in a module's source.

`CLASSIC` has the usual operators of mutation testing (Offutt's sufficient set, and statement deletion): a comparison
that is off by one or reversed; another arithmetic operator or constant; a condition that is always or never true; `and`
for `or`; `min` for `max`; `any` for `all`; a missing operand, `not`, assignment, call, `continue` or `break`.

`OMISSIONS` has bugs that reviewers overlook: a missing operand, term, guard, branch, case, filter, bound or statement;
a negated condition or predicate; a slice that is off by one; `min` for `max`.

The option `--rules` of `python -m chaos.mutants` selects a set. The samples of the two sets are independent.
"""

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)
Changes = Iterator[tuple[str, ast.AST]]
"""Changes of one node: for each, the operator's name and the node that replaces it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A set of mutation operators.

    :ivar of_statement: changes of a statement. A replacement `ast.Pass` means that the statement is deleted.
    :ivar of_condition: changes of the condition of an `if` statement or expression.
    :ivar of_expression: changes of any expression.
    :ivar of_filter: changes of the condition of a comprehension, or of the guard of a `case`.
    """

    name: str
    of_statement: Callable[[ast.stmt], Changes]
    of_condition: Callable[[ast.expr], Changes]
    of_expression: Callable[[ast.expr], Changes]
    of_filter: Callable[[ast.expr], Changes]


_OFF_BY_ONE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
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
_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    **_OFF_BY_ONE,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
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
_ENDS: Mapping[str, str] = {"min": "max", "max": "min"}
_QUANTIFIERS: Mapping[str, str] = {"any": "all", "all": "any"}


# --- classic


def _classic_statement(statement: ast.stmt) -> Changes:
    if _is_effect(statement) or isinstance(statement, ast.Continue | ast.Break):
        yield "delete-statement", ast.Pass()


def _is_effect(statement: ast.stmt) -> bool:
    """Whether a statement is a call, `del`, `+=`, or an assignment to an attribute or an element.

    Only such statements are deleted. Without an assignment to a local name, the code that reads the name would fail.
    """
    match statement:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def _classic_condition(_: ast.expr) -> Changes:
    yield "always", ast.Constant(value=True)
    yield "never", ast.Constant(value=False)


def _classic_expression(value: ast.expr) -> Changes:
    match value:
        case ast.Compare(ops=[operation]) if type(operation) in _OFF_BY_ONE:
            yield "comparison", _with(value, ops=[_OFF_BY_ONE[type(operation)]()])
        case ast.BinOp(op=operation) if type(operation) in _ARITHMETIC and not _is_text(value):
            yield "arithmetic", _with(value, op=_ARITHMETIC[type(operation)]())
        case ast.BoolOp(op=operation):
            yield "and-or", _with(value, op=ast.Or() if isinstance(operation, ast.And) else ast.And())
            yield from _dropped_operands(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "drop-not", operand
        case ast.Constant(value=bool() as truth):
            yield "constant", ast.Constant(value=not truth)
        case ast.Constant(value=int() as number):
            yield "constant", ast.Constant(value=number + 1)
        case ast.Call():
            yield from _other_builtin(value, {**_ENDS, **_QUANTIFIERS})


def _dropped_operands(value: ast.BoolOp) -> Changes:
    for index in range(len(value.values)):
        rest = value.values[:index] + value.values[index + 1 :]
        yield "drop-operand", rest[0] if len(rest) == 1 else ast.BoolOp(op=value.op, values=rest)


def _other_builtin(call: ast.Call, others: Mapping[str, str]) -> Changes:
    match call.func:
        case ast.Name(id=name) if name in others:
            yield "other-end", _with(call, func=ast.Name(id=others[name], ctx=ast.Load()))


def _is_text(value: ast.BinOp) -> bool:
    sides = (value.left, value.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _none(_: ast.AST) -> Changes:
    return iter(())


# --- omissions


def _omitted_statement(statement: ast.stmt) -> Changes:
    match statement:
        case ast.If(body=[*_, ast.Return() | ast.Raise() | ast.Continue() | ast.Break()], orelse=[]):
            yield "drop-guard", ast.Pass()
        case ast.If(orelse=[]) | ast.For(orelse=[]) | ast.Expr(value=ast.Yield() | ast.YieldFrom()):
            yield "drop-statement", ast.Pass()
        case ast.If(orelse=[_, *_]):
            yield "drop-else", _with(statement, orelse=[])
        case ast.Match(cases=[_, _, *_] as cases):
            for index in range(len(cases)):
                yield "drop-case", _with(statement, cases=cases[:index] + cases[index + 1 :])
        case ast.Return(value=ast.Compare() | ast.UnaryOp(op=ast.Not()) as predicate):
            yield "negate-predicate", _with(statement, value=_negated(predicate))
        case _ if _is_effect(statement):
            yield "drop-statement", ast.Pass()


def _negated_condition(test: ast.expr) -> Changes:
    yield "negate-condition", _negated(test)


def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(ops=[operation]) if type(operation) in _OPPOSITE:
            return _with(test, ops=[_OPPOSITE[type(operation)]()])
    return ast.UnaryOp(op=ast.Not(), operand=test)


def _omitted_expression(value: ast.expr) -> Changes:
    match value:
        case ast.BoolOp():
            yield from _dropped_operands(value)
        case ast.BinOp(op=operation, left=left) if type(operation) in _ARITHMETIC and not _is_text(value):
            yield "drop-term", left
        case ast.Call(func=ast.Name(id="min" | "max"), args=args, keywords=keywords):
            yield from _other_builtin(value, _ENDS)
            if len(args) > 1 and not keywords:
                for index in range(len(args)):
                    rest = args[:index] + args[index + 1 :]
                    yield "drop-bound", rest[0] if len(rest) == 1 else _with(value, args=rest)
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None:
                yield "slice", _with(value, lower=_moved(lower, ast.Add()))
            if upper is not None:
                yield "slice", _with(value, upper=_moved(upper, ast.Sub()))


def _moved(bound: ast.expr, direction: ast.operator) -> ast.expr:
    return ast.BinOp(left=bound, op=direction, right=ast.Constant(value=1))


def _dropped_filter(_: ast.expr) -> Changes:
    yield "drop-filter", ast.Constant(value=True)


def _with(node: _Node, **fields: object) -> _Node:
    """Return a copy of a node with other values of these fields. The original does not change."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


CLASSIC = Rules("classic", _classic_statement, _classic_condition, _classic_expression, _none)
OMISSIONS = Rules("omissions", _omitted_statement, _negated_condition, _omitted_expression, _dropped_filter)
RULES: Mapping[str, Rules] = MappingProxyType({rules.name: rules for rules in (CLASSIC, OMISSIONS)})
