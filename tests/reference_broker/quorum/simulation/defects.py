"""Mistakes that have been made in consensus protocols, each with the scenarios of the quorum that are made to show it.

They are the defects of `chaos.defects` that the quorum alone can have. Each shows in a fifth of its scenarios at least,
so that no seed has to be looked for. The clean quorum runs them all in silence.
"""

from collections.abc import Callable, Mapping

from tests.reference_broker.quorum.simulation.scenario import Scenario

SCENARIOS: Mapping[str, Callable[[int], Scenario]] = {
    "commit-an-older-epoch-by-count": Scenario.draw_power_cuts,
    "count-half-as-a-majority": Scenario.draw_power_cuts,
    "win-without-a-majority": Scenario.draw_power_cuts,
    "vote-without-comparing-logs": Scenario.draw,
    "pre-vote-without-comparing-logs": Scenario.draw,
    "vote-twice": Scenario.draw_duels,
    "forget-the-vote": Scenario.draw_duels,
    "forget-the-epoch": Scenario.draw_power_cuts,
    "stand-again-after-a-restart": Scenario.draw_power_cuts,
    "keep-records-that-the-leader-lacks": Scenario.draw_power_cuts,
    "see-no-divergence-of-the-quorum": Scenario.draw_power_cuts,
    "acknowledge-metadata-before-the-flush": Scenario.draw_power_cuts,
    "never-resign": Scenario.draw_silences,
    "drop-the-log-before-the-snapshot": Scenario.draw_installations,
    "keep-the-log-under-a-snapshot": Scenario.draw_power_cuts,
}
"""By the name of the defect."""
