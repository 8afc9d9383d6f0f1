"""A defect that copies the replaced function changes nothing but its bug."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from chaos.defects.registry import DEFECTS


@pytest.mark.parametrize("name", ["pass-over-flush-messages", "flush-before-the-append"])
def test_a_control_batch_updates_its_producer(name):
    log = MagicMock(log_end_offset=0, recovery_point=0)
    header = SimpleNamespace(producer_id=5, is_control=True, leader_epoch=0, base_offset=0, size_bytes=0)
    DEFECTS[name].replacement(log, header, b"", 0)
    log.producers.update.assert_called_once_with(header)
