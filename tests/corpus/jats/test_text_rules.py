"""Titles, section types and opening words that identify boilerplate."""

from __future__ import annotations

import pytest

from bioshards.corpus.jats import captions, text_rules
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
        ("Disclosures. No gull paid.", "Disclosures", "No gull paid."),
        ("Declaration of interest. None.", "Declaration of interest", "None."),
        ("Funding/support. The sea.", "Funding/support", "The sea."),
        ("Results.txt has gulls.", "", "Results.txt has gulls."),
        ("Results.Terns", "", "Results.Terns"),
        ("Methods.", "", "Methods."),
    ],
)
def test_headings_that_run_in(text: str, heading: str, rest: str) -> None:
    assert text_rules.split_run_in_heading(text) == (heading, rest)


@pytest.mark.parametrize(
    "text",
    [
        "Ode AB. Of gulls and their nests [doctoral thesis]. Auk Town (SP): Faculty of Birds; 2031.",
        "Ode AB, Roe C. What is a gull? Auk Town: Gull Press, 2031. p. 7.",
        "ODE, A. B. What Is a Gull? In: ROE, C. (ed.). Gull Papers. Auk Town: Tern Press, 2031. pp.93-113.",
        "ODE, A. /ROE, C. D. The Gull. Auk Town: Tern University Press, 1978 [1928].",
        "Ode-Filho A, Roe BC. The gull. Auk Town; 2031. Available from: https://example.org/gull",
        "Ode, A.B.; Roe, C.D. 2031. Counting gulls and terns. Acta Gull 53: 271-280.",
        "de Ode NR, Roe S. 2031. Worms of gulls. Gull Lett 19: 547–551.",
        "U.S. Gull Force [Internet]. Auk Town, MD; 2031 [cited 2032 Mar 14]. Available from: http://example.org/",
        "World Gull Organization. 2031. Integrated care of gulls. Weekly Gull Rec 87: 17–28.",
        "WHO. Gulls at sea. Geneva; 2031 [cited 2032 May 1]. Available from: http://example.org/gulls",
        "Ministry of Gulls. Plan of nests. Auk Town (DF); 2031.",
        "https://www.example.org/gulls, accessed December 31, 2031.",
        "Available at: <https://example.org/gulls.pdf>. Access on May, 02, 2031.",
        "http://example.org/gulls (Acessed May 1, 2031).",
        "Source: https://example.org/gulls/",
        "a, b.",
        "a; b; c",
        "h.",
        "Ode et al. (2031a),",
        "Ode and Roe (2031).",
        "Ode and Roe, 2031a; Tern et al., 2030; Auk, 2029.",
    ],
)
def test_footnotes_that_are_references(text: str) -> None:
    assert text_rules.is_whole_reference(text)


@pytest.mark.parametrize(
    "text",
    [
        "See Ode (2031) for a longer tale of gulls.",
        "Ode A. (2031) counted gulls that others had not seen.",
        "Ada Ode (1866-1924) was a painter of gulls.",
        "In Ode et al. (2031) we counted the gulls of 2030.",
        "The gulls were counted by hand [cited 2031 May 3]. See http://example.org/2031",
        "HOX genes of gulls (Ode et al., 2031)",
        "REML variance of gulls in two trials, 2031",
        "Total N: Gull method (Ode, 2031).",
        "Gull Sure is a program of the Ministry. Available from: http://example.org/2031",
        "More nests are at http://example.org/gulls.",
        "To view the nests, please visit: http://example.org/gulls.",
        "Ode A, Roe B. Of gulls.",
        "a, b = nests",
        "Gulls nest.",
        "Ode et al. (2031). – Not seen.",
        "Ode counted (2031).",
        "Winter 2031; Summer 2030.",
    ],
)
def test_footnotes_that_are_prose(text: str) -> None:
    assert not text_rules.is_whole_reference(text)


@pytest.mark.parametrize(
    ("text", "label", "rest"),
    [
        ("Table S7. Nests", "Table S7", "Nests"),
        ("Table S7 Nests of gulls", "Table S7", "Nests of gulls"),
        ("Additional file 15 List of nests", "Additional file 15", "List of nests"),
        ("File. S1 GULL marker", "File. S1", "GULL marker"),
        ("S2 Fig Nests", "S2 Fig", "Nests"),
        ("Table S1 L. gullus nests", "Table S1", "L. gullus nests"),
        ("Additional file 4: Figure S2 Nests", "Additional file 4: Figure S2", "Nests"),
        ("Table S3 A, B and C. Nests", "", "Table S3 A, B and C. Nests"),
        ("Figs 2 and 3 and S2–S5 Figs were drawn", "", "Figs 2 and 3 and S2–S5 Figs were drawn"),
        ("Figure 2 shows nests", "", "Figure 2 shows nests"),
        ("Figure S2 and Table S3 Nests", "", "Figure S2 and Table S3 Nests"),
        ("H3 Histone of gulls", "", "H3 Histone of gulls"),
    ],
)
def test_labels_of_captions(text: str, label: str, rest: str) -> None:
    assert captions.split_caption_label(text) == (label, rest)
