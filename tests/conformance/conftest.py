"""Reference brokers for all tests of this folder: one node, and a cluster of three."""

from collections.abc import Iterator

import pytest

from conformance.targets import target_of_requirements
from fixtures.targets.target import Target


@pytest.fixture(scope="session")
def broker() -> Iterator[Target]:
    with target_of_requirements("reference", nodes=1) as target:
        yield target


@pytest.fixture(scope="session")
def cluster() -> Iterator[Target]:
    with target_of_requirements("reference", nodes=3) as target:
        yield target
