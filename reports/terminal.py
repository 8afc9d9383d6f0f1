"""Results and judgements as Rich renderables: the output at the end of a run.

A finding has these parts, in this order:

- the requirement, its level and its sources;
- Reason, Expected and Actual;
- the evidence;
- the shrunk program;
- the directory of its files, and in it the file with this program and the file with all responses;
- the command that reproduces it.

Colour only repeats the meaning of a word or a sign.
"""

from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import groupby
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Column, Table
from rich.text import Text

from linearizability.finding import Difference, Finding, Standing
from linearizability.judgement import Anomaly, Judgement, Verdict, in_report_order
from linearizability.printable import counted, in_cell, printable
from reports.console import DataConsole, plain_table
from reports.program import render_command, render_program
from reports.results import RequirementInfo, Results

CELLS = {
    Standing.OK: ("✔ ok", "green"),
    Standing.VIOLATION: ("✘ violation", "bold red"),
    Standing.EXPECTED: ("✘ expected", "yellow"),
    Standing.FIXED: ("! unexpectedly ok", "bold magenta"),
    Standing.UNKNOWN: ("? unknown", "yellow"),
    Standing.NOT_APPLICABLE: ("- n/a", "dim"),
}
"""Text and colour of a cell of the matrix."""

_VERDICT_STYLES = {Verdict.OK: "green", Verdict.VIOLATION: "bold red", Verdict.UNKNOWN: "yellow"}
_TOPIC_SHOWN = 249
"""The maximum number of characters of a topic that are shown: a topic name in Kafka is at most this long."""
_EVIDENCE_SHOWN = 3
"""Evidence rows per anomaly on a terminal; results.json and the HTML page have all of them."""


def render_results(results: Results, run_dir: Path) -> RenderableType:
    """Return the whole output: matrix, findings, differences, footer."""
    parts: list[RenderableType] = []
    if results.outcomes:
        parts.append(_matrix(results))
    parts += [
        render_finding(finding, results.requirement(finding.requirement)) for finding in _findings_in_full(results)
    ]
    differences = [_difference(finding, difference) for finding, difference in results.differences()]
    if differences:
        parts += [Rule("Differences between targets", align="left", style="dim"), *differences]
    parts.append(_footer(results, run_dir))
    return Group(*(line for part in parts for line in (Text(), part)))


def render_finding(finding: Finding, requirement: RequirementInfo) -> RenderableType:
    """Return all details of one finding."""
    sign, style = CELLS[finding.standing]
    title = Text.assemble((f"{sign} ", style), (finding.requirement, "bold"), f"  on {finding.target}")
    if finding.flaky:
        title.append("  flaky: the violation did not recur when the script ran again", "yellow")
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("Level", f"{requirement.level}  {requirement.text}".rstrip())
    for source in requirement.sources:
        facts.add_row("Source", Text(f"{source.title}  {source.url or ''}".rstrip()))
    for name, value in (("Reason", finding.reason), ("Expected", finding.expected), ("Actual", finding.actual)):
        if value:
            facts.add_row(name, Text(printable(value)))
    parts: list[RenderableType] = [title, Padding(facts, (0, 0, 0, 2))]
    if finding.judgement and finding.judgement.anomalies:
        parts.append(Padding(_anomalies(finding.judgement.anomalies), (0, 0, 0, 2)))
    if finding.program:
        parts += [
            Padding(Text("The shortest script that shows it:", "dim"), (0, 0, 0, 2)),
            render_program(finding.program),
        ]
    if finding.failure_dir:
        parts.append(Text(f"  Kept in    {finding.failure_dir}"))
        if finding.program:
            parts.append(Text(f"  Program    {finding.failure_dir}/repro.py"))
        if finding.steps:
            parts.append(Text(f"  Responses  {finding.failure_dir}/steps.txt"))
    if finding.reproduce:
        parts.append(render_command("  Reproduce: ", finding.reproduce))
    return Group(*parts)


def render_judgement(judgement: Judgement) -> RenderableType:
    """Render the judgement of one history, as `kafkatrial check` prints it."""
    verdict = judgement.verdict
    head = Text.assemble(
        (str(verdict), _VERDICT_STYLES[verdict]),
        f"  {counted(judgement.operations, 'operation')}, {counted(judgement.records, 'record')}",
    )
    reasons = [Text(printable(f"unknown because {reason}"), "yellow") for reason in judgement.reasons]
    found = in_report_order(judgement.anomalies)
    return Group(head, *reasons, *([_anomalies(found)] if found else []))


def as_text(renderable: RenderableType, width: int = 110) -> str:
    """Return the renderable as plain text without colour, for a log or another process."""
    console = DataConsole(file=StringIO(), width=width, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable, crop=False)  # a line longer than the width is not cut off, so that it can be copied
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")


def _findings_in_full(results: Results) -> Iterator[Finding]:
    """Yield the findings to show in full: violations first, then those that are unexpectedly ok, then unknown ones."""
    for standing in (Standing.VIOLATION, Standing.FIXED, Standing.UNKNOWN):
        yield from results.with_standing(standing)


def _matrix(results: Results) -> Table:
    targets = (Column(target.name, no_wrap=True) for target in results.targets)
    table = plain_table(Column("Requirement", no_wrap=True), "Level", *targets)
    for _, requirements in groupby(results.requirements, key=lambda requirement: requirement.area):
        for requirement in requirements:
            cells = (_cell(results.finding(requirement.id, target.name)) for target in results.targets)
            table.add_row(requirement.id, Text(requirement.level, "dim"), *cells)
        table.add_section()
    return table


def _cell(finding: Finding | None) -> Text:
    if finding is None:
        return Text("· not run", "dim")
    sign, style = CELLS[finding.standing]
    return Text(f"{sign} (flaky)" if finding.flaky else sign, style)


def _anomalies(anomalies: Sequence[Anomaly]) -> Table:
    table = plain_table(header_style="dim")
    for heading in ("Anomaly", "Verdict", "Count", "Where", "Evidence"):
        is_whole = heading in {"Anomaly", "Verdict"}
        table.add_column(heading, justify="right" if heading == "Count" else "left", overflow="fold", no_wrap=is_whole)
    for anomaly in anomalies:
        style = _VERDICT_STYLES.get(anomaly.verdict, "dim")
        head = (anomaly.name, Text(str(anomaly.verdict), style), f"{anomaly.count:,}")
        for number, row in enumerate(anomaly.evidence[:_EVIDENCE_SHOWN] or (None,)):
            where = "" if row is None else place(row.topic, row.partition, row.offset)
            table.add_row(*(head if number == 0 else ("", "", "")), where, Text(in_cell(row.text) if row else ""))
    return table


def place(topic: str | None, partition: int | None, offset: int | None) -> str:
    """Return a place such as `topic-0@42`, without the parts that are unknown."""
    where = in_cell(topic or "", _TOPIC_SHOWN)
    if partition is not None:
        where += f"-{partition}"
    return where if offset is None else f"{where}@{offset}"


def _difference(finding: Finding, difference: Difference) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(finding.target, Text(printable(difference.here)))
    table.add_row(difference.other_target, Text(printable(difference.there)))
    head = Text.assemble((finding.requirement, "bold"), f"  step {difference.step}, {difference.severity}")
    return Group(head, Padding(table, (0, 0, 0, 2)))


def _footer(results: Results, run_dir: Path) -> RenderableType:
    counts = Text("  ·  ").join(
        Text(f"{count} {standing}", CELLS[standing][1]) for standing, count in results.counts().items()
    )
    if not results.complete:
        counts.append("  ·  " if counts else "").append(results.unfinished, "yellow")
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("Run", Text(str(run_dir)))
    facts.add_row("Report", Text(str(run_dir / "report.html")))
    facts.add_row("Exit code", f"{results.exit_code}: {results.conclusion}")
    facts.add_row("Seed", str(results.seed))
    return Group(Rule(style="dim"), counts, facts)
