"""Reference brokers for all tests of this folder: one node, and a cluster of three."""

from collections.abc import Iterator

import pytest

from fixtures.targets.catalogue import start_target
from fixtures.targets.target import Target


@pytest.fixture(scope="session")
def broker() -> Iterator[Target]:
    with start_target("reference", nodes=1) as target:
        yield target


@pytest.fixture(scope="session")
def cluster() -> Iterator[Target]:
    with start_target("reference", nodes=3) as target:
        yield target
