"""Formulas as text: golden cases, properties, hostile formulas and real ones."""

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

from bioshards.corpus import mathml
from tests.support.hypothesis_profiles import examples
from tests.support.real_data import DATA, needs_data

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)
NAMESPACE = "http://www.w3.org/1998/Math/MathML"


def parse_formula(inner: str) -> str:
    """Return the text of a formula, which is the same with and without MathML's namespace."""
    plain = mathml.formula_to_text(etree.fromstring(f"<math>{inner}</math>", PARSER))
    prefixed = inner.replace("</", "\0").replace("<", "<m:").replace("\0", "</m:")
    element = etree.fromstring(f'<m:math xmlns:m="{NAMESPACE}">{prefixed}</m:math>', PARSER)
    assert mathml.formula_to_text(element) == plain
    return plain


def mi(*identifiers: str) -> str:
    """Return an ``mi`` element for each argument."""
    return "".join(f"<mi>{letter}</mi>" for letter in identifiers)


def mn(number: object) -> str:
    return f"<mn>{number}</mn>"


def mo(operator: str) -> str:
    return f"<mo>{operator.replace('&', '&amp;').replace('<', '&lt;')}</mo>"


def mtext(words: str) -> str:
    return f"<mtext>{words}</mtext>"


def mi_normal(name: str) -> str:
    return f'<mi mathvariant="normal">{name}</mi>'


def wrap(name: str, *children: str) -> str:
    """Return an element whose children are wrapped into one row each."""
    return f"<{name}>{''.join(f'<mrow>{child}</mrow>' for child in children)}</{name}>"


def mtable(*rows: tuple[str, ...]) -> str:
    inner = ("".join(f"<mtd>{cell}</mtd>" for cell in row) for row in rows)
    return f"<mtable>{''.join(f'<mtr>{row}</mtr>' for row in inner)}</mtable>"


GOLDEN = {
    # Spacing follows the operators.
    mi("x"): "x",
    mn("3.14"): "3.14",
    mi("p") + mo("<") + mn("0.05"): "p < 0.05",
    mi("p") + mo(" < ") + mn(" 0.05 "): "p < 0.05",
    mi("p") + mtext("\u2009") + mo("<") + mtext("\u00a0") + mn("0.05"): "p < 0.05",
    mi("p") + '<mspace width="1em"/>' + mo("<") + mn("0.050"): "p < 0.050",
    mo("<") + mn("0.01"): "< 0.01",
    mo("≥") + mi("x"): "≥ x",
    mi("n") + mo("="): "n =",
    mi("a") + mo("+") + mi("b") + mo("−") + mi("c"): "a + b − c",
    mi("a") + mo("-") + mn(1): "a - 1",
    mi("m") + mo("×") + mi("n"): "m × n",
    mn(3) + mo("±") + mn(2): "3 ± 2",
    mo("±") + mn(2): "±2",
    mo("−") + mn(1): "−1",
    mi("x") + mo("=") + mo("−") + mn(3): "x = −3",
    mo("(") + mo("−") + mn(1) + mo(")"): "(−1)",
    mi("a") + mo("×") + mo("−") + mi("b"): "a × −b",
    mi("x") + mo(",") + mo("−") + mi("y"): "x, −y",
    mi("a") + mo("/") + mi("b"): "a/b",
    mi("m") + mo("·") + mi("s"): "m·s",
    mi("x") + mo("∈") + mo("[") + mn(0) + mo(",") + mn(1) + mo(")"): "x ∈ [0, 1)",
    mn(1) + mo(",") + '<mspace width="0.25em"/>' + mn(2) + mo(",") + mo("…"): "1, 2, …",
    mn(50) + mo("%"): "50%",
    mn(3) + mo(":") + mn(1): "3:1",
    mi("x") + mo("→") + mi("y"): "x → y",
    mi("f") + mo(":") + mi("X") + mo("⟶") + mi("Y"): "f:X ⟶ Y",
    mi("g") + mo("~") + mi("N") + mo("(") + mn(0) + mo(",") + mn(1) + mo(")"): "g ~ N(0, 1)",
    mo("∼") + mn(5): "∼5",
    mi("y") + mo("*"): "y*",
    mi("y") + mo("*") + mo("=") + mn(1): "y* = 1",
    mi("y") + mo("*") + mi("z"): "y * z",
    mi_normal("Na") + mo("+"): "Na+",
    mi("f") + mo("′") + mo("(") + mi("x") + mo(")"): "f′(x)",
    mi("n") + mo("!"): "n!",
    mi("v") + mo("."): "v.",
    "<ms>gene</ms>": "gene",
    # Words are separated, and letters joined.
    mi("R", "M", "S", "E"): "RMSE",
    mn(2) + mi("x"): "2x",
    mn(2) + mo("\u2062") + mi("x"): "2x",
    mi("a") + mo("\u2062") + mi("b"): "ab",
    mi("t") + mo("\u2062") + mi("u") + mo("\u2062") + mi("r"): "tur",
    mi("a") + mo("\u2063") + mi("b"): "a, b",
    mn(2) + mo("\u2064") + wrap("mfrac", mn(1), mn(2)): "2 1/2",
    mi("cos") + mo("\u2061") + mi("θ"): "cos θ",
    mi("cos") + mi("α"): "cos α",
    mi("cos") + mo("\u2061") + mo("(") + mi("θ") + mo(")"): "cos(θ)",
    mi("L") + mi("cos") + mi("θ") + mi("d") + mi("ω"): "L cos θdω",
    mi("log") + mn(2): "log 2",
    mn(10) + mi("lg") + mi("d"): "10 lg d",
    mtext("mean") + mtext("yield"): "mean yield",
    mtext("mean ") + mtext("yield"): "mean yield",
    mtext(" if ") + mi("x") + mo(">") + mn(0): "if x > 0",
    mn("0.5") + mi("cm"): "0.5 cm",
    mn("5") + mi("g"): "5g",
    mi("Δ") + mi_normal("SWS"): "ΔSWS",
    mtext("D") + mn(1): "D1",
    mtext("Fit") + mn(1): "Fit1",
    mtext("a\u00a0b \n c"): "a b c",
    mtext("\u200b") + mi("x"): "x",
    mi("s") + mo(".") + mi("d") + mo("."): "s.d.",
    mi("𝐱") + mo("=") + mi("ℝ"): "𝐱 = ℝ",
    "<mi>x<malignmark/></mi>": "x",
    "p &lt; 0.05": "p < 0.05",
    # Long scripts are bracketed.
    wrap("msub", mi("x"), mi("i")): "x_i",
    wrap("msup", mi("x"), mn(2)): "x^2",
    wrap("msubsup", mi("x"), mi("i"), mn(2)): "x_i^2",
    wrap("msup", mn(10), mo("−") + mn(3)): "10^−3",
    wrap("msup", mn(10), mo("-") + mn("1.5")): "10^-1.5",
    wrap("msub", mi("x"), mi("i") + mo("+") + mn(1)): "x_(i+1)",
    wrap("msub", mi("x"), mi("i") + mo(",") + mi("j")): "x_(i,j)",
    wrap("msub", mi("x"), mi("i", "j")): "x_ij",
    wrap("msub", mi("x"), mtext("total soil")): "x_(total soil)",
    wrap("msub", mtext("PM"), mn("2.5")): "PM2.5",
    mi("k") + mi("th"): "kth",
    mn("25") + mtext("th"): "25th",
    wrap("msup", mi("θ"), mo("(") + mi("k") + mo(")")): "θ^(k)",
    wrap("msup", mi("e"), mo("−") + mi("a") + mi("t")): "e^(−at)",
    wrap("msup", mi("e"), wrap("mfrac", mn(1), mn(2))): "e^(1/2)",
    wrap("msup", mi("x"), mn(2) + mi("n")): "x^(2n)",
    wrap("msub", mi("σ"), wrap("msub", mi("F"), mn(2))): "σ_(F_2)",
    wrap("msup", wrap("msub", mi("x"), mi("i")), mn(2)): "x_i^2",
    wrap("msup", mi("a") + mo("+") + mi("b"), mn(2)): "(a + b)^2",
    wrap("msup", mo("(") + mi("a") + mo("+") + mi("b") + mo(")"), mn(2)): "(a + b)^2",
    mo("(") + mi("a") + mo("−") + mi("b") + wrap("msup", mo(")"), mn(2)): "(a − b)^2",
    wrap("msup", wrap("mfrac", mi("a"), mi("b")), mn(2)): "(a/b)^2",
    wrap("msub", mi("d"), mi("j", "j")) + mi("k"): "d_jj k",
    mi("W") + wrap("msup", mi("W"), mi("T")): "WW^T",
    wrap("msub", mi("f"), mi("i")) + mo("(") + mi("x") + mo(")"): "f_i(x)",
    wrap("msup", mi("x"), mo("′")): "x′",
    wrap("msubsup", mi("y"), mi("i"), mo("∗")): "y_i^∗",
    wrap("msup", mn(30), mo("∘")) + mi("C"): "30° C",
    wrap("msub", mi("log"), mn(2)) + mi("x"): "log_2 x",
    wrap("msup", mi("sin"), mn(2)) + mi("θ"): "sin^2 θ",
    mi("n") + wrap("msup", mi("cos"), mn(2)) + mi("θ"): "n cos^2 θ",
    wrap("msup", mo("∂"), mn(2)) + mi("f"): "∂^2 f",
    mi("x") + wrap("msup", "", mn(2)): "x^2",
    wrap("msup", mi("x"), wrap("msup", mi("y"), mi("z"))): "x^(y^z)",
    # Chemistry, units and prescripts have no marks.
    wrap("msub", mtext("CO"), mn(2)): "CO2",
    wrap("msub", "<mi>CH</mi>", mn(4)): "CH4",
    mi("C") + wrap("msub", mi("O"), mn(2)): "CO2",
    wrap("msub", mi("H"), mn(2)) + mi("O"): "H2O",
    wrap("msubsup", mtext("NH"), mn(4), mo("+")): "NH4+",
    wrap("msubsup", mi_normal("SO"), mn(4), mn(2) + mo("−")): "SO42−",
    wrap("msup", mtext("Ca"), mn(2) + mo("+")): "Ca2+",
    mi("F") + wrap("msup", mi("e"), mn(3) + mo("+")): "Fe3+",
    wrap("mover", mtext("V"), mo("˙")) + wrap("msub", mtext("O"), mn(2) + mtext("max")): "V̇O2max",
    wrap("msup", mi_normal("cm"), mn(2)): "cm2",
    wrap("msup", mtext("s"), mo("−") + mn(1)): "s−1",
    wrap("msup", mi("s"), mn(2)): "s^2",
    wrap("msub", mi("x"), mn(1)): "x_1",
    wrap("msub", mi_normal("χ"), mn(11)): "χ_11",
    wrap("msub", mi("H"), mn(0)): "H_0",
    wrap("msub", "", mn(2)): "2",
    wrap("msup", "<mi/>", mo("−") + mn(47)): "−47",
    wrap("msubsup", "<mrow/>", mn(3), mo("−")): "3−",
    "<msup><mrow/><mn>14</mn></msup>" + mi_normal("C"): "14C",
    mi_normal("HCO") + mn(3) + wrap("msup", "", mo("−")): "HCO3−",
    f"<mmultiscripts>{mi_normal('C')}<mprescripts/><none/>{mn(13)}</mmultiscripts>": "13C",
    f"<mmultiscripts>{mi_normal('Cu')}<mprescripts/><none/>{mn(64)}</mmultiscripts>": "64Cu",
    f"<mmultiscripts>{mi_normal('C')}<mprescripts/>{mn(6)}{mn(14)}</mmultiscripts>": "14_6C",
    f"<mmultiscripts>{mi('x')}{mi('i')}{mn(2)}</mmultiscripts>": "x_i^2",
    f"<mmultiscripts>{mi('R')}{mi('i')}<none/><none/>{mi('j')}</mmultiscripts>": "R_i^j",
    # Fractions and roots are bracketed where needed.
    wrap("mfrac", mi("a"), mi("b")): "a/b",
    wrap("mfrac", mi("a") + mo("+") + mi("b"), mn(2) + mi("c")): "(a + b)/(2c)",
    wrap("mfrac", mn(1), mi("c", "d")): "1/cd",
    wrap("mfrac", mi("k") + mo("/") + mi("m"), mi("n") + mo("/") + mi("N")): "(k/m)/(n/N)",
    wrap("mfrac", mo("−") + mn(1), mi("x")): "−1/x",
    wrap("mfrac", mn(1), mo("−") + mi("x")): "1/(−x)",
    wrap("mfrac", mi("y"), wrap("msub", mi("x"), mi("i"))): "y/x_i",
    wrap("mfrac", mi("∂") + mi("f"), mi("∂") + mi("x")): "∂f/∂x",
    wrap("mfrac", mtext("weight of rice"), mtext("weight of paddy")): "(weight of rice)/(weight of paddy)",
    wrap("mfrac", mtext("RWC"), mn(100)) + mo("×") + mn(5): "RWC/100 × 5",
    wrap("mfrac", mn(1), mi("n"))
    + wrap("munderover", mo("∑"), mi("i") + mo("=") + mn(1), mi("n")): "1/n ∑_(i=1)^n",
    wrap("mfrac", mo("(") + mi("a") + mo("−") + mi("b") + mo(")"), mi("m")): "(a − b)/m",
    f'<mfrac linethickness="0">{mi("n")}{mi("k")}</mfrac>': "n; k",
    f'<mfrac bevelled="true">{mn(1)}{mn(2)}</mfrac>': "1/2",
    wrap("msqrt", mi("x")): "√x",
    wrap("msqrt", mn(12)): "√12",
    wrap("msqrt", mi("x") + mo("+") + mi("y")): "√(x + y)",
    wrap("msqrt", mo("(") + mi("n") + mo("−") + mn(1) + mo(")")): "√(n − 1)",
    wrap("msqrt", wrap("msup", mi("x"), mn(2))): "√(x^2)",
    f"<msqrt>{mi('x')}{mo('+')}{mi('z')}</msqrt>": "√(x + z)",
    wrap("msqrt", mi("x")) + mi("y"): "√x y",
    wrap("mroot", mi("x"), mn(3)): "∛x",
    wrap("mroot", mi("x") + mo("+") + mn(1), mn(4)): "∜(x + 1)",
    wrap("mroot", mi("x"), mi("n")): "x^(1/n)",
    wrap("mroot", mi("x") + mi("y"), mi("n") + mo("+") + mn(1)): "xy^(1/(n + 1))",
    wrap("mroot", mi("x") + mo("+") + mi("y"), mi("n")): "(x + y)^(1/n)",
    # Limits are scripts, and accents are combined.
    wrap("mover", mi("x"), mo("¯")): "x̄",
    wrap("mover", mi("y"), mo("^")): "ŷ",
    wrap("mover", mn("3"), mo("¯")): "3̄",
    wrap("mover", mi("a"), mo("~")): "ã",
    wrap("mover", mi("V"), mo("·")): "V̇",
    wrap("mover", mi("v"), mo("→")): "v⃗",
    wrap("mover", mi("u"), mo("¨")): "ü",
    wrap("mover", wrap("msub", mi("x"), mi("i")), mo("¯")): "x̄_i",
    wrap("msub", wrap("mover", mi("x"), mo("¯")), mi("i")) + mi("y"): "x̄_i y",
    wrap("mover", mtext("PAR"), mo("¯")): "PAR",
    wrap("mover", wrap("mover", mi("p"), mo("^")), mo("¯")): "p̂̄",
    wrap("munder", mi("x"), mo("_")): "x̲",
    wrap("munder", mi("a") + mo("+") + mi("b"), mo("⏟")): "a + b",
    wrap("munder", wrap("munder", mi("a") + mo("+") + mi("b"), mo("⏟")), mtext("cost")): "(a + b)_cost",
    wrap("munder", mi("lim"), mi("x") + mo("→") + mn(0)) + mi("f"): "lim_(x→0) f",
    wrap("munder", mo("max"), mi("θ")) + mo("|") + mi("x") + mo("|"): "max_θ|x|",
    wrap("munderover", mo("∑"), mi("i") + mo("=") + mn(1), mi("n")) + wrap("msub", mi("x"), mi("i")): (
        "∑_(i=1)^n x_i"
    ),
    mo("∑") + mi("x"): "∑ x",
    wrap("msubsup", mo("∫"), mn(0), mn(1))
    + mi("f")
    + mo("(")
    + mi("x")
    + mo(")")
    + mi("d")
    + mi("x"): "∫_0^1 f(x)dx",
    wrap("msub", mo("∑"), mi("i")) + mo("∣") + mi("x") + mo("∣"): "∑_i ∣x∣",
    wrap("mover", mo("→"), mi("k")) + mi("B"): "→^k B",
    # Fences and tables.
    "<mfenced><mi>a</mi><mi>b</mi></mfenced>": "(a, b)",
    f"<mfenced>{mi('a')}{mo(',')}{mi('b')}</mfenced>": "(a, b)",
    '<mfenced open="[" close="]" separators=";|"><mi>a</mi><mi>b</mi><mi>c</mi></mfenced>': "[a; b|c]",
    f'<mfenced open="{{" close="" separators="">{mi("a", "b")}</mfenced>': "{ab",
    f'<mi>E</mi><mfenced open="|" close="|"><mrow>{mo("−")}{mi("x")}</mrow></mfenced>': "E|−x|",
    mo("|") + mi("x") + mo("|") + mo("−") + mi("y"): "|x| − y",
    mi("p") + mo("(") + mi("x") + mo(" | ") + mi("v") + mo(")"): "p(x|v)",
    mi("f")
    + mo("=")
    + mo("(")
    + mtable((mi("a"), mi("b")), (mi("c"), mi("d")))
    + mo(")"): "f = (a, b; c, d)",
    mi("f") + mo("=") + mtable((mi("a"), mi("b")), (mi("c"), mi("d"))): "f = [a, b; c, d]",
    mi("f")
    + mo("=")
    + mo("{")
    + mtable((mi("x") + mo(","), mtext("if ") + mi("x") + mo(">") + mn(0)), (mn(0), mtext("otherwise"))): (
        "f = {x, if x > 0; 0, otherwise"
    ),
    mtable((mi("y"), mo("=") + mi("a") + mo("+") + mi("b"))): "y = a + b",
    mtable((mi("y"), mo("=") + mi("a")), ("", mo("=") + mi("b"))): "y = a = b",
    mtable((mi("y") + mo("=") + mi("a"),), (mi("z") + mo("=") + mi("b"),)): "y = a; z = b",
    mtable((mi("y") + mo("=") + mi("a") + mo(","),), (mi("z") + mo("=") + mi("b"),)): "y = a, z = b",
    wrap("munder", mo("∑"), mtable((mi("j") + mo("=") + mn(1),), (mi("j") + mo("≠") + mi("i"),))) + mi("x"): (
        "∑_(j=1;j≠i) x"
    ),
    f"<mtable><mlabeledtr><mtd>{mtext('(7)')}</mtd><mtd>{mi('x')}</mtd></mlabeledtr></mtable>": "x",
    # Invisible and incomplete elements.
    "": "",
    "<mrow/>": "",
    mtext("\u00a0 \u2003"): "",
    mi("a") + "<mphantom><mi>b</mi></mphantom>" + mi("c"): "ac",
    f'<semantics>{mi("x")}<annotation encoding="application/x-tex">\\bar y</annotation></semantics>': "x",
    f"<semantics>{mi('x')}<annotation-xml><mi>q</mi></annotation-xml></semantics>": "x",
    f'<maction selection="2">{mi("a", "b")}</maction>': "b",
    f'<maction selection="many">{mi("a", "b")}</maction>': "a",
    f'<maction selection="9">{mi("a", "b")}</maction>': "",
    f'<menclose notation="box">{mi("x")}</menclose>': "x",
    f"<mstyle><mpadded>{mi('x')}</mpadded></mstyle><merror>{mtext('y')}</merror>": "xy",
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


@pytest.mark.parametrize(("inner", "expected"), list(GOLDEN.items()), ids=list(GOLDEN.values()))
def test_formulas_as_text(inner: str, expected: str) -> None:
    assert parse_formula(inner) == expected


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
    """Draw a tree of elements whose letters and digits all appear in the text, in the order of the source."""
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


def keep_letters(text: str) -> str:
    """Return the letters and digits of a text, without accents and letter-like ones (ˆ)."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(char for char in plain if char.isalnum() and unicodedata.category(char) != "Lm")


def collect_text(element: etree._Element) -> str:
    return "".join(map(str, element.itertext(etree.Element)))


@settings(max_examples=examples(400))
@given(st.lists(formulas(), max_size=5))
def test_formula_is_one_line_with_all_letters_and_digits(children: list[etree._Element]) -> None:
    math = etree.Element("math")
    math.extend(children)
    text = mathml.formula_to_text(math)
    assert text == " ".join(text.split())
    assert keep_letters(text) == keep_letters(collect_text(math))
    assert not any(sign in text for sign in "\u2060\u2061\u2062\u2063\u200b")


@settings(max_examples=examples(200))
@given(st.lists(TOKENS.filter(lambda token: token[1].strip() == token[1] and token[1]), max_size=8))
def test_spacing_is_independent_of_white_space_in_the_source(tokens: list[tuple[str, str]]) -> None:
    """White space within ``mo`` and ``mn`` does not change the text."""
    tokens = [token for token in tokens if token[0] in ("mo", "mn")]
    plain = "".join(f"<{name}>{text.replace('<', '&lt;')}</{name}>" for name, text in tokens)
    spaced = "\n ".join(f"<{name}>{text.replace('<', '&lt;')}</{name}>" for name, text in tokens)
    assert parse_formula(plain) == mathml.formula_to_text(
        etree.fromstring(f"<math>\n{spaced} </math>", PARSER)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["mrow", "msup", "msqrt", "mfrac", "mover", "munder", "mfenced", "mtable"])
def test_deep_formula_is_read(name: str) -> None:
    """Below the fiftieth level the letters are concatenated."""
    root = element = etree.Element("math")
    for _ in range(10_000):
        element = etree.SubElement(element, name)
        etree.SubElement(element, "mi").text = "x"
    started = time.process_time()
    text = mathml.formula_to_text(root)
    assert time.process_time() - started < 20
    assert text.count("x") == 10_000
    assert text.endswith("x" * 9_900) or name != "mrow"


@pytest.mark.parametrize(
    "inner", ["<mo>(</mo>", "<mo>|</mo>", "<mo>−</mo>", "<mi>a</mi><mo>+</mo>", "<mi>a</mi>"]
)
def test_reading_takes_linear_time(inner: str) -> None:
    started = time.process_time()
    root = etree.fromstring(
        f"<math><msup><mfrac><mrow>{inner * 20_000}</mrow><mi>b</mi></mfrac>{mn(2)}</msup></math>"
    )
    mathml.formula_to_text(root)
    assert time.process_time() - started < 20


def iterate_real_formulas() -> Iterator[tuple[str, etree._Element]]:
    for path in sorted(glob.glob(f"{DATA}/jats/**/*", recursive=True)):
        if not Path(path).is_file():
            continue
        data = Path(path).read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if b"math" in data:
            try:
                tree = etree.fromstring(data, PARSER)
            except etree.XMLSyntaxError:  # entities of a DTD
                continue
            for math in tree.iter("math", f"{{{NAMESPACE}}}math"):
                yield path, math


@needs_data
def test_real_formulas_are_one_line_with_all_letters_and_digits() -> None:
    num_formulas = 0
    for path, math in iterate_real_formulas():
        text = mathml.formula_to_text(math)
        assert text == " ".join(text.split()), path
        source = collect_text(math)
        if not any(
            True for _ in math.iter(*(f"{{{NAMESPACE}}}{x}" for x in ("mroot", "mmultiscripts", "semantics")))
        ):
            label = "".join(collect_text(row[0]) for row in math.iter(f"{{{NAMESPACE}}}mlabeledtr"))
            assert keep_letters(text) == keep_letters(source.replace(label, "", 1)), (path, text)
        num_formulas += 1
    assert num_formulas > 7000
