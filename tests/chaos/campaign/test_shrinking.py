"""A trial with a known cause shrinks to that cause, with plain values."""

from itertools import count as count_from
from itertools import islice

from chaos.campaign.shrinking import smallest
from chaos.simulation.seeds import trial_of_seed
from conformance.trial.trial import Topic, Trial
from fixtures.clients.steps import Producer, SendBatches
from fixtures.faults import Kill, Role, Timed


def has_many_batches_and_a_long_kill(trial):
    """Whether a producer sends seven batches or more in one step, and a node is killed for 1,234 ms or longer."""
    batches = any(
        isinstance(step, SendBatches) and step.batches >= 7
        for client in trial.clients
        if isinstance(client, Producer)
        for step in client.steps
    )
    return batches and any(isinstance(timed.fault, Kill) and timed.for_ms >= 1_234 for timed in trial.schedule)


def small(trial, violates=has_many_batches_and_a_long_kill, *, runs_max=400, time_is_up=lambda: False):
    return smallest(trial, violates, lambda runs: runs < runs_max and not time_is_up())


def violating_seeds(count):
    return list(
        islice((seed for seed in count_from(0) if has_many_batches_and_a_long_kill(trial_of_seed(seed))), count)
    )


def test_only_steps_that_the_violation_needs_are_left():
    for seed in violating_seeds(3):
        found = small(trial_of_seed(seed))
        node = found.trial.schedule[0].fault.node
        topic = next(step.topic for step in found.trial.clients[0].steps)
        assert found.trial == Trial(
            clients=(Producer(steps=(SendBatches(batches=7, topic=topic),)),),
            topics=(Topic(name=topic),) if topic != "a" else (Topic(),),
            schedule=(Timed(at_ms=0, fault=Kill(node), for_ms=found.trial.schedule[0].for_ms),),
        )
        assert 1_234 <= found.trial.schedule[0].for_ms < 2_468
        assert found.runs < 150


def test_a_smaller_trial_can_be_read_again():
    """The default is a valid name of either topic, but a trial with two topics of this name is invalid."""
    trial = Trial(topics=(Topic("x", partitions=2), Topic("y")))
    found = small(trial, lambda candidate: len(candidate.topics) == 2)
    assert found.trial == Trial(topics=(Topic(), Topic("y")))


def test_no_trial_runs_twice_and_the_limit_of_runs_holds():
    trials = []

    def violates(trial):
        trials.append(trial)
        return has_many_batches_and_a_long_kill(trial)

    found = small(trial_of_seed(violating_seeds(1)[0]), violates, runs_max=20)
    assert len(trials) == len(set(trials)) == found.runs <= 20
    assert has_many_batches_and_a_long_kill(found.trial)


def test_the_result_at_the_timeout_still_violates():
    trial = trial_of_seed(violating_seeds(1)[0])
    assert small(trial, time_is_up=lambda: True).trial == trial
    runs = iter(range(10))
    found = small(trial, time_is_up=lambda: next(runs, None) is None)
    assert found.runs == 10
    assert found.trial != trial
    assert has_many_batches_and_a_long_kill(found.trial)


def test_a_trial_without_a_smaller_one_that_violates_is_the_result():
    trial = trial_of_seed(violating_seeds(1)[0])
    assert small(trial, lambda _: False).trial == trial


def test_a_trial_always_shrinks_to_the_same_trial():
    trial = trial_of_seed(violating_seeds(2)[1])
    assert small(trial) == small(trial)


def test_a_role_that_is_needed_stays():
    trial = Trial(schedule=tuple(Timed(at, Kill(role), 10) for at, role in enumerate((Role.LEADER, Role.FOLLOWER))))
    found = small(trial, lambda each: any(timed.fault.node is Role.FOLLOWER for timed in each.schedule))
    assert found.trial == Trial(schedule=(Timed(0, Kill(Role.FOLLOWER)),))
