"""The registry as a document: ids, sources, and the page that is made from it."""

import re
from pathlib import Path

import pytest

from conformance.registry import REQUIREMENTS, select
from conformance.requirements.requirement import Level
from kafkatrial.requirement_tables import render_markdown

PAGE = Path(__file__).parents[2] / "docs" / "requirements.md"


def test_ids_are_unique_and_well_formed():
    ids = [requirement.id for requirement in REQUIREMENTS]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+/[a-z0-9]+(-[a-z0-9]+)*", one) for one in ids)


def test_there_are_enough_of_them():
    assert len(REQUIREMENTS) >= 25
    assert {"produce", "fetch", "ordering", "idempotence", "epochs", "metadata", "negotiation"} <= {
        requirement.area for requirement in REQUIREMENTS
    }


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.id)
def test_each_says_what_it_promises_and_where_that_is_written(requirement):
    assert requirement.text.endswith(".")
    assert requirement.sources
    assert all(source.url and source.url.startswith("https://") for source in requirement.sources)


def test_hostile_input_comes_last():
    assert REQUIREMENTS[-1].id == "negotiation/malformed-bytes-close-one-connection"


def test_the_readme_counts_them():
    readme = (PAGE.parents[1] / "README.md").read_text()
    assert f"**{len(REQUIREMENTS)} requirements with ids, levels and sources**" in readme


def test_areas_are_not_torn_apart():
    areas = [requirement.area for requirement in REQUIREMENTS]
    assert len([area for area, before in zip(areas, [None, *areas], strict=False) if area != before]) == len(set(areas))


def test_select_by_id_area_and_level():
    assert select(()) == tuple(r for r in REQUIREMENTS if r.level is not Level.MAY)
    assert {r.area for r in select(["epochs"])} == {"epochs"}
    assert [r.id for r in select(["produce/invalid-records-are-named"], Level.MUST)] == [
        "produce/invalid-records-are-named"
    ]
    assert all(r.level is Level.MUST for r in select(["produce"], Level.MUST))
    with pytest.raises(KeyError, match="no requirement and no area nonsense"):
        select(["nonsense"])


def test_the_page_of_requirements_is_current():
    """Made by `kafkatrial requirements --markdown > docs/requirements.md`."""
    assert PAGE.read_text(encoding="utf-8").rstrip() == render_markdown(REQUIREMENTS).rstrip()
