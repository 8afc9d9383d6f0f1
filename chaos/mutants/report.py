"""Score of a sample of mutants by file, and a table of the survivors.

A survivor is *equivalent* if no correct check could detect it; otherwise it is a *hole* of the suite. A developer
records the decision in `survivors.toml` beside this file. A survivor without a decision counts as a hole.
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
    """The recorded decision about a survivor: `equivalent` or `hole`, and why."""

    verdict: str
    why: str


def load_survivors(path: Path = SURVIVORS) -> Mapping[str, Survivor]:
    """Return the recorded decisions by mutant id."""
    rows = tomllib.loads(path.read_text())["survivor"]
    return {row["id"]: Survivor(row["verdict"], row["why"]) for row in rows}


@dataclass(frozen=True, slots=True)
class Score:
    """Numbers of mutants by result."""

    killed: int
    equivalent: int
    holes: int

    @property
    def share(self) -> float | None:
        """Share of killed mutants among killed ones and holes; null if there are neither."""
        counted = self.killed + self.holes
        return self.killed / counted if counted else None

    def __str__(self) -> str:
        return "none" if self.share is None else f"{self.share:.1%}"


def score(tried: Sequence[Tried], survivors: Mapping[str, Survivor]) -> Score:
    """Return the score of some mutants."""
    killed = sum(1 for each in tried if each.killed_by)
    equivalent = sum(1 for each in tried if not each.killed_by and _is_equivalent(each, survivors))
    return Score(killed, equivalent, len(tried) - killed - equivalent)


def _is_equivalent(each: Tried, survivors: Mapping[str, Survivor]) -> bool:
    known = survivors.get(each.mutant.id)
    return known is not None and known.verdict == _EQUIVALENT


def table_by_file(tried: Sequence[Tried], survivors: Mapping[str, Survivor]) -> Table:
    """Return the table of scores: of each module, and of all modules together."""
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
    table.add_row(name, str(found.killed), str(found.equivalent), str(found.holes), str(found))


def table_of_survivors(tried: Sequence[Tried], survivors: Mapping[str, Survivor]) -> Table:
    """Return the table of survivors with their recorded decisions."""
    table = Table("Mutant", "Verdict", "Why", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for each in tried:
        if not each.killed_by:
            known = survivors.get(each.mutant.id, Survivor("undecided", ""))
            table.add_row(f"{each.mutant.id} (line {each.mutant.line})", known.verdict, known.why)
    return table


def killers(tried: Sequence[Tried]) -> list[tuple[str, int]]:
    """Return the names of violations and errors, with the number of mutants that each killed, highest number first."""
    killed = (each.killed_by for each in tried if each.killed_by)
    return Counter(killed_by.partition(" in ")[0].partition(":")[0] for killed_by in killed).most_common()
