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
        "©2031 Gull Society.",
        "(c) 2031 Gull Press.",
        "All rights reserved.",
        "This article is made available via the Gull Press subset for unrestricted re-use.",
        "These permissions are granted for the duration of the breeding season.",
        "This work may not be copied, distributed, or used for commercial purposes.",
        "By downloading this file, you are agreeing to the publisher’s Terms.",
        "To view a copy of this licence, visit https://example.org/by/4.0/.",
        "The images or other third party material in this article are included in its licence.",
        "The use, distribution or reproduction in other forums is permitted, if the source is named.",
        "No use, distribution or reproduction is permitted which does not comply with these terms.",
        "For permissions, please e-mail: rights@example.org.",
        "The data referenced by this article are under copyright: Copyright: © 2031 Ode A.",
        "Reprints and permissions information is available at www.example.org/reprints.",
        "Reproduced with permission.",
        "Reproduced with permission from Gull Lett 2031;120:131-7.",
        "Reprinted by permission from Gull Press, ref 5 (2031).",
        "Reprinted and adapted minimally with permission from Ode.",
        "Reproduced in part from Ode et al. (2031) with permission of the Gull Society.",
        "Reproduced from ref 5 under Creative Commons Attribution Licence.",
        "Used with permission.",
        "Original source: Gull Lett 2031;134:81-3, an open access article under the CC BY license.",
        "Deposited in PMC for immediate release.",
        "This work is published under the standard license to publish agreement.",
        "After 12 months the work will switch to a Creative Commons Attribution License.",
        "The corresponding author has the right to grant on behalf of all authors.",
        "Authors agree to the terms of the Springer Open Copyright Agreement.",
        "ASM does not own the copyrights to Supplemental Material that may be linked to.",
        "The authors have granted ASM a non-exclusive, world-wide license to publish the files.",
        "Please contact the corresponding author directly for reuse.",
        "The United States Government retains and the publisher, by accepting the article, agrees.",
        "For the purpose of open access, the author(s) have applied a CC BY licence to this.",
    ],
    "publisher-note": [
        "Springer Nature remains neutral with regard to jurisdictional claims in published maps.",
        "Please note: Wiley Blackwell are not responsible for the content of any supporting information.",
        "Any queries (other than missing material) should be directed to the author.",
        "All claims expressed in this article are solely those of the authors, and not of the publisher.",
        "The statements, opinions and data contained in all publications are solely those of the authors.",
        "This article has been published as part of BMC Gulls Volume 3 Supplement 1, 2031: Wings.",
        "This article is part of the Topical Collection on Gulls and Terns.",
        "This is a PDF file of an unedited manuscript that has been accepted for publication.",
        "No additional information is available for this paper.",
        "Disclaimer/Publisher’s Note: The statements, opinions and data contained in all publications are "
        "solely those of the authors.",
        "A previous version of this article appeared as an Early Online Release on June 1, 2031.",
        "A list of authors and their affiliations appears at the end of the paper.",
        "The views expressed in this Commentary do not necessarily reflect the views of the journal.",
        "The raw data for Figure 5C has been added in this version.",
        "The original version of this article has been updated.",
        "The original version of this article was revised: the name of a gull was misspelled.",
        "Open access publishing facilitated by Gull University, as part of the Gull Press agreement.",
        "Correspondence and requests for materials should be addressed to Ada Ode.",
        "[Correction added on 3 May 2031, after first online publication: the labels were added.]",
        "The Lancet Group takes a neutral position with respect to territorial claims.",
        "This paper was submitted via the gullDirect™ pathway.",
        "Go to Gulls.org/n for full disclosure forms.",
        "Funding information and disclosures, if any, are provided at the end of the article.",
        "Disclosures: Disclosures can be viewed at www.example.org/form.",
        "Full text available through open access at http://example.org/1",
        "Contribute and read comments about this article: example.org/letters",
        "To view enhanced content for this article go to https://example.org/1.",
        "High quality figures are available online.",
        "See page 5 for the editorial comment on this article (doi:10.1234/1)",
        "This is a PLOS Gull Biology Methods paper.",
        "Author contributions are found at the end of this article.",
        "Authors' disclosures of potential conflicts of interest are found in the article online.",
        "Disclosures provided by the authors are available with this article at www.example.org.",
        "The New Phytologist Foundation remains neutral with regard to jurisdictional claims in maps.",
        "Previously published online: www.example.org/1",
        "The online version of the original article can be found under doi:10.1234/gull.",
        "This article is a contribution to the Special Issue on Gulls.",
        "This is an Editor's Choice article from the May 2031 issue.",
        "Although PNAS asks authors to adhere to conventions, maps are as provided by the authors.",
        "This figure appears in color at www.example.org.",
        "Conflicts that the editors consider relevant to the content have been disclosed.",
        "Consisting of data provided by the authors to benefit the reader, they are not copyedited.",
        "The specific roles of these authors are articulated in the ‘author contributions’ section.",
        "This review comes from a themed issue on Gulls.",
        "For a complete overview see the Issue and the Editorial",
        "Available online 21st April 2031",
        "Published by Elsevier Ltd.",
        "Papers of particular interest, published within the period of review, have been highlighted as:",
        "The full contents of the supplement will be available online at https://example.org/1.",
    ],
    "review-note": [
        "Peer review information Gull Letters thanks Ada Ode and the other reviewers for their review.",
        "Provenance and peer review: Not commissioned; externally peer reviewed.",
        "The reviewer AO and handling Editor declared their shared affiliation.",
        "A peer review file is available.",
        "Peer review: Externally peer reviewed.",
        "Peer-review: Externally peer-reviewed.",
        "A correction to this article is available online at https://example.org/1.",
        "An erratum to this article is available at https://example.org/1.",
        "The reviewers reported no competing interests.",
        "Peer review under responsibility of the University of Gulls.",
        "PEER REVIEW: Five peer reviewers contributed to the peer review report.",
        "Reviewers’ reports totaled 2,129 words, without those of the gulls.",
        "This article has been reviewed / commented by three experts.",
        "Freely submitted; externally peer reviewed.",
        "This article was subject to blind, independent, expert peer review.",
        "The review history is available as Additional file 3.",
        "This article is part of our transparent peer-review trial.",
        "[Editorial note: This article has been through an editorial process.]",
        "The Reviewing Editor's assessment is that all issues have been addressed.",
        "A.O. is a guest editor invited by the Editorial Board.",
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
        "Online content is viewable at: https://www.example.org/1.",
        "is available for this paper at 10.1234/gull-5.",
        "Supplementary PDF file supplied by authors.",
        "The supplementary materials are available.",
        "The supporting information (SI) is provided in one single PDF file.",
        "Note: Supplementary information is available on the Gulls and Terns website (www.example.org).",
        "Supplementary Table S4 related to this article can be found, in the online version, at doi:1.",
        "The following online material is available for this article:",
        "This material is available as part of the online article from https://example.org/1.",
        "Supplementary information supplied by authors.",
        "A Life Sciences Reporting Summary for this article is available online.",
        "The online version of this article (available at http://www.example.org) contains a supplement.",
        "Supplementary materials consist of data provided by the author that benefit the reader.",
        "The posted materials are not copyedited.",
        "The contents of all supplementary data are the sole responsibility of the authors.",
        "Questions or messages regarding errors should be addressed to the author.",
        "Click here to access other published clinical trials.",
        "Supplemental data at Gulls.org/n",
        "The online-only Data Supplement is available with this article at https://example.org/1.",
        "Supplemental digital content is available through direct URL citations in the PDF version.",
        "The following material is available online at https://example.org/1.",
        "Any methods, additional references, Nature Portfolio reporting summaries are available online.",
    ],
}
PROSE = [
    "This work was performed under licence 51 of the island.",
    "This is an open prospective study of gulls.",
    "Data are available under the terms of the Creative Commons Zero waiver.",
    "This article is based on interviews with keepers of lighthouses.",
    "Supplementary food was available online to keepers of gulls.",
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
    "Reproduced from Ode et al. (2031).",
    "Adapted from Ode et al. (2031).",
    "Reproduced gulls need permission to nest.",
    "Used with success against gulls, by permission of the keeper.",
    "Original source: the gull.",
    "The raw data for gulls are at sea.",
    "Is available to gulls.",
    "Reviewers of nests saw no peers.",
    "Available online surveys of gulls ended in 2031.",
    "Published by gulls.",
    "Papers of particular interest to gulls were eaten.",
    "Although PNAS asks, gulls answer.",
    "The specific roles of these gulls are known.",
    "Ada is a guest editor of nests.",
    "After 12 months the gulls will return.",
    "The contents of all nests are eggs.",
    "Go to nests for full disclosure of eggs.",
    "Disclosures can be made by gulls.",
    "Author contributions are found in nests.",
    "Click here to access nests.",
    "Correspondence and requests for nests were counted.",
    "The following can be found at www.example.org, and in nests.",
    "Supplementary food can be found at www.example.org, Table 5.",
]


@pytest.mark.parametrize(("kind", "note"), [(kind, note) for kind in SENTENCES for note in SENTENCES[kind]])
def test_notes_go_from_the_end_of_a_paragraph_by_kind(kind: str, note: str) -> None:
    assert split_notes(note) == ("", [(kind, note)])
    assert split_notes(f"We counted gulls. {note}") == ("We counted gulls.", [(kind, note)])
    assert split_notes(f"{note} We counted gulls.") is None


@pytest.mark.parametrize(
    ("note", "titles"),
    [
        (
            "The following are available online at http://www.example.org/s1,",
            "Figure S1: Nests.",
        ),
        (
            "The following supporting information can be downloaded at: www.example.org/1,",
            "File S1: Nests.",
        ),
        ("Supplementary materials can be found at www.example.org/s1.", "Table S1. Nests."),
        (
            "Supplementary Materials can be accessed at: www.example.org/s1.",
            "Supplementary Table S1: Eggs.",
        ),
    ],
)
def test_where_supplements_are_goes_from_before_their_titles(note: str, titles: str) -> None:
    assert split_notes(f"{note} {titles}") == (titles, [("supplement-note", note)])
    licence = "All rights reserved."
    notes = [("supplement-note", note), ("licence-note", licence)]
    assert split_notes(f"{note} {titles} {licence}") == (titles, notes)


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
        ("Gull Lett 18 6, 608–617.", "", "citation-note"),
        ("Ode A. wrote of gulls.", "How to cite this article", None),
        ("The maps are those of the author.", "Publisher’s Note", "publisher-note"),
        ("Publisher's Disclaimer: gulls may bite.", "", "publisher-note"),
        ("Gull Letters thanks Ada Ode for her review.", "Peer review information", "review-note"),
        ("This paper's history is at: https://example.org/1", "Pre-publication history", "review-note"),
        ("Reviewers were asked to count gulls.", "Peer review", None),
        ("Songs of gulls are protected for 50 years.", "Copyright", None),
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
        (
            "Please access these websites via the online version of this summary at http://x.org.",
            "",
            "supplement-note",
        ),
        ("Please access these nests via the cliff.", "", None),
        (
            "Due to the commitment assumed by Gulls. Journal of Auks to Open Science, this journal only "
            "publishes reviews that have been authorized by all involved.",
            "Footnotes",
            "review-note",
        ),
        ("Due to the commitment assumed by gulls, eggs are warm.", "", None),
        ("These authors contributed equally to this work", "", "publisher-note"),
        ("These authors also contributed equally: Ada Ode, Bo Tern.", "Footnotes", "publisher-note"),
        ("These authors jointly supervised this work: Ada Ode, Bo Tern.", "", "publisher-note"),
        ("These authors contributed equally to the nests of gulls.", "", None),
        ("•• of outstanding interest", "References", "publisher-note"),
        ("Transparent Peer Review file", "", "review-note"),
        ("Gulls are edited as a service.", "Editorial Note on the Review Process", "review-note"),
        ("Article plus Supplemental Information", "", "supplement-note"),
        ("Supplemental Digital Content", "", "supplement-note"),
        ("Web supplement", "", "supplement-note"),
        ("Crystal structure: contains datablocks I, global. DOI: 10.1234/gull.cif", "", "supplement-note"),
        ("Crystal structure: gulls are cubic.", "", None),
        ("Download metadata file", "", "supplement-note"),
        ("(only available in the electronic version)", "", "supplement-note"),
        ("Review history.", "", "review-note"),
        ("Alt-text: Unlabelled box", "", "publisher-note"),
        ("Enhanced content", "Footnotes", "publisher-note"),
        ("Supplementary tables S1–S3 and figures are available at Gulls online.", "", "supplement-note"),
        ("Supplementary tables and figures are also available at Dryad: doi:10.1234/1", "", None),
        (
            "The on-line version of this article (see www.example.org) contains supplemental Figs. S1 and 2.",
            "Footnotes",
            "supplement-note",
        ),
        ("Communicated by A. St.-Ode", "", "review-note"),
        ("Communicated by sound", "", None),
        ("Please cite this paper as:", "", "citation-note"),
        ("Paper subject to independent expert blind peer review. We are members.", "", "review-note"),
        ("Gull Lett 2031, 45:205–211", "", "citation-note"),
        ("Review Editor: Ada Ode", "", "review-note"),
        ("Corresponding Editor: Dr. A. St. Ode", "", "review-note"),
        ("Ada Ode https://orcid.org/0000-0000-0000-000X", "ORCID", "publisher-note"),
        ("Ada Ode https://orcid.org/0000-0000-0000-000X counts gulls.", "ORCID", None),
    ],
)
def test_whole_paragraphs(text: str, heading: str, kind: str | None) -> None:
    assert classify_paragraph(text, heading) == kind


@pytest.mark.parametrize(
    ("footnote", "kind"),
    [
        ("ACADEMIC EDITOR: Ada Ode, editorial board member", "review-note"),
        ("Manuscript source: Invited manuscript", "review-note"),
        ("Peer-review started: May 3, 2031", "review-note"),
        ("Peer review comments to author: 21 August 2031", "review-note"),
        ("First decision: June 3, 2031", "review-note"),
        ("Article in press: July 3, 2031", "review-note"),
        ("Specialty type: Gulls and terns", "review-note"),
        ("Country/Territory of origin: Iceland", "review-note"),
        ("Peer-review report’s scientific quality classification", "review-note"),
        ("Grade A (Excellent): A", "review-note"),
        ("Grade E (Poor): 0", "review-note"),
        ("P- Reviewer: Ode AB, Roe C S- Editor: Doe D L- Editor: Poe E", "review-note"),
        ("CLC number: R99, Documnet code: B", "review-note"),
        ("iThenticate screening: May 3, 2031, English editing: June 3, 2031", "review-note"),
        ("v2; ref status: indexed, http://example.org/2", "review-note"),
        ("ORCID iD: Ada Ode https://orcid.org/0000-0000-0000-0000", "publisher-note"),
        ("See accompanying article, p. 2692.", "publisher-note"),
        ("See Profile on page 1675.", "publisher-note"),
        ("For the article discussed, see https://example.org/10.1234/gull.", "publisher-note"),
        ("Article and publication date are at www.example.org/gull", "publisher-note"),
        ("Article published online before print: Gull Lett, 10.1234/gull.", "publisher-note"),
        ("Professor Ada Ode Scientific Editor", "publisher-note"),
        ("¤Current address: Gull Institute, Iceland", "publisher-note"),
        ("Authors' addresses: Ada Ode, Gull Institute, E-mails: ada@example.org", "publisher-note"),
        ("Reviewers: A.O., Gull University; and B.T., Tern University.", "review-note"),
        ("Twitter: @adaode, @gulls", "publisher-note"),
        ("[The copyright line for this article was changed on 16 April 2031.]", "publisher-note"),
        ("Grade A (Excellent): gulls that fly", None),
        ("See the article of the gulls, p. 5", None),
        ("Country of origin: Iceland. Gulls were sent from there.", None),
        ("Gulls: Larus", None),
    ],
)
def test_whole_footnotes(footnote: str, kind: str | None) -> None:
    assert classify_paragraph(footnote, "Footnotes") == kind
    if kind and not footnote.startswith(("ACADEMIC EDITOR", "ORCID")):
        assert classify_paragraph(footnote, "Results") is None


def test_paragraph_after_a_title_of_the_citation_is_one() -> None:
    """Middle East Journal of Digestive Diseases has them beside the metadata."""
    cited = (
        "<p>Please cite this paper as:</p><p>Ode A. Of gulls. Gull Lett 2031;8:2.</p><p>Gulls in 2031.</p>"
    )
    article = small_article(5, body=f"<body><sec><title>Results</title>{cited}</sec></body>")
    assert jats.document(article, PmcConfig(titles=False)).sentences == ["Gulls in 2031."]


def test_footnote_after_the_citation_is_one() -> None:
    notes = ("Suggested citation: Ode A. Of gulls. Gull Lett 2031;1:2.", "Peer-review started: May 3, 2031")
    footnotes = "".join(f"<fn><p>{note}</p></fn>" for note in notes)
    body = f"<body><p>We counted.</p></body><back><fn-group>{footnotes}</fn-group></back>"
    assert jats.document(small_article(5, body=body), PmcConfig(titles=False)).sentences == ["We counted."]


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
