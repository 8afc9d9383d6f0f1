"""Clients with steps (`SteppingClients`) reject a cluster that requires TLS or SASL, which they do not support."""

import threading
from types import SimpleNamespace

import pytest

from chaos.live.stepping import SteppingClients
from conformance.trial.phased_clients import Phase
from conformance.trial.trial import Trial
from fixtures.clients.steps import Producer, SendBatches
from fixtures.targets.target import TargetError


def test_a_target_that_requires_tls_or_sasl_is_rejected_in_one_line():
    target = SimpleNamespace(name="secured", transport=object())
    trial = Trial(clients=(Producer((SendBatches(),)),))
    clients = SteppingClients(SimpleNamespace(target=target), trial, lambda _: None, lambda: False)
    with pytest.raises(TargetError, match="secured requires TLS or SASL, which clients with steps do not support"):
        clients.act(Phase.FAULTY, threading.Event())
