"""Formulas as readable text: golden cases, what holds of every formula, hostile ones, real ones."""

from __future__ import annotations

import glob
import gzip
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.mathml import formula
from tests.support.real_data import DATA, needs_data

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)
NAMESPACE = "http://www.w3.org/1998/Math/MathML"


def read(inner: str) -> str:
    """The text of a formula, which is the same with and without MathML's namespace."""
    plain = formula.formula_to_text(etree.fromstring(f"<math>{inner}</math>", PARSER))
    prefixed = inner.replace("</", "\0").replace("<", "<m:").replace("\0", "</m:")
    element = etree.fromstring(f'<m:math xmlns:m="{NAMESPACE}">{prefixed}</m:math>', PARSER)
    assert formula.formula_to_text(element) == plain
    return plain


def i(*letters: str) -> str:
    return "".join(f"<mi>{letter}</mi>" for letter in letters)


def n(number: object) -> str:
    return f"<mn>{number}</mn>"


def o(operator: str) -> str:
    return f"<mo>{operator.replace('&', '&amp;').replace('<', '&lt;')}</mo>"


def t(words: str) -> str:
    return f"<mtext>{words}</mtext>"


def up(name: str) -> str:
    return f'<mi mathvariant="normal">{name}</mi>'


def e(name: str, *children: str) -> str:
    """An element whose children are one element each: several are wrapped into a row."""
    return f"<{name}>{''.join(f'<mrow>{child}</mrow>' for child in children)}</{name}>"


def table(*rows: tuple[str, ...]) -> str:
    inner = ("".join(f"<mtd>{cell}</mtd>" for cell in row) for row in rows)
    return f"<mtable>{''.join(f'<mtr>{row}</mtr>' for row in inner)}</mtable>"


def golden(cases: dict[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("inner", "expected"), list(cases.items()), ids=list(cases.values()))


@golden(
    {
        i("x"): "x",
        n("3.14"): "3.14",
        i("p") + o("<") + n("0.05"): "p < 0.05",
        i("p") + o(" < ") + n(" 0.05 "): "p < 0.05",
        i("p") + t("\u2009") + o("<") + t("\u00a0") + n("0.05"): "p < 0.05",
        i("p") + '<mspace width="1em"/>' + o("<") + n("0.050"): "p < 0.050",
        o("<") + n("0.01"): "< 0.01",
        o("≥") + i("x"): "≥ x",
        i("n") + o("="): "n =",
        i("a") + o("+") + i("b") + o("−") + i("c"): "a + b − c",
        i("a") + o("-") + n(1): "a - 1",
        i("m") + o("×") + i("n"): "m × n",
        n(3) + o("±") + n(2): "3 ± 2",
        o("±") + n(2): "±2",
        o("−") + n(1): "−1",
        i("x") + o("=") + o("−") + n(3): "x = −3",
        o("(") + o("−") + n(1) + o(")"): "(−1)",
        i("a") + o("×") + o("−") + i("b"): "a × −b",
        i("x") + o(",") + o("−") + i("y"): "x, −y",
        i("a") + o("/") + i("b"): "a/b",
        i("m") + o("·") + i("s"): "m·s",
        i("x") + o("∈") + o("[") + n(0) + o(",") + n(1) + o(")"): "x ∈ [0, 1)",
        n(1) + o(",") + '<mspace width="0.25em"/>' + n(2) + o(",") + o("…"): "1, 2, …",
        n(50) + o("%"): "50%",
        n(3) + o(":") + n(1): "3:1",
        i("x") + o("→") + i("y"): "x → y",
        i("f") + o(":") + i("X") + o("⟶") + i("Y"): "f:X ⟶ Y",
        i("g") + o("~") + i("N") + o("(") + n(0) + o(",") + n(1) + o(")"): "g ~ N(0, 1)",
        o("∼") + n(5): "∼5",
        i("y") + o("*"): "y*",
        i("y") + o("*") + o("=") + n(1): "y* = 1",
        i("y") + o("*") + i("z"): "y * z",
        up("Na") + o("+"): "Na+",
        i("f") + o("′") + o("(") + i("x") + o(")"): "f′(x)",
        i("n") + o("!"): "n!",
        i("v") + o("."): "v.",
        "<ms>gene</ms>": "gene",
    }
)
def test_white_space_is_that_of_the_operators(inner: str, expected: str) -> None:
    assert read(inner) == expected


@golden(
    {
        i("R", "M", "S", "E"): "RMSE",
        n(2) + i("x"): "2x",
        n(2) + o("\u2062") + i("x"): "2x",
        i("a") + o("\u2062") + i("b"): "ab",
        i("t") + o("\u2062") + i("u") + o("\u2062") + i("r"): "tur",
        i("a") + o("\u2063") + i("b"): "a, b",
        n(2) + o("\u2064") + e("mfrac", n(1), n(2)): "2 1/2",
        i("cos") + o("\u2061") + i("θ"): "cos θ",
        i("cos") + i("α"): "cos α",
        i("cos") + o("\u2061") + o("(") + i("θ") + o(")"): "cos(θ)",
        i("L") + i("cos") + i("θ") + i("d") + i("ω"): "L cos θdω",
        i("log") + n(2): "log 2",
        n(10) + i("lg") + i("d"): "10 lg d",
        t("mean") + t("yield"): "mean yield",
        t("mean ") + t("yield"): "mean yield",
        t(" if ") + i("x") + o(">") + n(0): "if x > 0",
        n("0.5") + i("cm"): "0.5 cm",
        n("5") + i("g"): "5g",
        i("Δ") + up("SWS"): "ΔSWS",
        t("D") + n(1): "D1",
        t("Fit") + n(1): "Fit1",
        t("a\u00a0b \n c"): "a b c",
        t("\u200b") + i("x"): "x",
        i("s") + o(".") + i("d") + o("."): "s.d.",
        i("𝐱") + o("=") + i("ℝ"): "𝐱 = ℝ",
        "<mi>x<malignmark/></mi>": "x",
        "p &lt; 0.05": "p < 0.05",
    }
)
def test_words_stand_apart_and_letters_together(inner: str, expected: str) -> None:
    assert read(inner) == expected


@golden(
    {
        e("msub", i("x"), i("i")): "x_i",
        e("msup", i("x"), n(2)): "x^2",
        e("msubsup", i("x"), i("i"), n(2)): "x_i^2",
        e("msup", n(10), o("−") + n(3)): "10^−3",
        e("msup", n(10), o("-") + n("1.5")): "10^-1.5",
        e("msub", i("x"), i("i") + o("+") + n(1)): "x_(i+1)",
        e("msub", i("x"), i("i") + o(",") + i("j")): "x_(i,j)",
        e("msub", i("x"), i("i", "j")): "x_ij",
        e("msub", i("x"), t("total soil")): "x_(total soil)",
        e("msup", i("θ"), o("(") + i("k") + o(")")): "θ^(k)",
        e("msup", i("e"), o("−") + i("a") + i("t")): "e^(−at)",
        e("msup", i("e"), e("mfrac", n(1), n(2))): "e^(1/2)",
        e("msup", i("x"), n(2) + i("n")): "x^(2n)",
        e("msub", i("σ"), e("msub", i("F"), n(2))): "σ_(F_2)",
        e("msup", e("msub", i("x"), i("i")), n(2)): "x_i^2",
        e("msup", i("a") + o("+") + i("b"), n(2)): "(a + b)^2",
        e("msup", o("(") + i("a") + o("+") + i("b") + o(")"), n(2)): "(a + b)^2",
        o("(") + i("a") + o("−") + i("b") + e("msup", o(")"), n(2)): "(a − b)^2",
        e("msup", e("mfrac", i("a"), i("b")), n(2)): "(a/b)^2",
        e("msub", i("d"), i("j", "j")) + i("k"): "d_jj k",
        i("W") + e("msup", i("W"), i("T")): "WW^T",
        e("msub", i("f"), i("i")) + o("(") + i("x") + o(")"): "f_i(x)",
        e("msup", i("x"), o("′")): "x′",
        e("msubsup", i("y"), i("i"), o("∗")): "y_i^∗",
        e("msup", n(30), o("∘")) + i("C"): "30° C",
        e("msub", i("log"), n(2)) + i("x"): "log_2 x",
        e("msup", i("sin"), n(2)) + i("θ"): "sin^2 θ",
        i("n") + e("msup", i("cos"), n(2)) + i("θ"): "n cos^2 θ",
        e("msup", o("∂"), n(2)) + i("f"): "∂^2 f",
        i("x") + e("msup", "", n(2)): "x^2",
        e("msup", i("x"), e("msup", i("y"), i("z"))): "x^(y^z)",
    }
)
def test_scripts_have_marks_and_brackets_where_they_are_long(inner: str, expected: str) -> None:
    assert read(inner) == expected


@golden(
    {
        e("msub", t("CO"), n(2)): "CO2",
        e("msub", "<mi>CH</mi>", n(4)): "CH4",
        i("C") + e("msub", i("O"), n(2)): "CO2",
        e("msub", i("H"), n(2)) + i("O"): "H2O",
        e("msubsup", t("NH"), n(4), o("+")): "NH4+",
        e("msubsup", up("SO"), n(4), n(2) + o("−")): "SO42−",
        e("msup", t("Ca"), n(2) + o("+")): "Ca2+",
        i("F") + e("msup", i("e"), n(3) + o("+")): "Fe3+",
        e("mover", t("V"), o("˙")) + e("msub", t("O"), n(2) + t("max")): "V̇O2max",
        e("msup", up("cm"), n(2)): "cm2",
        e("msup", t("s"), o("−") + n(1)): "s−1",
        e("msup", i("s"), n(2)): "s^2",
        e("msub", i("x"), n(1)): "x_1",
        e("msub", up("χ"), n(11)): "χ_11",
        e("msub", i("H"), n(0)): "H_0",
        e("msub", "", n(2)): "2",
        e("msup", "<mi/>", o("−") + n(47)): "−47",
        e("msubsup", "<mrow/>", n(3), o("−")): "3−",
        "<msup><mrow/><mn>14</mn></msup>" + up("C"): "14C",
        up("HCO") + n(3) + e("msup", "", o("−")): "HCO3−",
        f"<mmultiscripts>{up('C')}<mprescripts/><none/>{n(13)}</mmultiscripts>": "13C",
        f"<mmultiscripts>{up('Cu')}<mprescripts/><none/>{n(64)}</mmultiscripts>": "64Cu",
        f"<mmultiscripts>{up('C')}<mprescripts/>{n(6)}{n(14)}</mmultiscripts>": "14_6C",
        f"<mmultiscripts>{i('x')}{i('i')}{n(2)}</mmultiscripts>": "x_i^2",
        f"<mmultiscripts>{i('R')}{i('i')}<none/><none/>{i('j')}</mmultiscripts>": "R_i^j",
    }
)
def test_chemistry_units_and_scripts_of_the_text_before_are_as_in_running_text(
    inner: str, expected: str
) -> None:
    assert read(inner) == expected


@golden(
    {
        e("mfrac", i("a"), i("b")): "a/b",
        e("mfrac", i("a") + o("+") + i("b"), n(2) + i("c")): "(a + b)/(2c)",
        e("mfrac", n(1), i("c", "d")): "1/cd",
        e("mfrac", i("k") + o("/") + i("m"), i("n") + o("/") + i("N")): "(k/m)/(n/N)",
        e("mfrac", o("−") + n(1), i("x")): "−1/x",
        e("mfrac", n(1), o("−") + i("x")): "1/(−x)",
        e("mfrac", i("y"), e("msub", i("x"), i("i"))): "y/x_i",
        e("mfrac", i("∂") + i("f"), i("∂") + i("x")): "∂f/∂x",
        e("mfrac", t("weight of rice"), t("weight of paddy")): "(weight of rice)/(weight of paddy)",
        e("mfrac", t("RWC"), n(100)) + o("×") + n(5): "RWC/100 × 5",
        e("mfrac", n(1), i("n")) + e("munderover", o("∑"), i("i") + o("=") + n(1), i("n")): "1/n ∑_(i=1)^n",
        e("mfrac", o("(") + i("a") + o("−") + i("b") + o(")"), i("m")): "(a − b)/m",
        f'<mfrac linethickness="0">{i("n")}{i("k")}</mfrac>': "n; k",
        f'<mfrac bevelled="true">{n(1)}{n(2)}</mfrac>': "1/2",
        e("msqrt", i("x")): "√x",
        e("msqrt", n(12)): "√12",
        e("msqrt", i("x") + o("+") + i("y")): "√(x + y)",
        e("msqrt", o("(") + i("n") + o("−") + n(1) + o(")")): "√(n − 1)",
        e("msqrt", e("msup", i("x"), n(2))): "√(x^2)",
        f"<msqrt>{i('x')}{o('+')}{i('z')}</msqrt>": "√(x + z)",
        e("msqrt", i("x")) + i("y"): "√x y",
        e("mroot", i("x"), n(3)): "∛x",
        e("mroot", i("x") + o("+") + n(1), n(4)): "∜(x + 1)",
        e("mroot", i("x"), i("n")): "x^(1/n)",
        e("mroot", i("x") + i("y"), i("n") + o("+") + n(1)): "xy^(1/(n + 1))",
        e("mroot", i("x") + o("+") + i("y"), i("n")): "(x + y)^(1/n)",
    }
)
def test_fractions_and_roots_have_brackets_where_they_need_them(inner: str, expected: str) -> None:
    assert read(inner) == expected


@golden(
    {
        e("mover", i("x"), o("¯")): "x̄",
        e("mover", i("y"), o("^")): "ŷ",
        e("mover", i("a"), o("~")): "ã",
        e("mover", i("V"), o("·")): "V̇",
        e("mover", i("v"), o("→")): "v⃗",
        e("mover", i("u"), o("¨")): "ü",
        e("mover", e("msub", i("x"), i("i")), o("¯")): "x̄_i",
        e("msub", e("mover", i("x"), o("¯")), i("i")) + i("y"): "x̄_i y",
        e("mover", t("PAR"), o("¯")): "PAR",
        e("mover", e("mover", i("p"), o("^")), o("¯")): "p̂̄",
        e("munder", i("x"), o("_")): "x̲",
        e("munder", i("a") + o("+") + i("b"), o("⏟")): "a + b",
        e("munder", e("munder", i("a") + o("+") + i("b"), o("⏟")), t("cost")): "(a + b)_cost",
        e("munder", i("lim"), i("x") + o("→") + n(0)) + i("f"): "lim_(x→0) f",
        e("munder", o("max"), i("θ")) + o("|") + i("x") + o("|"): "max_θ|x|",
        e("munderover", o("∑"), i("i") + o("=") + n(1), i("n")) + e("msub", i("x"), i("i")): (
            "∑_(i=1)^n x_i"
        ),
        o("∑") + i("x"): "∑ x",
        e("msubsup", o("∫"), n(0), n(1))
        + i("f")
        + o("(")
        + i("x")
        + o(")")
        + i("d")
        + i("x"): "∫_0^1 f(x)dx",
        e("msub", o("∑"), i("i")) + o("∣") + i("x") + o("∣"): "∑_i ∣x∣",
        e("mover", o("→"), i("k")) + i("B"): "→^k B",
    }
)
def test_limits_are_scripts_and_accents_are_on_their_letter(inner: str, expected: str) -> None:
    assert read(inner) == expected


@golden(
    {
        "<mfenced><mi>a</mi><mi>b</mi></mfenced>": "(a, b)",
        '<mfenced open="[" close="]" separators=";|"><mi>a</mi><mi>b</mi><mi>c</mi></mfenced>': "[a; b|c]",
        f'<mfenced open="{{" close="" separators="">{i("a", "b")}</mfenced>': "{ab",
        f'<mi>E</mi><mfenced open="|" close="|"><mrow>{o("−")}{i("x")}</mrow></mfenced>': "E|−x|",
        o("|") + i("x") + o("|") + o("−") + i("y"): "|x| − y",
        i("p") + o("(") + i("x") + o(" | ") + i("v") + o(")"): "p(x|v)",
        i("f") + o("=") + o("(") + table((i("a"), i("b")), (i("c"), i("d"))) + o(")"): "f = (a, b; c, d)",
        i("f") + o("=") + table((i("a"), i("b")), (i("c"), i("d"))): "f = [a, b; c, d]",
        i("f")
        + o("=")
        + o("{")
        + table((i("x") + o(","), t("if ") + i("x") + o(">") + n(0)), (n(0), t("otherwise"))): (
            "f = {x, if x > 0; 0, otherwise"
        ),
        table((i("y"), o("=") + i("a") + o("+") + i("b"))): "y = a + b",
        table((i("y"), o("=") + i("a")), ("", o("=") + i("b"))): "y = a = b",
        table((i("y") + o("=") + i("a"),), (i("z") + o("=") + i("b"),)): "y = a; z = b",
        table((i("y") + o("=") + i("a") + o(","),), (i("z") + o("=") + i("b"),)): "y = a, z = b",
        e("munder", o("∑"), table((i("j") + o("=") + n(1),), (i("j") + o("≠") + i("i"),))) + i("x"): (
            "∑_(j=1;j≠i) x"
        ),
        f"<mtable><mlabeledtr><mtd>{t('(7)')}</mtd><mtd>{i('x')}</mtd></mlabeledtr></mtable>": "x",
    }
)
def test_fences_and_tables(inner: str, expected: str) -> None:
    assert read(inner) == expected


@golden(
    {
        "": "",
        "<mrow/>": "",
        t("\u00a0 \u2003"): "",
        i("a") + "<mphantom><mi>b</mi></mphantom>" + i("c"): "ac",
        f'<semantics>{i("x")}<annotation encoding="application/x-tex">\\bar y</annotation></semantics>': "x",
        f"<semantics>{i('x')}<annotation-xml><mi>q</mi></annotation-xml></semantics>": "x",
        f'<maction selection="2">{i("a", "b")}</maction>': "b",
        f'<maction selection="many">{i("a", "b")}</maction>': "a",
        f'<maction selection="9">{i("a", "b")}</maction>': "",
        f'<menclose notation="box">{i("x")}</menclose>': "x",
        f"<mstyle><mpadded>{i('x')}</mpadded></mstyle><merror>{t('y')}</merror>": "xy",
        '<mi>a</mi><mspace width="thinmathspace"/><mi>b</mi>': "a b",
        '<mi>a</mi><mspace width="0.1em"/><mi>d</mi>': "ad",
        '<mi>a</mi><mspace width="-2em"/><mi>e</mi>': "ae",
        '<mi>a</mi><mspace width="wide"/><mi>f</mi>': "af",
        '<mi>a</mi><mspace width="2pt"/><mi>g</mi>': "a g",
        '<mi>a</mi><mspace linebreak="newline"/><mi>h</mi>': "a h",
        "<unknown><mi>x</mi><odd>y</odd></unknown>": "xy",
        "<mfrac/>": "/()",
        "<msub><mi>x</mi></msub>": "x",
        "<msubsup/><mroot/><mmultiscripts/><munder/><mover/><mtable/><mfenced/>": "√()()",
    }
)
def test_what_is_not_seen_says_nothing_and_what_is_incomplete_does_no_harm(inner: str, expected: str) -> None:
    assert read(inner) == expected


LETTERS = st.sampled_from([*"abcxyzABCθσ", "max", "sin", "CO", "rate", "H"])
NUMBERS = st.sampled_from(["0", "1", "2", "17", "0.05"])
OPERATORS = st.sampled_from([*"+−-=<>≤×/·|()[]{},;.!%*∗~′∑∫", "\u2061", "\u2062", "\u2063", "", " "])
TOKENS = st.one_of(
    st.tuples(st.sampled_from(["mi", "mtext", "ms"]), LETTERS | st.text("ab \u2009\u200b", max_size=4)),
    st.tuples(st.just("mn"), NUMBERS),
    st.tuples(st.just("mo"), OPERATORS),
)
NESTED = {"mrow": 0, "mstyle": 0, "msqrt": 0, "mfenced": 0, "mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3}
NESTED |= {"munder": 2, "mover": 2, "munderover": 3}


@st.composite
def formulas(draw: st.DrawFn, depth: int = 4) -> etree._Element:
    """A tree of elements that say all of their letters and digits in the order of the source."""
    if depth == 0 or draw(st.booleans()):
        name, content = draw(TOKENS)
        element = etree.Element(name)
        element.text = content
        return element
    name = draw(st.sampled_from([*NESTED, "mtable"]))
    element = etree.Element(name)
    if name == "mtable":
        for _ in range(draw(st.integers(0, 2))):
            row = etree.SubElement(element, "mtr")
            for _ in range(draw(st.integers(0, 2))):
                etree.SubElement(row, "mtd").append(draw(formulas(depth - 1)))
        return element
    count = NESTED[name] or draw(st.integers(0, 4))
    element.extend([draw(formulas(depth - 1)) for _ in range(count)])
    return element


def letters(text: str) -> str:
    """The letters and digits of a text, without accents and letter-like ones (ˆ)."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(char for char in plain if char.isalnum() and unicodedata.category(char) != "Lm")


def characters(element: etree._Element) -> str:
    return "".join(map(str, element.itertext(etree.Element)))


@settings(max_examples=400, deadline=None)
@given(st.lists(formulas(), max_size=5))
def test_any_formula_gives_one_line_with_all_its_letters_and_digits(children: list[etree._Element]) -> None:
    math = etree.Element("math")
    math.extend(children)
    text = formula.formula_to_text(math)
    assert text == " ".join(text.split())
    assert letters(text) == letters(characters(math))
    assert not any(sign in text for sign in "\u2060\u2061\u2062\u2063\u200b")


@settings(max_examples=200, deadline=None)
@given(st.lists(TOKENS.filter(lambda token: token[1].strip() == token[1] and token[1]), max_size=8))
def test_blanks_around_operators_do_not_come_from_the_source(tokens: list[tuple[str, str]]) -> None:
    """With and without white space in the tokens ``mo`` and ``mn``, the same text."""
    tokens = [token for token in tokens if token[0] in ("mo", "mn")]
    plain = "".join(f"<{name}>{text.replace('<', '&lt;')}</{name}>" for name, text in tokens)
    spaced = "\n ".join(f"<{name}>{text.replace('<', '&lt;')}</{name}>" for name, text in tokens)
    assert read(plain) == formula.formula_to_text(etree.fromstring(f"<math>\n{spaced} </math>", PARSER))


@pytest.mark.parametrize("name", ["mrow", "msup", "msqrt", "mfrac", "mover", "munder", "mfenced", "mtable"])
def test_a_formula_of_any_depth_is_read(name: str) -> None:
    """Below the fiftieth element its letters come one after the other."""
    root = element = etree.Element("math")
    for _ in range(10_000):
        element = etree.SubElement(element, name)
        etree.SubElement(element, "mi").text = "x"
    started = time.process_time()
    text = formula.formula_to_text(root)
    assert time.process_time() - started < 20
    assert text.count("x") == 10_000
    assert text.endswith("x" * 9_900) or name != "mrow"


@pytest.mark.parametrize(
    "inner", ["<mo>(</mo>", "<mo>|</mo>", "<mo>−</mo>", "<mi>a</mi><mo>+</mo>", "<mi>a</mi>"]
)
def test_the_time_is_linear_in_the_length(inner: str) -> None:
    started = time.process_time()
    root = etree.fromstring(
        f"<math><msup><mfrac><mrow>{inner * 20_000}</mrow><mi>b</mi></mfrac>{n(2)}</msup></math>"
    )
    formula.formula_to_text(root)
    assert time.process_time() - started < 20


def _real() -> Iterator[tuple[str, etree._Element]]:
    for path in sorted(glob.glob(f"{DATA}/jats/**/*", recursive=True)):
        if not Path(path).is_file():
            continue
        data = Path(path).read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if b"math" in data:
            try:
                tree = etree.fromstring(data, PARSER)
            except etree.XMLSyntaxError:  # entities of a DTD: no matter here
                continue
            for math in tree.iter("math", f"{{{NAMESPACE}}}math"):
                yield path, math


@needs_data
def test_all_real_formulas_give_one_line_with_all_their_letters_and_digits() -> None:
    seen = 0
    for path, math in _real():
        text = formula.formula_to_text(math)
        assert text == " ".join(text.split()), path
        source = characters(math)
        if not any(
            True for _ in math.iter(*(f"{{{NAMESPACE}}}{x}" for x in ("mroot", "mmultiscripts", "semantics")))
        ):
            label = "".join(characters(row[0]) for row in math.iter(f"{{{NAMESPACE}}}mlabeledtr"))
            assert letters(text) == letters(source.replace(label, "", 1)), (path, text)
        seen += 1
    assert seen > 7000
