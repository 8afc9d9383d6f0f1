"""Order of the test files in parallel processes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import pytest_collection_modifyitems

FILES = {"few": 1, "many": 3, "slow": 2, "some": 2}


class Item:
    def __init__(self, path, number):
        self.path = Path(path)
        self.name = f"{path}{number}"
        self.marker = "slow" if self.name == "slow1" else None

    def get_closest_marker(self, name):
        return self.marker if self.marker == name else None


@pytest.mark.parametrize(
    ("worker", "order"),
    [
        ({"workerinput": {}}, "slow0 slow1 many0 many1 many2 some0 some1 few0"),
        ({}, "few0 many0 many1 many2 slow0 slow1 some0 some1"),
    ],
)
def test_slow_files_then_those_with_many_tests_are_first_in_parallel_processes_alone(worker, order):
    items = [Item(path, number) for path, count in FILES.items() for number in range(count)]
    pytest_collection_modifyitems(SimpleNamespace(**worker), items)
    assert " ".join(item.name for item in items) == order
