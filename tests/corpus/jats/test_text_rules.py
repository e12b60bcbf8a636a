"""Titles, section types and opening words that identify boilerplate."""

from __future__ import annotations

import pytest

from bioshards.corpus.jats import text_rules
from bioshards.corpus.jats.text_rules import is_boilerplate, starts_with_boilerplate_title


@pytest.mark.parametrize(
    "title",
    [
        "Author contributions",
        "Authors' contributions",
        "AUTHORS’ CONTRIBUTIONS:",
        "CRediT authorship contribution statement",
        "Contributors",
        "Competing interests",
        "Conflict of Interest Statement",
        "Declaration of competing interest",
        "Disclosure",
        "Declarations",
        "Funding",
        "7. Funding information",
        "Financial support and sponsorship",
        "Role of the funding source",
        "Ethics approval and consent to participate",
        "Ethical considerations",
        "Compliance with ethical standards",
        "Informed consent",
        "Consent for publication",
        "Data availability",
        "Data availability statement",
        "Availability of data and materials",
        "Code and data availability",
        "Accession numbers",
        "Publisher's Note",
        "Disclaimer",
        "Provenance and peer review",
        "Pre-publication history",
        "Electronic supplementary material",
        "Supporting Information",
        "Reporting summary",
    ],
)
def test_boilerplate_titles(title: str) -> None:
    assert is_boilerplate(title)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "Results",
        "Materials and methods",
        "Data",
        "Data and code of the model",
        "Funding of primary care in rural districts",
        "Ethics of gene editing",
        "Conflicts of interest among gulls over nests",
        "Contribution of diet to survival",
        "Consent to genetic testing in adolescents",
        "Interest in conservation",
        "Supplementation",
        "Supplementary feeding of gulls",
        "Peer support",
        "Informed choice",
        "Disclosure of diagnosis to patients",
        "Availability of nest sites",
        "Funding " * 20,
    ],
)
def test_other_titles(title: str) -> None:
    assert not is_boilerplate(title)


def test_section_types_are_independent_of_the_title() -> None:
    assert is_boilerplate("Notes", ("COI-statement", None))
    assert is_boilerplate("", (None, "data-availability"))
    assert not is_boilerplate("Notes", ("methods", None))


@pytest.mark.parametrize(
    ("text", "boilerplate"),
    [
        ("Conflict of interest: none declared.", True),
        ("Funding. The sea paid for it.", True),
        ("Data availability: all gulls are here.", True),
        ("Gulls: a conflict of interest.", False),
        ("Funding came late and the gulls had left the cliffs", False),
        ("", False),
    ],
)
def test_text_that_starts_with_a_boilerplate_title(text: str, boilerplate: bool) -> None:
    assert starts_with_boilerplate_title(text) is boilerplate


@pytest.mark.parametrize(
    ("text", "heading", "rest"),
    [
        ("Funding. We thank the gulls.", "Funding", "We thank the gulls."),
        ("Approach.We looked.", "Approach", "We looked."),
        ("Main results.Gulls nest.", "Main results", "Gulls nest."),
        ("Results.txt has gulls.", "", "Results.txt has gulls."),
        ("Results.Terns", "", "Results.Terns"),
        ("Methods.", "", "Methods."),
    ],
)
def test_headings_that_run_in(text: str, heading: str, rest: str) -> None:
    assert text_rules.split_run_in_heading(text) == (heading, rest)
