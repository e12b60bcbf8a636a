"""The text of inline markup: formatting, links, citations, formulas and indentation."""

from __future__ import annotations

import re
import time

import pytest
from lxml import etree

from bioshards.corpus.jats import in_text_marks, inline
from bioshards.corpus.jats.in_text_marks import GAP_MARK

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)
MATHML = 'xmlns:m="http://www.w3.org/1998/Math/MathML"'


def parse_paragraph(inside: str) -> etree._Element:
    taxpub = 'xmlns:t="http://www.plazi.org/taxpub"'
    return etree.fromstring(
        f'<p {taxpub} xmlns:xlink="http://www.w3.org/1999/xlink" {MATHML}>{inside}</p>', PARSER
    )


def extract_text(inside: str) -> str:
    return inline.extract_text(parse_paragraph(inside))


def build_xref(number: str) -> str:
    return f'<xref ref-type="bibr" rid="b{number}">{number}</xref>'


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        # Formatting elements are joined without adding or removing a blank.
        ("H<sub>2</sub>O and Ca<sup>2+</sup>", "H2O and Ca2+"),
        ("5 × 10<sup>−6 </sup>M, 2<sup>−ΔΔCt</sup> and CD4<sup>+</sup>", "5 × 10^−6 M, 2^−ΔΔCt and CD4+"),
        ("<bold>10</bold><sup>5</sup> gulls, IL<italic>10</italic><sup>5</sup>", "10^5 gulls, IL105"),
        ("10\n    <sup>6</sup>\n    gulls", "10^6 gulls"),
        (f"10<sup>{build_xref('6')}</sup> gulls", "10 gulls"),
        ("<italic>Larus</italic>-like <bold>g</bold>ull<underline>s</underline>", "Larus-like gulls"),
        ("<sc>Ode</sc>, <named-content content-type='x'>A</named-content>", "Ode, A"),
        ("<styled-content><italic>a</italic>b</styled-content>c", "abc"),
        ("first<break/>second", "first second"),
        ("over\n  two\tlines ", "over two lines"),
        ("a\u00a0b\u2009c", "a b c"),
        ("gulls &amp; terns &lt; auks", "gulls & terns < auks"),
        ("Gulltime<sup>TM</sup> and Gull<italic><sup>TM</sup></italic>", "Gulltime™ and Gull™"),
        # References that are written where they are cited.
        (
            "Ode [<mixed-citation>J. Gulls <volume>2</volume></mixed-citation>] showed terns",
            "Ode showed terns",
        ),
        ("as others<element-citation><year>2031</year></element-citation>.", "as others."),
        # Indented XML.
        ("Ca\n    <sup>2+</sup>\n    ions", "Ca2+ ions"),
        ("<italic>y</italic>\n<sub>1</sub> of NO<sub>3</sub>\n<sup>−</sup>", "y1 of NO3−"),
        ("fed\n<sup>15</sup>N", "fed 15N"),
        ("as <preformat>y</preformat><sub>1</sub>", "as y 1"),
        ("(\n  <xref ref-type='fig'>Fig. 1</xref>\n  ), and", "(Fig. 1), and"),
        ("as\n  <italic>Larus</italic>\n  . Terns", "as Larus. Terns"),
        ("the <sup>14</sup>C of shells", "the 14C of shells"),
        ("w\n<sub>\n<italic>p</italic>\n</sub>\nof E<sub>\n0\n</sub>", "wp of E0"),
        ("IC\n<sub>\n50\n  </sub>of gulls, Na\n<sup>\n+\n</sup>.", "IC50 of gulls, Na+."),
        ("IC<sub>\n<bold>50 </bold>\n</sub><bold>of gulls</bold>", "IC50 of gulls"),
        ("5.3\n<sup>o</sup>E, 7<sup>o</sup> N and 9 <sup>o</sup>C", "5.3°E, 7° N and 9 °C"),
        ("of gulls.\n<sup>#</sup>\nP &lt; 1, m\n<sup>*</sup>", "of gulls. # P < 1, m*"),
        ("the\n   <sup>14</sup>C of shells", "the 14C of shells"),
        # Elements that are apart from the words around them.
        (
            "<named-content content-type='genus'>Larus</named-content><named-content content-type='species'>"
            "canus</named-content>, <named-content content-type='x'>a</named-content>"
            "<named-content content-type='genus'>b</named-content>",
            "Larus canus, ab",
        ),
        ("the <abbrev>WHO<def><p>World Health</p></def></abbrev> says", "the WHO (World Health) says"),
        ("<abbrev>MB<def><p>\tMuseum of Birds.</p></def></abbrev>", "MB Museum of Birds."),
        ("<abbrev><def><p>Museum of Birds</p></def>MB</abbrev>", "Museum of Birds MB"),
        ("as <alternatives><inline-graphic/><textual-form>α</textual-form></alternatives>, so", "as α, so"),
        ("a<styled-content><p>b</p><p>c</p></styled-content>, d", "a b c, d"),
        ("the <name><surname>Ode</surname><given-names>A</given-names></name>", "the Ode A"),
        (
            "the <t:taxon-name><t:taxon-name-part>Larus</t:taxon-name-part><t:taxon-name-part>argentatus"
            "</t:taxon-name-part></t:taxon-name> nests",
            "the Larus argentatus nests",
        ),
        (
            "<t:taxon-name-part>L</t:taxon-name-part>. <t:taxon-name-part>canus</t:taxon-name-part>",
            "L. canus",
        ),
        ("(<t:taxon-name-part reg='Larus'/><t:taxon-name-part>canus</t:taxon-name-part>)", "(canus)"),
        (
            "<t:taxon-name-part>Larus</t:taxon-name-part><t:taxon-name-part/><t:taxon-name-part>canus"
            "</t:taxon-name-part>",
            "Larus canus",
        ),
        (
            "for<m:math><m:mtext> all </m:mtext><m:mi>x</m:mi><m:mspace width='1em'/></m:math>in",
            "for all x in",
        ),
        (
            "and<m:math><m:mspace width='0.25em'/><m:mi>u</m:mi><m:mspace width='0.25em'/></m:math>is",
            "and u is",
        ),
        ("x<m:math><m:mspace width='0.1em'/><m:mi>u</m:mi></m:math>", "xu"),
        ("the part<m:math><m:mo>&#160;</m:mo><m:mi>u</m:mi><m:mi>&#160;</m:mi></m:math>of", "the part u of"),
        ("non-<m:math><m:mo>\n</m:mo><m:mi>n</m:mi><m:mo> </m:mo></m:math>fold", "non-nfold"),
        # Links, and links without a text.
        ("see <ext-link xlink:href='https://example.org'>our pages</ext-link>.", "see our pages."),
        ("the programme <ext-link xlink:href='https://example.org'/>.", "the programme."),
        ("gulls from <ext-link xlink:href='https://example.org'/>.", "gulls from https://example.org."),
        ("found at <uri xlink:href='ftp://example.org/a'/> today", "found at ftp://example.org/a today"),
        ("found at <ext-link xlink:href='#S1'/> today", "found at today"),
        ("the bank (<uri xlink:href='https://example.org'/>) of seeds", "the bank of seeds"),
        ("see <inline-supplementary-material>Table S1</inline-supplementary-material>)", "see Table S1)"),
        ("see Fig. 4 ▸(a), and Ode (2010a ▶); Roe (2011 ▶)", "see Fig. 4(a), and Ode (2010a); Roe (2011)"),
        ("press the key ▶ twice", "press the key ▶ twice"),
        # Pictures.
        ("gulls (<inline-graphic xlink:href='a.png'/>), terns", "gulls, terns"),
        # Elements without text of the paragraph; their tails are kept.
        ("gulls<index-term><term>gull</term></index-term> nest", "gulls nest"),
        ("gulls<fn><p>Birds.</p></fn> nest", "gulls nest"),
        (
            "<funding-source><institution-wrap><institution-id>http://example.org/1</institution-id><institution>"
            "The Gull Fund</institution></institution-wrap></funding-source> paid",
            "The Gull Fund paid",
        ),
        # Citations and footnote marks are removed.
        (f"cliffs.<sup>{build_xref('1')},{build_xref('2')}</sup> Terns", "cliffs. Terns"),
        (f"cliffs<sup>{build_xref('1')}–{build_xref('3')}</sup>.", "cliffs."),
        (f"cliffs{build_xref('1')}<sup>–</sup>{build_xref('3')}.", "cliffs."),
        (f"cliffs<sup>{build_xref('1')}–3</sup>.", "cliffs."),
        (f"cliffs<sup>2+</sup><sup>{build_xref('1')}</sup>.", "cliffs2+."),
        (f"cliffs [{build_xref('1')}–3, {build_xref('7')}].", "cliffs."),
        ("cliffs <xref ref-type='bibr'>[1]</xref>.", "cliffs."),
        ("as described <xref ref-type='bib' rid='R16'>16</xref>.", "as described."),
        ("cliffs <xref ref-type='bibr'><sup>1</sup></xref>.", "cliffs."),
        (f"cliffs [{build_xref('11••')}].", "cliffs."),
        ("cliffs<xref ref-type='bibr' rid='b1'/>.", "cliffs."),
        ("cliffs (<xref ref-type='bibr'>Ode, 2011</xref>; Roe, 2012).", "cliffs (Ode, 2011; Roe, 2012)."),
        ("<xref ref-type='bibr'>Ode et al. [3]</xref> say", "Ode et al. say"),
        ("Ode (<xref ref-type='bibr'>2011</xref>) says", "Ode (2011) says"),
        # A number in an xref without a type is a citation, unless its id or the text before it names
        # another item.
        ("cliffs <xref rid='b1'>[1]</xref>.", "cliffs."),
        ("see Table <xref rid='b1'>1</xref>.", "see Table 1."),
        ("see Appendix <xref ref-type='' rid='gull40-supinfo-0001'>S5</xref>.", "see Appendix S5."),
        ("In <xref rid='note1'/>, gulls nest.", f"In {GAP_MARK}, gulls nest."),
        ("(see <xref id='a1'/><xref ref-type='bibr' rid='b1'>Ode 2031</xref>)", "(see Ode 2031)"),
        # A power of ten is none, though it is linked.
        ("2×10<xref ref-type='bibr'><sup>7</sup></xref> eggs", "2×10^7 eggs"),
        (f"2∙10<sup>{build_xref('7')}</sup> to 3×10<sup>{build_xref('9')}</sup>", "2∙10^7 to 3×10^9"),
        (f"at most 10<sup>{build_xref('5')}</sup> cells", "at most 10^5 cells"),
        (f"at most 10<sup>{build_xref('5')}</sup> gulls", "at most 10 gulls"),
        (
            f"at 22 kg/m<sup>{build_xref('2')}</sup>, 3 /cm<sup>{build_xref('3')}</sup>.",
            "at 22 kg/m2, 3 /cm3.",
        ),
        (f"in 5 m<sup>{build_xref('2')}</sup>, a/m<sup>{build_xref('12')}</sup>.", "in 5 m, a/m."),
        ("of Ode <italic>et al. </italic><sup>4</sup>.", "of Ode et al."),
        ("at ×10<xref ref-type='bibr'><sup>7</sup></xref>.", "at ×10."),
        ("see Eq. (<xref rid='b1'>1</xref>).", "see Eq. (1)."),
        ("from (<xref ref-type='' rid='Equ1'>1</xref>) follows", "from (1) follows"),
        ("(<xref ref-type='fig'>Figs 1</xref>, <xref ref-type='fig'>2</xref>)", "(Figs 1, 2)"),
        # Footnote marks.
        ("cliffs<xref ref-type='fn'>1</xref>.", "cliffs."),
        ("cliffs<sup><xref ref-type='other' rid='FN1'>1</xref></sup>.", "cliffs."),
        ("<xref ref-type='other' rid='box1'>Box 1</xref>.", "Box 1."),
        # Copernicus leaves numbers to the style sheet.
        ("(see Table <xref ref-type='table' rid='Ch1.T1'/>)", "(see Table 1)"),
        (
            "Figs. <xref ref-type='fig' rid='Ch1.F2'/> and <xref ref-type='fig' rid='Ch1.F12'/>",
            "Figs. 2 and 12",
        ),
        ("see Table 1<xref ref-type='table' rid='tab1'/>.", "see Table 1."),
        ("cliffs<sup><xref ref-type='fn'>1</xref></sup>.", "cliffs."),
        ("cliffs<xref ref-type='fn'><sup>1</sup></xref> and", "cliffs and"),
        ("cliffs<xref ref-type='table-fn'>a</xref>", "cliffs"),
        ("see footnote <xref ref-type='fn'>a</xref> of Table 1", "see footnote a of Table 1"),
        ("cliffs <xref ref-type='fn'>1</xref> and", "cliffs and"),
        ("cliffs\n  <xref ref-type='fn'><sup>a</sup></xref>\n  and", "cliffs and"),
        ("cliffs\n  <sup>\n    <xref ref-type='table-fn'>a</xref>\n  </sup>\n  .", "cliffs."),
        # Formulas become text.
        (
            "where <inline-formula><m:math><m:mi>p</m:mi><m:mo>&lt;</m:mo><m:mn>1</m:mn></m:math>"
            "</inline-formula>",
            "where p < 1",
        ),
        (
            "of <inline-formula><alternatives><tex-math>$x$</tex-math><m:math><m:mi>x</m:mi></m:math>"
            "</alternatives></inline-formula>, as",
            "of x, as",
        ),
        ("of <inline-formula><italic>x</italic><sub>1</sub></inline-formula>, as", "of x1, as"),
        ("the <inline-formula><m:math><m:mrow/></m:math></inline-formula>, gulls", "the, gulls"),
        ("of <m:math><m:mi>x</m:mi></m:math> as", "of x as"),
        ("of <math><mi>x</mi></math> as", "of x as"),
    ],
)
def test_text_of_inline_elements(inside: str, text: str) -> None:
    assert extract_text(inside) == text


IMAGE = "<inline-formula><inline-graphic xlink:href='a.png'/></inline-formula>"
TEX = "<inline-formula><alternatives><tex-math>$x_1$</tex-math><graphic/></alternatives></inline-formula>"
PICTURE = "<inline-graphic xlink:href='a.png'/>"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (f"the value of {IMAGE} was 3", "the value of [F] was 3"),
        (f"{TEX}, the wing, is (with {TEX}) long", "[F], the wing, is (with [F]) long"),
        (f"a {IMAGE}-fold rise of {IMAGE}{IMAGE}.", "a [F]-fold rise of [F][F]."),
        (f"the value of{IMAGE}was 3", "the value of [F] was 3"),
        (f"the {IMAGE}th of all {IMAGE}s", "the [F]th of all [F]s"),
        (f"in {IMAGE} [{build_xref('3')}], as", "in [F], as"),
        ("by <alternatives><inline-graphic/><tex-math>x_1</tex-math></alternatives>.", "by [F]."),
        (f"bends at time {PICTURE} for all {PICTURE} &lt; 3", "bends at time [F] for all [F] < 3"),
        (f"({PICTURE} indicates males and {PICTURE} is 4)", "([F] indicates males and [F] is 4)"),
        (f"gulls (i.e. {PICTURE} which predicts {PICTURE}.", "gulls (i.e. [F] which predicts [F]."),
        (f"within 0.01 pc (e.g. {PICTURE} for gulls)", "within 0.01 pc (e.g. [F] for gulls)"),
        ("where <private-char/> is", "where [F] is"),
        (f"on cliffs. {PICTURE} [{build_xref('3')}], {PICTURE} [{build_xref('4')}]", "on cliffs. [F], [F]"),
        (
            f"for a {PICTURE}, cue {PICTURE} flies (as V = 0, {PICTURE} and E",
            "for a [F], cue [F] flies (as V = 0, [F] and E",
        ),
        # Pictures and keys of legends are no nouns.
        (f"cold ({PICTURE}), warm ({PICTURE})", "cold, warm"),
        (f"colours: {PICTURE} gulls, {PICTURE} terns, and {PICTURE} auks", "colours: gulls, terns, and auks"),
        (f"{PICTURE}Ada Ode studied in Oslo", "Ada Ode studied in Oslo"),
    ],
)
def test_formulas_and_symbols_without_text_are_a_word(inside: str, text: str) -> None:
    assert in_text_marks.write_formula_words(extract_text(inside), "[F]") == text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"at 8{^{\circ}}C, a {\beta}-gull, {$xy$}", "at 8°C, a β-gull, xy"),
        (r"the mass of{K}was {\sim}5, {n}th", "the mass of K was ~5, nth"),
        (r"of {\gulls}, {x_1} and {abcd}", "of [F], [F] and [F]"),
    ],
)
def test_latex_of_one_symbol_is_its_characters(latex: str, text: str) -> None:
    tag = "tex-math"
    marked = re.sub(r"\{((?:[^{}]|\{[^{}]*\})*)\}", rf"<{tag}>\1</{tag}>", latex)
    formula, alternatives = ("<inline-formula>", "</inline-formula>"), ("<alternatives>", "</alternatives>")
    both = (formula[0] + alternatives[0], alternatives[1] + formula[1])
    for start, end in (formula, alternatives, both):
        inside = marked.replace(f"<{tag}>", f"{start}<{tag}>").replace(f"</{tag}>", f"</{tag}>{end}")
        assert in_text_marks.write_formula_words(extract_text(inside), "[F]") == text


def test_author_year_citations_can_be_removed() -> None:
    element = parse_paragraph(
        "cliffs (<xref ref-type='bibr'>Ode, 2011</xref>; <xref ref-type='bibr'>Roe, 2012</xref>) "
        "and rocks (see <xref ref-type='fig'>Fig. 1</xref>, <xref ref-type='bibr'>Ode, 2011</xref>)."
    )
    inline.mark_citations(element, author_year=False, numeric=False)
    assert inline.extract_text(element) == "cliffs and rocks (see Fig. 1)."


@pytest.mark.parametrize("inside", ["\n" * 100_000 + "a", " \n" * 50_000 + "<sup>2</sup>", "(\n" * 50_000])
def test_time_limit_on_long_indentation(inside: str) -> None:
    start = time.process_time()
    extract_text(inside)
    assert time.process_time() - start < 20
