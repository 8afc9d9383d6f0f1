"""The requirement registry as JSON, as Markdown and as a table on a terminal."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.table import Column, Table
from rich.text import Text

from conformance.requirements.requirement import Requirement
from reports.console import plain_table


def as_objects(requirements: Sequence[Requirement]) -> list[dict[str, object]]:
    """Return one object per requirement; `since` and `until` are Apache Kafka versions or null."""
    return [
        {
            "id": requirement.id,
            "area": requirement.area,
            "level": str(requirement.level),
            "text": requirement.text,
            "sources": [{"title": source.title, "url": source.url} for source in requirement.sources],
            "needs": sorted(map(str, requirement.needs)),
            "nodes_min": requirement.nodes_min,
            "since": requirement.since,
            "until": requirement.until,
        }
        for requirement in requirements
    ]


def render_table(requirements: Sequence[Requirement]) -> Table:
    """Return the requirements as a table for a terminal."""
    table = plain_table(Column("Requirement", no_wrap=True), Column("Level", style="dim"), "Promise and source")
    for requirement in requirements:
        sources = "; ".join(source.title for source in requirement.sources)
        promise = Text.assemble(requirement.text, "\n", (sources, "dim"))
        table.add_row(requirement.id, str(requirement.level), promise)
    return table


def render_markdown(requirements: Sequence[Requirement]) -> str:
    """Return Markdown with a heading and a table per area."""
    return "\n".join(_markdown_lines(requirements))


def _markdown_lines(requirements: Sequence[Requirement]) -> Iterator[str]:
    for area, members in groupby(requirements, key=lambda requirement: requirement.area):
        yield from (f"## {area}", "", "| requirement | level | promise | needs | source |", "|---|---|---|---|---|")
        for requirement in members:
            sources = "; ".join(f"[{s.title}]({s.url})" if s.url else s.title for s in requirement.sources)
            cells = (f"`{requirement.id}`", requirement.level, requirement.text, _needs(requirement), sources)
            yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
        yield ""


def _needs(requirement: Requirement) -> str:
    words = sorted(map(str, requirement.needs))
    if requirement.nodes_min > 1:
        words.append(f"{requirement.nodes_min} nodes")
    if requirement.since or requirement.until:
        words.append(f"Kafka {requirement.since or ''}..{requirement.until or ''}")
    return ", ".join(words)
