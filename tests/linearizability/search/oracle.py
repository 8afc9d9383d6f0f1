"""Oracle for linearizability: tries every order of the operations."""

from linearizability.model import Model, Rejected
from linearizability.operation import UNKNOWN, Operation, Outcome


def is_linearizable(history: list[Operation], model: Model) -> bool:
    """Whether the model permits an order of the operations that respects real time.

    Failed operations are not in the order. An operation of unknown outcome may be in it.
    """
    operations = [op for op in history if op.outcome is not Outcome.FAIL]
    firsts = model.init() if model.nondeterministic else [model.init()]
    return any(_can_complete(operations, state, model) for state in firsts)


def _can_complete(left: list[Operation], state: object, model: Model) -> bool:
    if all(op.outcome is Outcome.INFO for op in left):
        return True
    for number, operation in enumerate(left):
        others = left[:number] + left[number + 1 :]
        # A completion at 20 and an invocation at 20 are concurrent.
        if any(op.outcome is Outcome.OK and op.complete_ns < operation.invoke_ns for op in others):
            continue
        output = operation.output if operation.outcome is Outcome.OK else UNKNOWN
        after = model.step(state, operation.input, output)
        if isinstance(after, Rejected):
            continue
        if any(_can_complete(others, each, model) for each in (after if model.nondeterministic else [after])):
            return True
    return False


def earliest_blocked(history: list[Operation], model: Model) -> set[object]:
    """Find the first time at which the events so far are not linearizable. Return the op_ids that complete then."""
    done = sorted((op for op in history if op.outcome is Outcome.OK), key=lambda op: op.complete_ns)
    for index in range(len(done)):
        now_ns = done[index].complete_ns
        begun = [op for op in history if op.invoke_ns <= now_ns]
        known = [op if op.complete_ns is not None and op.complete_ns <= now_ns else _open(op) for op in begun]
        if not is_linearizable(known, _with_known_outputs(model)):
            return {op.op_id for op in done if op.complete_ns == now_ns}
    return set()


def _open(operation: Operation) -> Operation:
    """Return an operation as if it had not completed. Its input becomes the pair of its input and its later output."""
    if operation.outcome is not Outcome.OK:
        return operation
    return Operation(
        op_id=operation.op_id,
        input=(operation.input, operation.output),
        invoke_ns=operation.invoke_ns,
        outcome=Outcome.INFO,
    )


def _with_known_outputs(model: Model) -> Model:
    """Return a model that also accepts the inputs of `_open`."""

    def step(state: object, given: tuple, output: object) -> object:
        if isinstance(given[0], tuple):
            return model.step(state, *given)
        return model.step(state, given, output)

    return Model(name=model.name, init=model.init, step=step, nondeterministic=model.nondeterministic)
