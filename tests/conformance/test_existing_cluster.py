"""Requirements on an existing cluster: links are cut, a broken link is no violation, and no topic is left."""

from contextlib import ExitStack, suppress

import pytest

from conformance.concurrent.requirements import REQUIREMENTS as CONCURRENT
from conformance.concurrent.run import HistoryRun
from conformance.concurrent.trial_context import ScriptNotRunError
from conformance.engine import run_requirements
from conformance.events import RequirementJudged
from conformance.profiles import Profile
from conformance.registry import REQUIREMENTS
from conformance.sequential.connections import TargetDown
from conformance.sequential.session import Session
from conformance.sequential.steps import Batch, CreateTopic, Fetch, Produce, Record, Script
from conformance.trial.trial import Topic, Trial
from fixtures.targets.catalogue import parse_target
from fixtures.targets.controls import Direction
from linearizability.history.reader import open_history
from linearizability.judgement import Verdict
from tests.admin import topics_of
from tests.conformance.tampering_proxy import TamperingProxy, api
from tests.waiting import wait_until

pytestmark = pytest.mark.toxiproxy

FEW = Profile("few", scripts_max=2, shrink_seconds=0.5)
RETRIES = "idempotence/no-duplicates-on-retry"


@pytest.fixture(scope="module", params=["reference", pytest.param("apache-kafka:4.3.1", marks=pytest.mark.java)])
def cluster(request):
    with parse_target(request.param, nodes=1, mesh=False) as cluster:
        yield cluster


def existing(cluster, **options):
    return parse_target(f"bootstrap:{cluster.bootstrap_servers}", **options)


def await_no_topic_but(cluster, before):
    """Wait until the cluster has no other topics: Apache Kafka responds to DeleteTopics before the deletion ends.

    For the same reason, the topics before may include one that is being deleted.
    """
    wait_until(lambda: topics_of(cluster) <= before)


def judged(target, ids, run_dir):
    chosen = [each for each in (*REQUIREMENTS, *CONCURRENT) if each.id in ids]
    events = run_requirements([target], dict.fromkeys(chosen), seed=7, profile=FEW, run_dir=run_dir)
    return [event.finding for event in events if isinstance(event, RequirementJudged)]


def test_requirements_cut_links_and_leave_no_topic(cluster, tmp_path):
    before = topics_of(cluster)
    (finding,) = judged(existing(cluster), {RETRIES}, tmp_path)
    assert finding.verdict is Verdict.OK
    (history,) = {path.parent for path in tmp_path.rglob("run.json")}
    assert "cut" in open_history(history).table("faults")["kind"].to_pylist()
    await_no_topic_but(cluster, before)


def test_a_broken_link_is_no_violation(cluster, tmp_path, monkeypatch):
    """The link is repaired before the next requirement is checked, so that requirement is ok."""
    monkeypatch.setattr("conformance.engine.shares_a_cluster", lambda _: False)  # check one requirement at a time
    target, faults = existing(cluster), ExitStack()

    def start():
        type(target).start(target)
        if not (tmp_path / "broken").exists():
            (tmp_path / "broken").mkdir()
            faults.enter_context(target.links.reject_connections(Direction("client", target.nodes[0].id)))

    def stop():
        faults.close()
        type(target).stop(target)

    target.start, target.stop = start, stop
    broken, repaired = judged(target, {"produce/offsets-are-dense", "produce/corrupt-batch-is-rejected"}, tmp_path)
    assert broken.verdict is Verdict.UNKNOWN
    assert "faults of links are in force: client-" in broken.reason
    assert repaired.verdict is Verdict.OK


def test_a_script_that_fails_leaves_no_topic(cluster, tmp_path):
    before = topics_of(cluster)
    with existing(cluster) as target:
        with suppress(KeyError), HistoryRun(target, tmp_path / "first", 1) as run:
            run.run(Trial(topics=(Topic(replication_factor=1),)))
            assert topics_of(cluster) - before
            raise KeyError
        await_no_topic_but(cluster, before)
        with pytest.raises(ScriptNotRunError), HistoryRun(target, tmp_path / "second", 1) as run:
            run.run(Trial(topics=(Topic(replication_factor=9),)))
    await_no_topic_but(cluster, before)


def test_an_interrupted_run_leaves_no_topic(cluster, tmp_path):
    """The target and its links have stopped, but the cluster still responds."""
    before = topics_of(cluster)
    target = existing(cluster)

    def stop(request, forward):
        response = forward(request)
        if api(request) == "Produce":
            target.stop()
        return response

    with target, HistoryRun(target, tmp_path / "run", 1) as run:
        run.run(Trial(topics=(Topic(replication_factor=1),)))
        with TamperingProxy(target, stop) as proxy:
            proxy.delete_topics, proxy.warning = target.delete_topics, target.warning
            with pytest.raises(TargetDown), Session(proxy, "interrupted") as session:
                session.run(Script((CreateTopic(), Produce((Batch((Record(b"x"),)),)), Fetch())))
        wait_until(lambda: len(topics_of(cluster) - before) == 1)
    await_no_topic_but(cluster, before)
