"""What publishers add to the text of an article, by kind, and the prose that stays."""

from __future__ import annotations

import pytest

from bioshards.corpus import jats
from bioshards.corpus.jats.filters import NOTE_PARTS, PmcConfig
from bioshards.corpus.jats.publisher_notes import classify_paragraph, split_notes
from tests.support.corpus.small_articles import small_article

SENTENCES = {
    "licence-note": [
        "Open Access This article is distributed under the terms of the Creative Commons licence.",
        "This is an open-access article under the CC BY licence.",
        "© The Author(s) 2031.",
        "1234-5678/© 2031 The Authors.",
        "Copyright 2031 Gull Press.",
        "(c) 2031 Gull Press.",
        "All rights reserved.",
        "To view a copy of this licence, visit https://example.org/by/4.0/.",
        "The images or other third party material in this article are included in its licence.",
        "The use, distribution or reproduction in other forums is permitted, if the source is named.",
        "No use, distribution or reproduction is permitted which does not comply with these terms.",
        "For permissions, please e-mail: rights@example.org.",
        "The data referenced by this article are under copyright: Copyright: © 2031 Ode A.",
        "Reprints and permissions information is available at www.example.org/reprints.",
    ],
    "publisher-note": [
        "Springer Nature remains neutral with regard to jurisdictional claims in published maps.",
        "Please note: Wiley Blackwell are not responsible for the content of any supporting information.",
        "Any queries (other than missing material) should be directed to the author.",
        "All claims expressed in this article are solely those of the authors, and not of the publisher.",
        "The statements, opinions and data contained in all publications are solely those of the authors.",
        "This article has been published as part of BMC Gulls Volume 3 Supplement 1, 2031: Wings.",
        "This is a PDF file of an unedited manuscript that has been accepted for publication.",
        "No additional information is available for this paper.",
        "Disclaimer/Publisher’s Note: The statements, opinions and data contained in all publications are "
        "solely those of the authors.",
        "A previous version of this article appeared as an Early Online Release on June 1, 2031.",
        "A list of authors and their affiliations appears at the end of the paper.",
        "The views expressed in this Commentary do not necessarily reflect the views of the journal.",
    ],
    "review-note": [
        "Peer review information Gull Letters thanks Ada Ode and the other reviewers for their review.",
        "Provenance and peer review: Not commissioned; externally peer reviewed.",
        "The reviewer AO and handling Editor declared their shared affiliation.",
        "A peer review file is available.",
        "Peer review: Externally peer reviewed.",
        "A correction to this article is available online at https://example.org/1.",
    ],
    "supplement-note": [
        "Supplementary Information is linked to the online version of the paper at www.example.org.",
        "The Supporting Information is available free of charge on the Gull Publications website.",
        "Supplemental material for this article is available online.",
        "Supplementary materials can be found at http://www.example.org/1/s1.",
        "Check the online version for the most updated information on this article, www.example.org.",
        "This article contains supporting information online at www.example.org/lookup.",
        "Supplementary data and figures for this paper are available from the IUCr electronic archives.",
        "Additional supporting information may be found in the online version of this article.",
        "Please click here to view a larger version of this figure.",
        "Source data are available online for this figure.",
    ],
}
PROSE = [
    "This work was performed under licence 51 of the island.",
    "This is an open prospective study of gulls.",
    "Data are available under the terms of the Creative Commons Zero waiver.",
    "This article is based on interviews with keepers of lighthouses.",
    "Supplementary food was available online to keepers of gulls.",
    "The following are available online: Table S1: Nests; Figure S2: Eggs.",
    "The raw counts are found in Supplementary Table S2.",
    "We thank the handling editor and the reviewers.",
    "Copyright law protects the songs of gulls.",
    "The publisher is a gull.",
    "The views of this journal are those of gulls.",
    "Click here for eggs.",
    "(c) GULL nests.",
    "(c) Controls of 2031.",
    "Citation of gulls rose in 2031.",
    "The pre-publication history for this paper can be accessed here:",
    "A peer review file is available to keepers.",
    "A previous version of this article was withdrawn.",
    "Check the nests for eggs.",
    "Gull Lett 2031 lists 8 nests in Table 40",
    "The reviewer of the nests declared that all were empty.",
]


@pytest.mark.parametrize(("kind", "note"), [(kind, note) for kind in SENTENCES for note in SENTENCES[kind]])
def test_notes_go_from_the_end_of_a_paragraph_by_kind(kind: str, note: str) -> None:
    assert split_notes(note) == ("", [(kind, note)])
    assert split_notes(f"We counted gulls. {note}") == ("We counted gulls.", [(kind, note)])
    assert split_notes(f"{note} We counted gulls.") is None


@pytest.mark.parametrize("text", PROSE)
def test_prose_stays(text: str) -> None:
    assert classify_paragraph(text, "Methods") is None
    assert split_notes(text) is None


@pytest.mark.parametrize(
    ("text", "heading", "kind"),
    [
        ("Suggested citation: Ode A. Of gulls. Gull Lett 2031;1:2.", "", "citation-note"),
        ("Please cite this article as: Ode, A., Of gulls (2031).", "", "citation-note"),
        ("How to cite this article: Ode A. Of gulls. 2031.", "", "citation-note"),
        ("Ode A, Roe B. Of gulls. Gull Lett. 2031;1:2-3.", "How to cite this article", "citation-note"),
        ("Ode A. Gull Lett 2031.", "Como citar este artículo/How to cite this article", "citation-note"),
        ("Como citar: Ode A. Of gulls. Gull Lett. 2031;1:2-3.", "", "citation-note"),
        ("Ode A, Roe B (2031) Of gulls. Gull Keys 2: 1–3. doi: 10.1234/gk.2", "Citation", "citation-note"),
        ("Ode (2031) counted how often gulls are cited, by doi:10.1234/gk.2", "Citation", None),
        ("Ode A. wrote of gulls.", "How to cite this article", None),
        ("The maps are those of the author.", "Publisher’s Note", "publisher-note"),
        ("Publisher's Disclaimer: gulls may bite.", "", "publisher-note"),
        ("Gull Letters thanks Ada Ode for her review.", "Peer review information", "review-note"),
        ("This paper's history is at: https://example.org/1", "Pre-publication history", "review-note"),
        ("Reviewers were asked to count gulls.", "Peer review", None),
        (
            "Supplemental material: This content has been supplied by the author(s). It may bite.",
            "",
            "supplement-note",
        ),
        ("Open Access: This is an open access article. © 2031 Ode A. Gull Letters.", "", "licence-note"),
        ("Springer Nature or its licensor (e.g. a society) holds exclusive rights.", "", "licence-note"),
        ("Please see later in the article for the Editors' Summary", "Conclusions", "publisher-note"),
        ("Gull Lett 2031, 8(Suppl 1):P-40", "", "citation-note"),
        ("This content of the nests has been eaten.", "Results", None),
        ("Received: 3 May 2031", "", "review-note"),
        ("(Copyedited by Ode A, Roe B)", "", "review-note"),
        ("[version 2; peer review: 1 approved, 1 not approved]", "", "review-note"),
        ("[version 2] of the nests", "", None),
        ("We publish what gulls say.", "Results", None),
    ],
)
def test_whole_paragraphs(text: str, heading: str, kind: str | None) -> None:
    assert classify_paragraph(text, heading) == kind


def test_notes_are_counted_by_kind_or_kept() -> None:
    notes = [texts[0] for texts in SENTENCES.values()]
    body = f"<body><sec><title>Results</title><p>We counted. {' '.join(notes)}</p></sec></body>"
    article = small_article(5, body=body)
    document = jats.document(article, PmcConfig(titles=False))
    assert document.sentences == ["We counted."]
    counts = {f"left out: {kind}": len(texts[0]) for kind, texts in SENTENCES.items()}
    assert counts.items() <= document.removed_characters.items()
    kept = PmcConfig(titles=False, keep_notes=True)
    assert jats.document(article, kept).sentences == ["We counted.", *notes]
    assert {f"left out: {part}" for part in NOTE_PARTS}.isdisjoint(kept.removal_names())
    assert {f"left out: {part}" for part in NOTE_PARTS} <= {*PmcConfig().removal_names()}


def test_an_article_of_notes_alone_keeps_them() -> None:
    [note, *_] = SENTENCES["licence-note"]
    article = small_article(6, body=f"<body><p>{note}</p></body>")
    assert jats.document(article, PmcConfig(titles=False)).sentences == [note]
