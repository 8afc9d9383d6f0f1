"""Imports between modules: there is no cycle, even with imports for type checkers and in functions."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = ("kafkatrial", "chaos", "conformance", "fixtures", "reports", "linearizability", "reference_broker")


def cycle_of(graph):
    """Return the modules of an import cycle, the first one also at the end; None if there is no cycle."""
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_there_is_no_cycle():
    assert cycle_of(grimp.build_graph(*PACKAGES, cache_dir=None)) is None


@pytest.mark.parametrize("length", [2, 3])
def test_a_cycle_is_found(length):
    graph = grimp.ImportGraph()
    names = [f"module{number}" for number in range(length)]
    for importer, imported in zip(names, [*names[1:], names[0]], strict=True):
        graph.add_import(importer=importer, imported=imported)

    assert set(cycle_of(graph)) == set(names)
