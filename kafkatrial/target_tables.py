"""Targets as tables on a terminal."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

import chaos.targets  # noqa: F401 - registers the target `simulation`
from fixtures.disk.kinds import DiskKind, why_no_disk
from fixtures.targets.catalogue import target_kinds
from fixtures.targets.machine import Prerequisite, why_no_mesh
from fixtures.targets.probe import BrokerFacts
from linearizability.printable import in_cell
from reports.console import plain_table


def render_kinds() -> RenderableType:
    """Return a table of the targets, the link mesh and FUSE disks: what each provides, and how to install it."""
    table = plain_table("Target", "Starts", "Nodes", "Installed")
    for kind in target_kinds():
        for version in kind.versions or ("",):
            name = f"{kind.kind}:{version}" if version else kind.kind
            install = kind.why_unavailable(version) or (kind.install or "").replace("VERSION", version)
            nodes = ", ".join(map(str, kind.nodes)) or "as it is"
            table.add_row(name, kind.starts, nodes, _installed(kind.is_installed(version), install))
    table.add_section()
    for what, gives, missing in (
        ("toxiproxy", "the link mesh: without it no link can be cut", why_no_mesh()),
        ("disk in FUSE", "disks that lose unflushed data, fail and fill up", why_no_disk(DiskKind.FUSE)),
    ):
        table.add_row(what, gives, "", _installed(missing is None, missing or ""))
    return table


def render_prerequisites(prerequisites: Iterable[Prerequisite]) -> RenderableType:
    """Return a table of the prerequisites, and below it how to install each one that is missing."""
    rows = tuple(prerequisites)
    table = plain_table("What", "Gives", "Here")
    for row in rows:
        table.add_row(row.what, row.gives, Text("no", "yellow") if row.missing else Text("yes", "green"))
    missing = [Text(row.missing) for row in rows if row.missing]
    return Group(table, *([Text(), *missing] if missing else []))


def render_probe(facts: BrokerFacts) -> RenderableType:
    """Return the cluster, the nodes and the APIs that `targets probe` found."""
    has_controller = facts.controller_id is not None and facts.controller_id >= 0
    controller = f"node {facts.controller_id}" if has_controller else "unknown"
    head = Text(f"cluster {in_cell(facts.cluster_id or 'without an id')}, controller {controller}")
    nodes = plain_table("Node", "Address")
    for node in facts.brokers:
        nodes.add_row(str(node.id), in_cell(f"{node.host}:{node.port}"))
    apis = plain_table("API", "Versions")
    for name, (lowest, highest) in facts.apis.items():
        apis.add_row(name, f"{lowest}-{highest}")
    return Group(head, *(Padding(table, (1, 0, 0, 0)) for table in (nodes, apis)))


def _installed(is_installed: bool, command: str) -> Text:
    return Text("yes", "green") if is_installed else Text(f"no; {command}", "yellow")
