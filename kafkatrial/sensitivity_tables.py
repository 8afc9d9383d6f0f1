"""Defects on a terminal: the list of `--list`, and the summary of a run."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from chaos.defects.defect import Defect
from linearizability.printable import counted, printable
from reports.console import plain_table
from reports.sensitivity import DefectRow, Sensitivity

_TEXT_MAX = 300


def render_list(defects: Sequence[Defect]) -> RenderableType:
    """Return a table with the name, area and first sentence of the story of each defect."""
    table = plain_table("Defect", "Area", "What is wrong")
    for each in defects:
        table.add_row(Text(each.name, "bold"), each.area.value, Text(first_sentence(each.story)))
    return table


def first_sentence(story: str) -> str:
    """Return the first sentence of a story: what the code does wrong."""
    return story.partition(". ")[0].rstrip(".") + "."


def render_sensitivity(results: Sensitivity) -> RenderableType:
    """Return the summary of a run."""
    parts: list[RenderableType] = []
    if results.rows:
        parts += [_rows(results), _catchers(results)]
    parts += [_again(row) for row in results.rows if row.is_caught and row.seed is None]
    parts += [_missed(row) for row in results.missed]
    parts += [
        Text.assemble((" ✘ false alarm ", "bold red"), f"seed {alarm.seed}: {alarm.name}: ", printable(alarm.text))
        for alarm in results.false_alarms
    ]
    parts.append(_last_line(results))
    return Group(*(line for part in parts for line in (Text(), part)))


def _rows(results: Sensitivity) -> RenderableType:
    table = plain_table("Area", "Defect", "Caught by", "Expected", "Trials", "Seconds")
    for column in table.columns[-2:]:
        column.justify = "right"
    area = ""
    for row in results.rows:
        caught = Text(row.caught_by, "green") if row.is_caught else Text("missed", "bold red")
        expected = "yes" if row.is_expected else "no" if row.is_caught else ""
        scripts = f"{row.scripts:,}" if row.scripts else "-"
        table.add_row("" if row.area == area else row.area, row.name, caught, expected, scripts, f"{row.seconds:.1f}")
        area = row.area
    return table


def _catchers(results: Sensitivity) -> RenderableType:
    counts = sorted(results.catchers.items(), key=lambda found: (-found[1], found[0]))
    return Text.assemble(("Detected by  ", "bold"), ", ".join(f"{name} {count}" for name, count in counts))


def _again(row: DefectRow) -> RenderableType:
    """Return the command that reproduces a detection by a requirement or by a saved trial; these have no seed."""
    return Text.assemble((f"{row.caught_by}  ", "bold"), row.reproduce)


def _missed(row: DefectRow) -> RenderableType:
    return Text.assemble(
        (" ✘ missed ", "bold red"),
        (row.name, "bold"),
        f" ({row.place}), after {counted(row.scripts, 'trial')}\n",
        (row.story[:_TEXT_MAX], "dim"),
    )


def _last_line(results: Sensitivity) -> Text:
    text = (
        f"{len(results.caught)} of {len(results.rows)} defects detected in {results.seconds:.0f} s; "
        f"{results.clean_scripts:,} trials on the clean broker, {counted(len(results.false_alarms), 'false alarm')}"
    )
    if not results.complete:
        text += f"; interrupted, {results.planned - len(results.rows)} not tried"
    return Text(text, "bold red" if results.missed or results.false_alarms else "bold")
