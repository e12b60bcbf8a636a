"""Tables as lines and formulas as LaTeX, text or a word: an invented article by each option."""

from __future__ import annotations

import pytest
from lxml import etree

from bioshards.corpus import jats
from bioshards.corpus.jats import inline, tables
from bioshards.corpus.jats.filters import PmcConfig
from tests.support.corpus.jats_articles import article_xml

TABLE = """
<table-wrap id="t1"><label>Table 1</label><caption><p>Sleep by group. No one left.</p></caption>
<alternatives><graphic xlink:href="t1.png"/><table>
<thead>
 <tr><th rowspan="2">Group:</th><th rowspan="2"><italic>n</italic></th><th colspan="2">Sleep (h)</th></tr>
 <tr><th>mean</th><th>SD<xref ref-type="table-fn" rid="fn1">a</xref></th></tr>
</thead>
<tbody>
 <tr><th colspan="4">Women</th></tr>
 <tr><td rowspan="2">Slow breathing</td><td>12</td><td>5.9</td><td>0.4</td></tr>
 <tr><td>11</td><td colspan="2">Not known. Lost.</td></tr>
 <tr><td>Leaflet</td><td/><td>5.6<break/>(5.0)</td><td>0.3</td><td>beside</td></tr>
 <tr><td> </td></tr>
</tbody></table></alternatives>
<table-wrap-foot><fn id="fn1"><label>a</label><p>Standard deviation.</p></fn></table-wrap-foot>
</table-wrap>"""
TEXT = """Sleep was short <xref ref-type="table" rid="t1">Table 1</xref>. With
<inline-formula><alternatives>
<tex-math><![CDATA[\\documentclass{minimal}\\begin{document}$$a_{1}
< 2$$\\end{document}]]></tex-math><mml:math><mml:msub><mml:mi>a</mml:mi><mml:mn>1</mml:mn></mml:msub>
<mml:mo>&lt;</mml:mo><mml:mn>2</mml:mn></mml:math></alternatives></inline-formula> we have
<disp-formula id="e1"><label>(1)</label>
<mml:math><mml:mi>b</mml:mi><mml:mo>=</mml:mo><mml:mn>3</mml:mn></mml:math></disp-formula> and also
<disp-formula-group><disp-formula><tex-math>\\[c = 4\\]</tex-math></disp-formula>
<disp-formula><tex-math>d = 5</tex-math></disp-formula></disp-formula-group> Then we slept."""
ARTICLE = article_xml(7, body=f"<sec><title>Results</title><p>{TEXT}</p>{TABLE}</sec>").encode()
CAPTION = ["Sleep by group.", "No one left."]
ROWS = [
    "Women",
    "Group: Slow breathing; n: 12; Sleep (h) mean: 5.9; Sleep (h) SD: 0.4",
    "Group: Slow breathing; n: 11; Not known. Lost.",
    "Group: Leaflet; Sleep (h) mean: 5.6 (5.0); Sleep (h) SD: 0.3; beside",
]
DEFAULT = ["Sleep was short Table 1.", "With a_1 < 2 we have [FORMULA] and also [FORMULA]", "Then we slept."]


IMAGES = """Of <inline-formula><graphic/></inline-formula> we know<disp-formula><graphic/></disp-formula> and
<inline-formula><tex-math>x_1</tex-math></inline-formula> only."""


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("", "Of [FORMULA] we know [FORMULA] and [FORMULA] only."),
        ("text", "Of [FORMULA] we know [FORMULA] and [FORMULA] only."),
        ("latex", "Of [FORMULA] we know [FORMULA] and $x_1$ only."),
        ("[F]", "Of [F] we know [F] and [F] only."),
    ],
)
def test_a_formula_without_text_leaves_no_hole(formula: str, text: str) -> None:
    article = article_xml(7, body=f"<sec><title>{IMAGES}</title><p>{IMAGES}</p></sec>").encode()
    document = jats.document(article, PmcConfig(titles=False, formula=formula))
    assert document.sentences == [text]
    assert document.sections[0][0].startswith(text[:14])


def build_sentences(**settings: str) -> list[str]:
    return jats.document(ARTICLE, PmcConfig(titles=False, **settings)).sentences  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "prose"),
    [
        ({}, DEFAULT),
        (
            {"formula": "text"},
            [DEFAULT[0], "With a_1 < 2 we have b = 3 and also [FORMULA] [FORMULA]", DEFAULT[2]],
        ),
        (
            {"formula": "latex"},
            [DEFAULT[0], "With $a_{1} < 2$ we have b = 3 and also $c = 4$ $d = 5$", DEFAULT[2]],
        ),
        ({"formula": "[F]"}, [DEFAULT[0], "With a_1 < 2 we have [F] and also [F]", DEFAULT[2]]),
    ],
)
@pytest.mark.parametrize("rows", [[], ROWS])
def test_what_each_option_writes(settings: dict[str, str], prose: list[str], rows: list[str]) -> None:
    sentences = build_sentences(**settings, tables="text" if rows else "none")
    assert sentences == [*prose, *CAPTION, *rows, "Standard deviation."]


def test_rows_are_under_the_heading_of_their_table() -> None:
    document = jats.document(ARTICLE, PmcConfig(tables="text", parts=("body",)))
    assert document.sections[-1][0] == "Results > Table 1"
    assert document.sentences[-len(ROWS) :] == ROWS


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("<tbody><tr><td>a</td><td>b</td></tr></tbody>", ["a; b"]),
        ("<tr><th>h</th><th/></tr><tr><td>a</td><td>b</td></tr>", ["h: a; b"]),
        ("<thead><tr><td>h</td></tr></thead><tbody><tr><th>a</th></tr></tbody>", ["h: a"]),
        ("<thead><tr><td>h</td></tr></thead>", []),
        ("", []),
        ("<tr><td colspan='x'>a</td><td rowspan='-1'>b</td></tr><tr/><tr><td>c</td></tr>", ["a; b", "c"]),
        ("<tr><td colspan='999999999'>a</td><td>b</td></tr><tr><td rowspan='99999'>c</td></tr>", ["a", "c"]),
        (
            f"<tr><th>{'h' * 201}</th></tr><tr><td>a</td></tr><tr><td>b</td></tr>",
            [f"{'h' * 201}: a", "b"],
        ),
        (
            f"<tbody><tr><td rowspan='2'>{'a' * 201}</td><td>b</td></tr><tr><td>c</td></tr></tbody>",
            [f"{'a' * 201}; b", "c"],
        ),
    ],
)
def test_rows_of_unusual_tables(table: str, rows: list[str]) -> None:
    assert list(tables.format_rows(etree.fromstring(f"<table>{table}</table>"))) == rows


OASIS_TABLE = """
<oasis:table xmlns:oasis="http://docs.oasis-open.org/ns/oasis-exchange/table"><oasis:tgroup cols="4">
<oasis:colspec colname="group"/><oasis:colspec colname="n"/>
<oasis:colspec colnum="3" colname="mean"/><oasis:colspec colname="sd"/>
<oasis:spanspec spanname="sleep" namest="mean" nameend="sd"/>
<oasis:thead>
 <oasis:row><oasis:entry morerows="1">Group:</oasis:entry>
  <oasis:entry morerows="1"><italic>n</italic></oasis:entry>
  <oasis:entry spanname="sleep">Sleep (h)</oasis:entry></oasis:row>
 <oasis:row><oasis:entry>mean</oasis:entry><oasis:entry>SD</oasis:entry></oasis:row>
</oasis:thead>
<oasis:tbody>
 <oasis:row><oasis:entry namest="group" nameend="sd">Women</oasis:entry></oasis:row>
 <oasis:row><oasis:entry morerows="1">Slow breathing</oasis:entry><oasis:entry>12</oasis:entry>
  <oasis:entry>5.9</oasis:entry><oasis:entry>0.4</oasis:entry></oasis:row>
 <oasis:row><oasis:entry>11</oasis:entry>
  <oasis:entry namest="mean" nameend="sd">Not known. Lost.</oasis:entry></oasis:row>
 <oasis:row><oasis:entry colname="group">Leaflet</oasis:entry>
  <oasis:entry colname="mean">5.6<break/>(5.0)</oasis:entry><oasis:entry>0.3</oasis:entry>
  <oasis:entry>beside</oasis:entry></oasis:row>
</oasis:tbody></oasis:tgroup></oasis:table>"""


def test_oasis_table_gives_the_rows_of_the_same_xhtml_table() -> None:
    start, end = TABLE.index("<table>"), TABLE.index("</alternatives>")
    article = ARTICLE.replace(TABLE[start:end].encode(), OASIS_TABLE.encode())
    assert article != ARTICLE
    for mode, rows in (("text", ROWS), ("none", [])):
        sentences = jats.document(article, PmcConfig(titles=False, tables=mode)).sentences
        assert sentences == [*DEFAULT, *CAPTION, *rows, "Standard deviation."]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("<tbody><row><entry>a</entry><entry>b</entry></row></tbody>", ["a; b"]),
        (
            "<colspec colname='x'/><thead><colspec colname='y' colnum='2'/>"
            "<row><entry colname='y'>h</entry></row></thead>"
            "<tbody><row><entry>a</entry><entry>b</entry></row></tbody>",
            ["a; h: b"],
        ),
        ("<colspec colname='x'/><tbody><row><entry namest='x' nameend='z'>a</entry></row></tbody>", ["a"]),
        (
            "<colspec colname='x' colnum='9999999'/><tbody><row><entry colname='x'>a</entry></row></tbody>",
            ["a"],
        ),
        (
            "<thead><row><entry>h</entry></row></thead><tbody><row><entry morerows='1'>a</entry></row><row/>"
            "</tbody>",
            ["h: a", "h: a"],
        ),
    ],
)
def test_rows_of_unusual_oasis_tables(table: str, rows: list[str]) -> None:
    group = f"<tgroup>{table}</tgroup>"
    assert list(tables.format_rows(etree.fromstring(f"<table>{group}{group}</table>"))) == rows * 2


@pytest.mark.parametrize(
    ("tex", "latex"),
    [
        ("$x$", "$x$"),
        (" \\(x\n+ y\\) ", "$x + y$"),
        ("}{}$x$", "$x$"),
        ("\\begin{document}$$x$$", "$x$"),
        ("$", "$$$"),
        ("$$ $$", ""),
        ("", ""),
    ],
)
def test_latex_is_between_dollars_without_its_document(tex: str, latex: str) -> None:
    assert inline.format_latex(tex) == latex


def test_a_word_that_is_nearly_a_mode_is_noticed() -> None:
    [notice] = PmcConfig(formula="Latex").describe_unknown_values()
    assert notice == "--formula Latex stands in place of each displayed formula (did you mean latex?)"
    assert not PmcConfig(formula="[FORMULA]").describe_unknown_values()


ESCAPED = """<p>Gulls weigh &amp;lt;5 &amp;#x3bc;g &amp;amp; more, 3&amp;lt;sup&amp;gt;2&amp;lt;/sup&amp;gt;,
R&amp;gull; &amp;#xD800;.</p><p><![CDATA[By year: <table border="1"><tr><th>Year</th><th>n</th></tr>
<tr><td>2011</td><td>3</td></tr></table> Terns.]]></p><p><![CDATA[<table><tr><td>Broken.</table>]]></p>"""


@pytest.mark.parametrize(("mode", "rows"), [("none", []), ("text", ["Year: 2011; n: 3"])])
def test_what_was_escaped_twice_and_tables_in_cdata(mode: str, rows: list[str]) -> None:
    article = article_xml(7, body=f"<sec><title>Results</title>{ESCAPED}</sec>").encode()
    sentences = jats.document(article, PmcConfig(titles=False, tables=mode)).sentences
    prose = ["Gulls weigh <5 μg & more, 3^2, R&gull; &#xD800;.", "By year: Terns."]
    assert sentences == [*prose, *rows, "<tr><td>Broken."]
