"""Classifier of boundary candidates: logistic regression on the classes and shapes of the surrounding words.

A word is classified by the tables of known words (words_before_stop.txt, words_after_stop.txt), or else by
patterns; its shape is that of its letters. The meaning of both for a boundary is learned: the weights in
boundary_weights.tsv are fitted by tests/bench/fit_sentences.py on articles and abstracts with annotated
sentences, and on marks that were read. To teach the splitter a word, add it to its family and refit.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from importlib import resources
from typing import Final, NamedTuple, TypeVar

# Classes of words


def _read_words(name: str) -> dict[str, list[str]]:
    """Return the words of a table by class; a blank line ends a class."""
    table = (resources.files(__package__) / name).read_text(encoding="utf-8")
    words_by_class = {}
    for entry in table.split("\n\n"):
        lines = [line for line in entry.splitlines() if not line.startswith("#")]
        word_class, *words = " ".join(lines).split()
        words_by_class[word_class.removesuffix(":")] = words
    return words_by_class


WORD_FAMILIES: Final = _read_words("words_before_stop.txt")
"""Words before a full stop, without it, by family."""
_WORDS_AFTER_STOP: Final = _read_words("words_after_stop.txt")
_COMMON_WORDS: Final = frozenset(_WORDS_AFTER_STOP["common"])
_PERSONS: Final = frozenset(_WORDS_AFTER_STOP["person"])
_BEFORE_THINGS: Final = frozenset(_WORDS_AFTER_STOP["in"])
_LETTERED: Final = frozenset(_WORDS_AFTER_STOP["lettered"])

_PATTERNS_BEFORE_STOP: Final = {
    "initials": r"(?:[A-Z][a-z]?\.?[-–]?){1,4}[.–-][A-Z][a-z]?|[A-Z]\.[-–][a-z]",  # J.M  A.-K.H  J.-I  Y.-j
    "capital": r"[A-Z]",  # an initial, a vitamin, a panel, the genus of a species
    "letter": r"[a-z]",
    "zero": r"(?:[A-Za-z]?[<>=≥≤])?0",  # a blank in a decimal number: p<0. 01
    # of a list or a legend: 1  2)  (a)  ii  A,B  (C-E)
    "item": r"\d{1,2}|\(?(?:\d{1,2}|[A-Za-z]|[ivx]{2,4})\)|[ivx]{2,4}|\(?[A-Za-z](?:[,–-][A-Za-z])+\)?",
    "number": r"[<>=~≥≤±+−-]*[\d.,·–-]*\d%?",
    "dotted": r"[A-Za-z](?:\.[A-Za-z])+",
    "short": r"[a-z]{2,3}",
    "species": r"[A-Za-z][a-z]{3,}-t",  # a type of pollen: Genus minor-t. and others
    "word": r"[a-z][a-z'’-]{3,}",
    "Short": r"[A-Z][a-z]{1,3}",
    "Word": r"[A-Z][a-z'’-]{4,}",
    "ACRONYM": r"[A-Z]{2,}s?",
    "capital at end": r".*[-–—/+][A-Z]",
    "closed": r".*[)\]}]",
    "quoted": r".*[\"'”’]",
    "blank": r"",  # of text cut into tokens: was seen .
    "dots": r"[.…]+",
    "genus": rf".*[-–—](?:{'|'.join(WORD_FAMILIES['genus'])})",  # wheat-Th
    "reference": r".*[–—a-z](?:Eq|Fig|Tab)s?",  # Information—Fig  inFig
    "rank": r".*[-–—][\"“‘']Ca",  # Genus-“Ca. Genus minor”
    "trailing dots": r".*[^.…](?:\.\.|…)",  # he said... and
    "inner dot": r".*\..*",
}
"""Classes of words before a full stop outside the families: the first pattern that matches the whole word."""

_PATTERNS_AFTER_STOP: Final = {
    "in citation": r"doi(?::.*)?|Vol\.?|Nos\.",  # Gulls of islands. Birds 2018. Vol 3. doi: 10.5555/3
    "dash": r"[–—-]",
    "n=": r"[nNpPrR][=<>≤].*|[pP][‐-][vV]alues?",
    "Tandem": r"Tandem",  # X! Tandem, a program
    "Dr": r"(?:Dr|Mr|Prof)\.",
    "Drs": r"(?:Drs|Mrs|Ms)\.",
    "ellipsis": r"…",
    "dots": r"[.…!?]+",
    "initials": r"[A-Z](?:\.[-–]?[A-Z])*\.(?:[-–][A-Z]\.?)?[,;]?",
    "capital": r"[A-Z]",
    "panel": r"\(?[A-Za-z](?:[-–,&][A-Za-z]?)*\)[.:,;]?|[a-z](?:[-–,][a-z])?[:.]|\([a-zA-Z],"
    r"|\([A-Za-z]\)(?:[-–,]\([A-Za-z]\))+",  # (a)–(c)
    "(2),": r"\(\d[^()]*\),",
    "(2).": r"\(\d{1,2}\)[.:]",
    "item": r"\(?\d{1,2}[).]|\(?[ivx]{1,4}\)",
    "year.": r"(?:1[789]|20)\d\d[.,;]",  # of a name's author: Fl. Boem. 2: 96. 1793.
    "number": r"[\d.,:–-]+[;:),]*",
    "amount": r"\d.*",
    "S1": r"S\d{1,2}[A-Z]?(?:[-–][A-Z])?[).,:;]*",
    "variable": r"[A-Z][_^].*",
    "serovar": r"(?:Typhimurium|Enteritidis|Infantis|Typhi|Paratyphi|Abortusovis|Agona|Anatum|Bareilly"
    r"|Braenderup|Cerro|Choleraesuis|Derby|Dublin|Gallinarum|Hadar|Heidelberg|Javiana|Kentucky|Mbandaka"
    r"|Montevideo|Muenchen|Newport|Oranienburg|Pullorum|Saintpaul|Schwarzengrund|Senftenberg|Virchow"
    r"|Weltevreden|GG)[.,;)]?",  # S. Typhimurium, L. GG
    "epithet": r"[A-Z][a-z]{2,}(?:[^\Waeiou]i|ii|um|iae)|Albopictus|Africanus|Aureus",
    "Adverb,": r"[A-Z][a-z]+(?:[nrt]al|[aeiou]te|nt|[ao]us|iv|[eu]d|ng|ab|ib)ly,",  # Eventually,
    "Name,": r"[A-Z][\w'’-]*[,;]",
    "Label:": r"[A-Z][\w'’/–—-]*:",  # of authors' contributions, of a structured abstract
    "Word": r"[A-Z][a-z]*(?:[st]ion|ment|ing|[^aeiou]ed|[sl]is|ness|[ae]nce|ity|[ai]ry|logy|gen|ase|in|ic|al"
    r"|ous|ive|ly|s)s?[.)]?",  # no surname, by its ending
    "Name": r"(?:Mac|Mc|De|Di|La|Le|Van|[DO]['’])?[A-Z][a-z'’]+(?:[-–][A-Z][a-z]+)*[.)]?",
    "ACRONYM": r"[A-Z]{2,}s?",
    "Mixed": r"[A-Z].*",
    "greek": r"(?:alpha|beta|gamma|delta|epsilon|zeta|theta|kappa|lambda|sigma|omega|[α-ω])(?:[^a-z].*)?",
    "per unit": r"(?:[kmµμn]?g|[mµμ]?[lL]|[mck]?m|h|min|s|d|day|ha|plant)[-−–][1-3](?!\d).*",  # mL-1
    "cross": r"[a-z]{3,}[-–][A-Z]\.",  # G. minor-G. major hybrids
    "gene": r"[a-z]{1,6}-?[A-Z0-9].*",  # p53  mRNA  cDNA  iPSC  miR-21
    "prefixed": r"[a-z]{1,2}-.*",  # c-jun  m-calpain  n-3
    "letter": r"[a-z]",
    "letter,": r"[a-z][′']?,",
    "code": r"[a-z]{2,4}[,:=]",  # of a key: ac, anterior crista; lc, lateral crista
    "caseless": r"[^\W\d_a-zA-Zα-ω].*",  # of Arabic, Hebrew, Georgian
    "small": r"[^\W\d_].*",
    "mark": r"[*†‡¶•●■]+.*|#+:|\(ABSTRACT",  # (ABSTRACT TRUNCATED AT 250 WORDS)
    "(Family": r"\([A-Z][a-z]+(?:aceae|formes|idae|inae|ptera)[,:;)].*",  # Genus minor Kom. (Fabaceae)
    "(Word": r"[(\[{][A-Z].*",
    "(small": r"[(\[{][a-z].*",
    "citation": r"\[\d[\d,–-]*\]?[.,;:]?",
    "[number": r"\[\d.*",
    "(": r"[(\[{].*",
    "“Word": r"[\"'“‘«¡¿]+[A-Z].*",
    "“": r"[\"'“‘«].*",
    "genotype": r"[+−–-]+/.*",
    "paragraph": r"§.*",
    "sign": r"[#±×÷<>=~≈≤≥%‰°/+–−-].*",
}
"""Classes of words after a full stop outside the tables."""

_OPENING_MARKS: Final = "([{\"'“‘«"
_MIN_LONG_WORD: Final = 5
"""Small letters of a word that is no numeral, label or abbreviation: before a stop, it is a "word"."""
_NON_ASCII_LETTER: Final = re.compile(r"[^\W\d_a-zA-Zα-ω]")
_MAX_WORD_LENGTH: Final = 40
"""Characters of a word that are used: the last before a full stop, the first after it."""
MAX_CACHED: Final = 1 << 16
"""Entries of a cache of words or contexts: more than a file has, at most 10 MB."""


class WordClasses(dict[str, str]):
    """Cache from word to class, computed on demand.

    Args:
        table: classes of known words.
        patterns: patterns of other words, by class.
        opening_marks: marks before a word that are ignored.
        long_word: class of words of :data:`_MIN_LONG_WORD` small letters, a third of all, or "" for none.
    """

    def __init__(
        self, table: dict[str, str], patterns: dict[str, str], opening_marks: str = "", long_word: str = ""
    ) -> None:
        self._table, self._class_names, self._opening_marks = table, list(patterns), opening_marks
        self._long_word = long_word
        self._match = re.compile(
            "|".join(rf"(?:{pattern})\Z()" for pattern in patterns.values()), re.DOTALL
        ).match

    def __missing__(self, word: str) -> str:
        if len(word) > _MAX_WORD_LENGTH:
            return self[word[-_MAX_WORD_LENGTH:]]
        if len(self) >= MAX_CACHED:
            self.clear()
        word_class = self._table.get(word)
        if word_class is None and self._long_word and len(word) >= _MIN_LONG_WORD and word.islower():
            word_class = self._long_word if word.isascii() and word.isalpha() else None
        if word_class is None:
            stripped = word if word.endswith((")", "]")) else word.lstrip(self._opening_marks)
            word_class = self._table.get(stripped) or self._match_patterns(stripped)
        self[word] = word_class
        return word_class

    def _match_patterns(self, word: str) -> str:
        match = self._match(word if word.isascii() else _NON_ASCII_LETTER.sub(_as_ascii, word))
        return self._class_names[match.lastindex - 1] if match and match.lastindex else "other"


def _as_ascii(letter: re.Match[str]) -> str:
    """Return an ASCII letter of the same case: only case matters for accented and Cyrillic words."""
    return "A" if letter[0].isupper() else "a" if letter[0].islower() else letter[0]


CLASS_BEFORE_STOP: Final = WordClasses(
    {word: family for family, words in WORD_FAMILIES.items() for word in words}
    | {"(DC": "author"}  # Genus minor (DC.) Stapf, but: Washington DC. The
    | dict.fromkeys(("“Ca", '"Ca', "‘Ca", "'Ca"), "rank"),  # “Ca. Genus minor”, of Candidatus
    _PATTERNS_BEFORE_STOP,
    _OPENING_MARKS,
    "word",
)
"""Class of a word before a full stop, given without it; opening brackets and quotes are ignored."""

CLASS_AFTER_STOP: Final = WordClasses(
    {
        **{word + mark: f"Opener{mark}" for word in _WORDS_AFTER_STOP["Opener"] for mark in ("", ",")},
        **dict.fromkeys(_COMMON_WORDS, "common"),
        # A word of two letters is a code of a legend: is, inner segments.
        **{f"{word},": "common" for word in _COMMON_WORDS if len(word) > 2},
        "a,": "letter,",  # of panels: a, b Nests of gulls
        **dict.fromkeys(_WORDS_AFTER_STOP["Figure"], "Figure"),
        **dict.fromkeys(_WORDS_AFTER_STOP["surname"], "Name"),
        "Strain": "strain",
        **{word + mark: "author" for word in WORD_FAMILIES["author"] for mark in ("", ".", ",", ".,")},
    },
    _PATTERNS_AFTER_STOP,
)
"""Class of a word after a full stop."""


_Value = TypeVar("_Value")


class WordCache(dict[str, _Value]):
    """Cache from a word to what a function returns for it, computed on demand; long words are not kept."""

    def __init__(self, compute: Callable[[str], _Value]) -> None:
        self._compute = compute

    def __missing__(self, word: str) -> _Value:
        value = self._compute(word)
        if len(word) <= _MAX_WORD_LENGTH:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[word] = value
        return value


_SUPPLEMENT_NUMBER: Final = re.compile(r"S\d")
"""Number of a supplement before its kind: S4 Fig."""


_LETTER_AT_END: Final = re.compile(r"(?:\A| )[A-Z],?\Z")
_PANELS_BEFORE_LAST: Final = re.compile(r"\(?\d{0,2}[A-Za-z](?:[–-]?[A-Za-z])?,")
"""Letters before the last of several: (Fig. 1A, B. Gulls nest."""


def _classify_second_word_before(word: str) -> str:
    if not word:
        return "none"
    if word in (".", "...", "…"):
        return "dots"
    if _PANELS_BEFORE_LAST.fullmatch(word):
        return "panel,"
    if word[-1] in ",;:." and len(word) > 1:
        if word[-1] == ":" and word[-2].isdigit():
            return "number:"  # 1: 10, 2031: 5
        return "Name" + word[-1] if word[0].isupper() else word[-1]
    if word[0].isdigit() and word[-1] != ")":
        return "number"
    if word in ("and", "&"):
        return "and"
    if word == "ex":
        return "ex"
    if word.lower() in _PERSONS:
        return "person"
    if word in _BEFORE_THINGS:
        return "in"
    if word in _COMMON_WORDS:
        return "common"
    if word.lower() in _LETTERED:
        return "lettered"
    if _SUPPLEMENT_NUMBER.match(word):
        return "supplement"
    if word[0] in _OPENING_MARKS:
        return "("
    if word.islower():
        return "small"
    return "Name" if word.istitle() and word.isalpha() else "other"


def _classify_second_word_after(word: str) -> str:
    if not word:
        return "none"
    if word[0].isupper():
        return "initial" if word[1:2] == "." else "Name," if word[-1] in ",;" else "Name"
    return "small" if word[0].islower() else "number" if word[0].isdigit() else "other"


CLASS_OF_SECOND_WORD_BEFORE: Final = WordCache(_classify_second_word_before)
"""Class of the second word before a full stop: what an initial or a number belongs to."""

CLASS_OF_SECOND_WORD_AFTER: Final = WordCache(_classify_second_word_after)
"""Class of the second word after a full stop."""


# Contexts of boundary candidates

CERTAIN_CLASSES: Final = frozenset({"word", "closed", "ACRONYM", "other"})
CAPITALS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""A mark between a word of :data:`CERTAIN_CLASSES` and one of these letters is a boundary without the model;
in the training texts this is wrong for 14 of 19,950.
"""

_CLAUSE_STARTS: Final = frozenset({"none", ":", ";", "Name:", "Name;"})
"""Classes after which a word starts its sentence or clause: the position of list numbers."""
_PANELS: Final = re.compile(r"(?:\(?[A-Za-z](?:[,–-][A-Za-z])*\)?,? (?:and |& )?){1,8}")
"""Letters of panels before the last one at the start of a legend: A, B and C. Cells were grown."""
_MAX_PANELS_LENGTH: Final = 30
_JOINING_WORDS: Final = frozenset({"and", "&", "–", "-", "to"})
"""Words between the letters of panels in brackets: (a and b), (C – D)."""
_PANEL_IN_BRACKETS: Final = re.compile(r"[A-Za-z](?:[,–-][A-Za-z])*\)")
"""Panel before a closing bracket, which may have no opening one: A). Cells were grown."""
_MAX_LOOKBACK: Final = 5_000
"""Characters of a sentence that are looked at: time is linear where no candidate is a boundary, too."""
_BRACKET_LOOKBACK: Final = 200
"""Characters before the mark that are searched for an open bracket."""

BoundaryContext = tuple[str, str, str, str, str, str]
"""Classes of the second word before, the word before, the mark, the word after and the second word after, and
the position in the sentence.
"""

NearbyWords = tuple[str, str, str, str, str, str]
"""The words at :data:`POSITIONS` from a mark; "" beyond the ends of the sentence before and of the line."""

POSITIONS: Final = (-3, -2, -1, 1, 2, 3)

_LENGTH_STEP: Final = 25
_MAX_LENGTH: Final = 6
"""Steps of the longest lengths that are told apart."""


class BoundaryCandidate(NamedTuple):
    """A mark that may end a sentence, and what is around it: the input of the model.

    Attributes:
        context: classes of the words around it.
        words: the words themselves.
        length: length of the sentence up to the mark, in steps of :data:`_LENGTH_STEP` characters.
    """

    context: BoundaryContext
    words: NearbyWords
    length: int


def extract_candidate(text: str, start: int, stop: int, after: int) -> BoundaryCandidate:
    """Return a boundary candidate.

    Args:
        text: a line.
        start: offset of the sentence's start.
        stop: offset of the mark.
        after: offset of the word after the mark.
    """
    context = _extract_context(text, start, stop, after)
    return BoundaryCandidate(context, _extract_words(text, start, stop, after), _measure_length(start, stop))


def _extract_context(text: str, start: int, stop: int, after: int) -> BoundaryContext:
    """Return the classes of what is around a mark; arguments as for :func:`extract_candidate`."""
    near = start if stop - start <= _MAX_LOOKBACK else stop - _MAX_LOOKBACK
    # Text that was cut into tokens has a blank before the mark.
    sentence = text[near : stop - 1 if text[stop - 1] == " " and stop - 1 > near else stop]
    has_bracket = "(" in sentence or "[" in sentence
    words = sentence.rsplit(" ", 2)
    word = words[-1]
    next_words = text[after : after + 2 * _MAX_WORD_LENGTH].split(" ", 2)
    next_word, word_beyond = next_words[0], next_words[1] if len(next_words) > 1 else ""
    is_panels = len(next_word) == 2 and next_word[0] == "(" and word_beyond in _JOINING_WORDS
    previous_class = CLASS_OF_SECOND_WORD_BEFORE[words[-2] if len(words) > 1 else ""]
    if previous_class == "and" and len(words) > 2 and _LETTER_AT_END.search(words[0]):
        previous_class = "letter and"  # nests in blocks A and B. Gulls
    word_start = len(sentence) - len(word)
    is_at_start = previous_class in _CLAUSE_STARTS or (
        near == start and word_start < _MAX_PANELS_LENGTH and _PANELS.fullmatch(sentence, 0, word_start)
    )
    if is_at_start and not (has_bracket and _has_open_bracket(sentence[:word_start])):
        position = "first"
    elif has_bracket and _has_open_bracket(text[near:stop]):
        position = "alone" if word[:1] in ("(", "[") else "inside"
    elif word[-1:] == ")" and _PANEL_IN_BRACKETS.fullmatch(word):
        position = "closed" if sentence.count("(") >= sentence.count(")") else "unopened"
    else:
        position = ""
    return (
        previous_class,
        CLASS_BEFORE_STOP[word] if text[stop] == "." else "asked",
        _classify_mark(text, stop, after),
        "panel" if is_panels else CLASS_AFTER_STOP[next_word[:_MAX_WORD_LENGTH]],
        CLASS_OF_SECOND_WORD_AFTER[word_beyond],
        position,
    )


def _extract_words(text: str, start: int, stop: int, after: int) -> NearbyWords:
    end = stop - 1 if text[stop - 1] == " " and stop - 1 > start else stop
    sentence = text[max(start, end - 4 * _MAX_WORD_LENGTH) : end]
    third_word, second_word, word = ["", "", *sentence.rsplit(" ", 3)][-3:]
    next_words = text[after : after + 4 * _MAX_WORD_LENGTH].split(" ", 3)
    next_word, second_next, third_next = [*next_words, "", ""][:3]
    # Abbreviations end a question as other words do.
    return third_word, second_word, word if text[stop] == "." else "", next_word, second_next, third_next


def _measure_length(start: int, stop: int) -> int:
    return min((stop - start) // _LENGTH_STEP, _MAX_LENGTH)


def _classify_mark(text: str, stop: int, after: int) -> str:
    mark = "." if text[stop] == "." else "?"
    if after == stop + 2:
        return mark
    return mark + ("1" if text[after - 2].isdigit() else ")")


def _has_open_bracket(text: str) -> bool:
    """Return True if a bracket is open at the end of a text; only the last ones nearby are checked."""
    nearby = text[-_BRACKET_LOOKBACK:]
    return ("(" in nearby and nearby.rfind("(") > nearby.rfind(")")) or (
        "[" in nearby and nearby.rfind("[") > nearby.rfind("]")
    )


def extract_features(candidate: BoundaryCandidate) -> list[str]:
    """Return the features of a candidate: classes, pairs of classes, shapes of words, words and length."""
    features = _extract_class_features(candidate.context)
    for position, word in zip(POSITIONS, candidate.words, strict=True):
        features += _extract_word_features(position, word)
    return [*features, f"length {candidate.length}"]


def _extract_class_features(context: BoundaryContext) -> list[str]:
    previous_class, class_before, mark, class_after, class_beyond, position = context
    return [
        class_before,
        f"_ {class_after}",
        f"{class_before} _ {class_after}",
        f"{previous_class} {class_before} _",
        f"_ {class_after} {class_beyond}",
        f"{mark} {class_after}",
        f"{class_before} {position}",
        f"{position} {class_after}",
    ]


def _extract_word_features(position: int, word: str) -> list[str]:
    """Return the shape of a word, and the word itself if it is beside the mark."""
    shape = _find_shape(word)
    features = [f"{position} shape {shape}"]
    if abs(position) == 1 and word != shape:
        features.append(f"{position} word {word.lower()}")
    return features


_MAX_SHAPE: Final = 8


def _find_shape_of_character(character: str) -> str:
    if character.isalpha():
        return "x" if character.islower() else "X" if character.isupper() else character
    return "9" if character.isdigit() else character


def _find_shape(word: str) -> str:
    """Return the shape of a word, whose own shape it is: "Xx9-x." of "Gull12-nests.".

    Runs of large letters, small letters, digits and of the same other character are one character each.
    """
    characters = map(_find_shape_of_character, word[:_MAX_WORD_LENGTH])
    return "".join(character for character, _ in itertools.groupby(characters))[:_MAX_SHAPE]


def _read_weights() -> dict[str, float]:
    text = (resources.files(__package__) / "boundary_weights.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {feature: float(weight) for weight, feature in rows}


_WEIGHTS: Final = _read_weights()


def _score_word(position: int, word: str) -> float:
    return sum(_WEIGHTS.get(name, 0.0) for name in _extract_word_features(position, word))


SCORES_OF_WORDS: Final = tuple(WordCache(functools.partial(_score_word, position)) for position in POSITIONS)
"""The sum of the weights of a word at each position."""
(
    _BEFORE_SECOND_WORD,
    _BEFORE_WORD,
    _BEFORE_MARK,
    _AFTER_MARK,
    _AFTER_WORD,
    _AFTER_SECOND_WORD,
) = SCORES_OF_WORDS
_SCORES_OF_LENGTHS: Final = tuple(_WEIGHTS.get(f"length {length}", 0.0) for length in range(_MAX_LENGTH + 1))

_MIN_SCORE: Final = -6
_MAX_SCORE: Final = 4
"""Scores of contexts below and above which the words are not looked at: they change 1 mark of 12,000."""


@functools.lru_cache(maxsize=MAX_CACHED)
def score_context(context: BoundaryContext) -> float:
    """Return the sum of the weights of a context."""
    scores = [_WEIGHTS.get(name, 0.0) for name in _extract_class_features(context)]
    return _WEIGHTS["always"] + sum(scores)


def decide(text: str, start: int, stop: int, after: int) -> bool:
    """Return True if a mark is a boundary; arguments as for :func:`extract_candidate`."""
    score = score_context(_extract_context(text, start, stop, after))
    if _MIN_SCORE < score < _MAX_SCORE:
        third_word, second_word, word, next_word, second_next, third_next = _extract_words(
            text, start, stop, after
        )
        # Written out, as a loop takes twice as long.
        score += (
            _SCORES_OF_LENGTHS[_measure_length(start, stop)]
            + _BEFORE_SECOND_WORD[third_word]
            + _BEFORE_WORD[second_word]
            + _BEFORE_MARK[word]
            + _AFTER_MARK[next_word]
            + _AFTER_WORD[second_next]
            + _AFTER_SECOND_WORD[third_next]
        )
    return score > 0
