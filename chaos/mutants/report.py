"""The score of a sample of mutants: by file, and the survivors with what was found out about each.

A survivor is a *hole* of the suite, or *equivalent*: its behaviour is that of the original. A person decides which,
in `survivors.toml` beside this file; one without a decision counts as a hole.
"""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from chaos.mutants.trial import Tried

SURVIVORS = Path(__file__).with_name("survivors.toml")
_EQUIVALENT = "equivalent"


@dataclass(frozen=True, slots=True)
class Survivor:
    """What was found out about a mutant that survived."""

    verdict: str
    why: str


def load_survivors(path: Path = SURVIVORS) -> Mapping[str, Survivor]:
    """By the mutant's id."""
    rows = tomllib.loads(path.read_text())["survivor"]
    return {row["id"]: Survivor(row["verdict"], row["why"]) for row in rows}


@dataclass(frozen=True, slots=True)
class Score:
    """Of some mutants."""

    killed: int
    equivalent: int
    holes: int

    @property
    def share(self) -> float:
        """Of those that are not equivalent, how many were killed; 1 where there are none."""
        counted = self.killed + self.holes
        return self.killed / counted if counted else 1.0


def score(tried: Sequence[Tried], survivors: Mapping[str, Survivor]) -> Score:
    """Count them."""
    killed = sum(1 for each in tried if each.killed_by)
    equivalent = sum(1 for each in tried if not each.killed_by and _is_equivalent(each, survivors))
    return Score(killed, equivalent, len(tried) - killed - equivalent)


def _is_equivalent(each: Tried, survivors: Mapping[str, Survivor]) -> bool:
    known = survivors.get(each.mutant.id)
    return known is not None and known.verdict == _EQUIVALENT


def table_by_file(tried: Sequence[Tried], survivors: Mapping[str, Survivor]) -> Table:
    """The score of each module, and of all."""
    table = Table("Module", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for heading in ("Killed", "Equivalent", "Holes", "Score"):
        table.add_column(heading, justify="right")
    for module in sorted({each.mutant.module for each in tried}):
        _add_row(table, module, [each for each in tried if each.mutant.module == module], survivors)
    table.add_section()
    _add_row(table, "all", tried, survivors)
    return table


def _add_row(table: Table, name: str, tried: Sequence[Tried], survivors: Mapping[str, Survivor]) -> None:
    found = score(tried, survivors)
    table.add_row(name, str(found.killed), str(found.equivalent), str(found.holes), f"{found.share:.0%}")


def table_of_survivors(tried: Sequence[Tried], survivors: Mapping[str, Survivor]) -> Table:
    """Each with what was found out about it."""
    table = Table("Mutant", "Verdict", "Why", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for each in tried:
        if not each.killed_by:
            known = survivors.get(each.mutant.id, Survivor("not looked at", ""))
            table.add_row(f"{each.mutant.id} (line {each.mutant.line})", known.verdict, known.why)
    return table


def killers(tried: Sequence[Tried]) -> list[tuple[str, int]]:
    """What killed how many, the most deadly first."""
    killed = (each.killed_by for each in tried if each.killed_by)
    return Counter(killed_by.partition(" in ")[0].partition(":")[0] for killed_by in killed).most_common()
