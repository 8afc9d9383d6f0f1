"""Writer of junit.xml: one test suite per target, one test case per requirement.

A violation is a `failure`, an unknown verdict an `error`, and a requirement that does not apply is `skipped` with its
reason. An expected violation passes, and a property marks it. If it no longer occurs, the case fails, because the
expectations file is stale. A requirement that an interrupted run did not reach is an `error`; otherwise an unfinished
run would be shown as passed.
"""

from pathlib import Path
from xml.etree import ElementTree as ET

from linearizability.finding import Finding, Standing
from linearizability.printable import printable
from reports.results import RequirementInfo, Results, TargetInfo
from reports.terminal import as_text, render_finding

FILE_NAME = "junit.xml"

_RESULT_ELEMENTS = {
    Standing.VIOLATION: "failure",
    Standing.FIXED: "failure",
    Standing.UNKNOWN: "error",
    Standing.NOT_APPLICABLE: "skipped",
}


def write_junit(results: Results, run_dir: Path) -> Path:
    """Write `run_dir/junit.xml`."""
    root = ET.Element("testsuites", name="kafkatrial", time=f"{results.seconds:.3f}")
    for target in results.targets:
        root.append(_suite(results, target))
    ET.indent(root)
    path = run_dir / FILE_NAME
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return path


def _suite(results: Results, target: TargetInfo) -> ET.Element:
    findings = [finding for finding in results.outcomes if finding.target == target.name]
    unjudged = [requirement for requirement, other in results.unjudged if other is target]
    elements = [_RESULT_ELEMENTS.get(finding.standing) for finding in findings] + ["error"] * len(unjudged)
    suite = ET.Element(
        "testsuite",
        name=f"kafkatrial.{target.name}",
        timestamp=results.started_at,
        tests=str(len(elements)),
        failures=str(elements.count("failure")),
        errors=str(elements.count("error")),
        skipped=str(elements.count("skipped")),
        time=f"{sum(finding.seconds for finding in findings):.3f}",
    )
    facts = {"seed": str(results.seed), "target": target.name, "profile": results.profile}
    _properties(suite, [*facts.items(), *((f"version.{name}", value) for name, value in target.versions.items())])
    for finding in findings:
        suite.append(_judged_case(finding, results.requirement(finding.requirement), results.seed))
    for requirement in unjudged:
        case = _test_case(requirement, target.name, seconds=0.0)
        ET.SubElement(case, "error", message=f"not run; {results.unfinished}", type=str(Standing.UNKNOWN))
        suite.append(case)
    return suite


def _judged_case(finding: Finding, requirement: RequirementInfo, seed: int) -> ET.Element:
    case = _test_case(requirement, finding.target, finding.seconds)
    facts = [("seed", str(seed)), ("target", finding.target), ("level", requirement.level)]
    facts += [("source", " ".join(filter(None, (source.title, source.url)))) for source in requirement.sources]
    if finding.standing is Standing.EXPECTED:
        facts.append(("expected-violation", finding.reason))
    if finding.flaky:
        facts.append(("flaky", "true"))
    _properties(case, facts)
    if element := _RESULT_ELEMENTS.get(finding.standing):
        result = ET.SubElement(case, element, message=printable(finding.reason or str(finding.standing)))
        if element != "skipped":
            result.set("type", str(finding.standing))
            result.text = as_text(render_finding(finding, requirement))
    return case


def _test_case(requirement: RequirementInfo, target: str, seconds: float) -> ET.Element:
    classname = f"{target}.{requirement.area}"
    return ET.Element("testcase", classname=classname, name=requirement.id, time=f"{seconds:.3f}")


def _properties(parent: ET.Element, facts: list[tuple[str, str]]) -> None:
    properties = ET.SubElement(parent, "properties")
    for name, value in facts:
        ET.SubElement(properties, "property", name=name, value=printable(value))
