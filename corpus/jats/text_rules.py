"""Recognise text by its wording: boilerplate, headings, references, paragraphs that are no text.

XML says too little: two in three boilerplate sections have no type, and references, labels and headings are
often paragraphs.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Final

from bioshards.corpus.jats.captions import is_label

_FLAGS: Final = re.VERBOSE | re.IGNORECASE

# Boilerplate: sections and footnotes that journals require of every article

_BOILERPLATE_TYPE_LIST: Final = """
    con conflict conflict-interest coi coi-statement competing-interests competing-interest-statement
    financial-disclosure disclosure disclosures declarations supported-by funding funding-statement
    funding-information participating-researchers ethics ethics-statement ethics-approval informed-consent
    consent contributions author-contribution author-contributions authors-contributions
    author-contribution-statement data-availability data-availability-statement data_availability
    publishers-note disclaimer supplementary-material
"""
_BOILERPLATE_TYPES: Final = frozenset(_BOILERPLATE_TYPE_LIST.split())
"""Values of ``sec-type``, ``fn-type`` and ``notes-type`` in PMC's articles. conflict, con,
financial-disclosure and supported-by are from the JATS tag library, the others are journals' own.
"""

_TITLE_PATTERN: Final = r"""
      author(?:s|ship)?\ (?:contributions?|roles?|statements?|disclosures?|declarations?|information)
      (?:\ statements?)?
    | authors?\ ?contributions?
    | (?:individual\ )?contributions?(?:\ (?:of|by)\ (?:the\ )?authors?)?
    | contributors?(?:hip)?(?:\ statement)?
    | credit\ (?:author(?:ship)?\ )?(?:contributions?\ )?statement
    | (?:(?:declarations?|statements?|disclosures?)\ of\ )?
      (?:potential\ |financial\ |competing\ |conflicting\ )*
      (?:(?:conflicts?\ of\ |duality\ of\ |competing\ |conflicting\ )?interests?)
      (?:\ (?:statements?|declarations?|disclosures?|and\ funding))?
    | (?:additional\ information\ and\ )?declarations?
    | (?:financial\ )?(?:disclosures?|declarations?)(?:\ statements?)?
    | (?:sources?\ of\ |research\ )?(?:funding|fundings|financial\ support|grant\ support|grants?)
      (?:\ (?:sources?|statements?|information|acknowledge?ments?|and\ sponsorship|disclosures?))?
    | role\ of\ the\ (?:funding\ source|funder|sponsor)s?
    | sponsorship | supported\ by
    | (?:research\ |animal\ |human\ )?(?:ethics|ethical)
      (?:\ (?:statements?|approvals?|considerations?|standards?|declarations?|committee\ approval|clearance
      |issues|reviews?|notes?|compliance))?
      (?:\ and\ (?:informed\ )?consent(?:\ to\ participate)?)?
    | (?:compliance\ with|statement\ of)\ ethic(?:s|al\ standards)
    | (?:statements?\ (?:of|on)\ )?human\ and\ animal\ rights(?:\ and\ informed\ consent)?
    | (?:written\ |patients?\ )?(?:informed\ )?consents?
      (?:\ statements?|\ (?:for|to)\ (?:publication|participat(?:e|ion)|publish))?
    | institutional\ review\ board\ (?:statement|approval)
    | (?:data|code|software|material|materials|resource)
      (?:(?:,|\ and|\ &)*\ (?:data|code|software|materials?|resources?))*
      \ (?:availability|accessibility|access|sharing|deposition|archiving)(?:\ (?:statement|plan)s?)?
    | (?:availability\ (?:of|and)|access\ to)\ (?:the\ )?(?:supporting\ )?(?:data|materials?|code|software)
      (?:(?:,|\ and|\ &|\ or)*\ (?:data|materials?|code|software|requirements))*
    | accession\ (?:numbers?|codes?)
    | publishers?\ notes? | disclaimers? | provenance(?:\ and\ peer\ review)?
    | (?:peer\ )?review\ (?:history|information|file) | peer\ review
    | editorial\ note\ on\ the\ review\ process
    | pre-?publication\ history | transparency\ (?:declaration|statement)s? | how\ to\ cite\ this\ article
    | (?:copyright|licen[cs]e|open\ access|rights\ and\ permissions)(?:\ (?:statement|information))?
    | (?:electronic\ |online\ )?(?:supplement(?:ary|al)|supporting)
      \ (?:information|materials?|data|files?)(?:\ available)?
    | reporting\ summary | ethics,?\ consent(?:,|\ and)*\ permissions?
"""
_BOILERPLATE_TITLE = re.compile(rf"(?:{_TITLE_PATTERN})", re.VERBOSE)
_MAX_TITLE_LENGTH: Final = 90
_APOSTROPHES = re.compile("['’‘`´]")
_NON_LETTERS_AT_ENDS = re.compile(r"^[\W\d_]+|[\W_]+$")


@functools.lru_cache(maxsize=1 << 12)
def is_boilerplate(title: str, section_types: tuple[str | None, ...] = ()) -> bool:
    """Return True if a section or footnote with this title or one of these types is boilerplate."""
    for section_type in section_types:
        if section_type and section_type.lower() in _BOILERPLATE_TYPES:
            return True
    if not title or len(title) > _MAX_TITLE_LENGTH:
        return False
    normalised = _APOSTROPHES.sub("", title.lower())
    if not (normalised[:1].isalpha() and normalised[-1:].isalnum()):
        normalised = _NON_LETTERS_AT_ENDS.sub("", normalised)
    return _BOILERPLATE_TITLE.fullmatch(normalised) is not None


_BIOGRAPHIES = re.compile(
    r"\W*(?:about (?:the )?authors?|authors?['’]? biograph(?:y|ies)|authors['’] information"
    r"|biographical information)\W*",
    re.IGNORECASE,
)


def is_title_of_biographies(title: str) -> bool:
    """Return True if a section with this title is about the authors, as ``bio`` is."""
    return title[:1] in "AaBb" and _BIOGRAPHIES.fullmatch(title) is not None


def is_supplement_title(title: str) -> bool:
    """Return True if a section with this title lists the supplements of the article."""
    return re.search(r"\b(?:supplement|supporting|additional file|associated data)", title, re.I) is not None


def starts_with_boilerplate_title(text: str) -> bool:
    """Return True if a footnote starts with a boilerplate title ("Funding: none."), or is one."""
    end = re.search(r"[:.]", text[:_MAX_TITLE_LENGTH])
    return is_boilerplate(text[: end.start()] if end else text)


# Headings and notes that are paragraphs

_RUN_IN_HEADING = re.compile(
    r"(?:Acknowledge?ments?|Aims?|Approach|Authors?['’]? [Cc]ontributions?|Background|Competing [Ii]nterests?"
    r"|Conclusions?|Conflicts? of [Ii]nterest(?: [Ss]tatement)?|Data [Aa]vailability"
    r"|Declarations? of [Ii]nterests?|Disclaimer|Disclosures?|Discussion|Funding(?:/[Ss]upport)?"
    r"|Introduction|Main results"
    r"|(?:Materials and |Patients and )?[Mm]ethods|Notes?|Objectives?"
    r"|Purpose|Results?|Significance|Statistical [Aa]nalys[ei]s)"
)
MAX_RUN_IN_HEADING: Final = 32
"""Characters of such a heading, with the full stop and the blank after it."""


def is_run_in_heading(text: str) -> bool:
    """Return True if a text is a heading of many articles: "Results"."""
    return _RUN_IN_HEADING.fullmatch(text) is not None


def split_run_in_heading(text: str) -> tuple[str, str]:
    """Split a paragraph into a heading that is its first sentence, and its other text: "Funding. We thank".

    The blank may be missing, "Approach.We look". The heading is empty if there is none, or no other text.
    """
    end = text.find(".", 0, MAX_RUN_IN_HEADING)
    rest = text[end + 1 :]
    is_sentence = rest[:1] == " " or (rest[:1].isupper() and " " in rest)
    if end < 0 or not is_sentence or _RUN_IN_HEADING.fullmatch(text, 0, end) is None:
        return "", text
    return text[:end], rest.removeprefix(" ")


_MAX_TITLE_WORDS: Final = 12
_MAX_PARAGRAPH_TITLE_WORDS: Final = 20
_TITLE_START = re.compile(r"(?:[•➢–-] ?|\(?(?:[\divx]{1,4}|[a-h])[.):]{1,2} |[\d.]{1,6} )?[^\W\d_a-z][\w-]")
_SENTENCE_WORDS = re.compile(
    r"\b(?:i|we|you|he|she|it|they|this|these|that|there|which|who|not|et al"
    r"|is|are|was|were|be|been|being|has|have|had|do|does|did|can|could|may|might|will|would|shall|should|must"
    r"|let|see|show(?:s|ed)?|found|made|used|(?:increas|reduc|decreas|induc)e[sd]|affects?|requires?"
    r"|[a-z]{3,}(?:ates|izes|ifies))\b|\A(?:avoid|consider|continue|ensure|make|provide)\b|[!?@]|https?:|www\.",
    re.IGNORECASE,
)


def is_title(text: str, is_paragraph: bool = False) -> bool:
    """Return True if a text in bold or italics is worded as a heading is: short, and without a verb.

    Args:
        text: the marked text.
        is_paragraph: it is the whole paragraph, and may be longer.
    """
    is_long = is_paragraph and text[:1].isupper() and ";" not in text and ". " not in text
    return (
        text.count(" ") < (_MAX_PARAGRAPH_TITLE_WORDS if is_long else _MAX_TITLE_WORDS)
        and text[-1:] not in (",", ";", "。")
        and _TITLE_START.match(text) is not None
        and _SENTENCE_WORDS.search(text.removesuffix("?") if is_paragraph else text) is None
    )


MAX_PARAGRAPH_HEADING: Final = 50
_PARAGRAPH_HEADING = re.compile(
    rf"(?:{_RUN_IN_HEADING.pattern}|Change [Hh]istory|Specifications? [Tt]able|Value of the [Dd]ata"
    r"|(?:Added value of|Evidence before) this study|What this (?:paper|study) adds"
    r"|Implications of all the available evidence)[:.]?"
)


_TABLE_TITLE = re.compile(r"\W*Specifications? [Tt]able\W*")


def is_title_of_table(text: str) -> bool:
    """Return True if a heading has only a table below it: Data in Brief's "Specifications table"."""
    return _TABLE_TITLE.fullmatch(text) is not None


_ABSTRACT_TITLE = re.compile(r"abstract|summary|resumo|resumen|r[ée]sum[ée]", re.IGNORECASE)
_KEYWORDS = re.compile(
    r"(?:key[ -]?words?|palavras[ -]chave|palabras[ -]clave|mots[ -]cl[ée]s?)\b", re.IGNORECASE
)


def ends_abstract(title: str, text: str) -> bool:
    """Return True if a paragraph has the keywords below an abstract in the body: the article follows."""
    return _KEYWORDS.match(text) is not None and _ABSTRACT_TITLE.fullmatch(title) is not None


_LOOSE_START = re.compile(r"[:.] (?=\w)|\.(?=[A-Z][a-z]+\s)")


def remove_loose_start(text: str) -> str:
    """Return the text without the punctuation at its start that ended a label: ": Nests of gulls"."""
    start = _LOOSE_START.match(text)
    return text[start.end() :] if start else text


_BULLET = re.compile(r"[•▪➢❖] ?(?=\w)(?!of )|[–√✓-] (?=[A-Z])|—(?=[A-Z])")
BULLETS: Final = tuple("•▪➢❖√✓–-—")


def remove_bullet(text: str) -> str:
    """Return the text without a typed mark of an item at its start: "• Nests of gulls", "- Nests"."""
    bullet = _BULLET.match(text)
    return text[bullet.end() :] if bullet else text


def is_heading(text: str) -> bool:
    """Return True if a paragraph is only a heading: "Notes:", "Competing interests"."""
    return (
        len(text) <= MAX_PARAGRAPH_HEADING
        and text[0].isupper()
        and (
            _PARAGRAPH_HEADING.fullmatch(text) is not None
            or (text[-1].isalpha() and " " in text and is_boilerplate(text))
        )
    )


# References that are written as text

_REFERENCE_TITLE: Final = r"""
    \W*+ [\divx.]*+ \W*+ (?:
        references? (?: \s (?: list | cited | section ) )? | list \s of \s references | literature \s cited
      | (?: selected \s )? bibliography | works \s cited | cited \s (?: references | literature )
      | references \s and \s notes | notes \s and \s references
      | (?: additional | further | recommended | suggested ) \s readings? | more \s details \s in
      | r[ée]f[ée]r[eê]nces (?: \s bibliographiques )? | bibliographie | literatur (?:verzeichnis)?
      | (?: bibliograf[ií]a | literatura ) (?: \s citada )? | refer[eê]ncias (?: \s bibliogr[aá]ficas )?
      | riferimenti (?: \s bibliografici )?
    )
"""
_REFERENCE_TITLE_PATTERN = re.compile(rf"{_REFERENCE_TITLE} \W*", re.VERBOSE)
"""In small letters: where case counts, most alternatives are passed over by their first letter."""
MAX_REFERENCE_TITLE: Final = 60
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d[a-z]?\b|\b[Ii]n press\b")
_REFERENCE_AUTHOR = re.compile(
    r"[\W\d]{0,8}[^\W\d_a-z][\w’'-]{1,30}(?:\s[^\W\d_a-z][\w’'-]{1,30})?,?\s"
    r"(?:(?:[A-Z]\.?[-\s]?){1,4}(?:[,.;:&(]|\s*and\b|\s*et\b)|et\sal"
    r"|(?:\(|(?:and|&)\s[^\W\d_a-z][\w’'-]{1,30}\s(?:[^\W\d_a-z][\w’'-]{1,30}\s)?\(?)"
    r"(?:1[89]|20)\d\d[a-z]?\b)"
)
"""The first author of a reference: "1. Ode, A. B.,", "Ode AB, Roe C", "Ode and Roe (2011)"."""
_REFERENCE_NUMBER = re.compile(
    r"\[\d{1,3}\] (?:[A-Z]\.[ -]?){1,3}[A-Z][a-z]"
    r"|[^\W\d_a-z]{3,20}(?:[/ -][^\W\d_a-z]{2,20}){0,3}\. (?:19|20)\d\d\."
)
"""A number in brackets and initials before the author: "[4] G.H. Ode"; or an institute: "GULLS. 2031."."""
_REFERENCE_PAGES = re.compile(
    r"\b\d{1,4}\s?(?:\(\w[^()]{0,12}\)\s?)?[:,]\s?[A-Za-z]?\d{1,6}\s?[-–—.]|\bpp?\.\s?\d|\bdoi\b|https?://|\bdoi\.org"
)
_REFERENCE_TITLE_IN_TEXT = re.compile(r"references?(?:\s(?:list|cited))?[:.]?\s+", re.IGNORECASE)
_MAX_REFERENCE: Final = 700
_TAGS: Final = r"\s*+(?:<[^<>]*>\s*+){0,20}"
_HTML_COMMENT = re.compile(r"<!--[^<>]*-->")
_HTML_LIST = re.compile(
    rf"<(h\d|p|b|strong|div)\b[^<>]*>{_TAGS}(?x:{_REFERENCE_TITLE})[^\w<]*+{_TAGS}<(?:ol|ul|li|p|br)\b.*",
    re.IGNORECASE | re.DOTALL,
)


@functools.lru_cache(maxsize=1 << 12)
def is_reference_title(title: str) -> bool:
    """Return True if a section of this title may be a list of references."""
    title = unicodedata.normalize("NFC", title.lower())
    return len(title) <= MAX_REFERENCE_TITLE and _REFERENCE_TITLE_PATTERN.fullmatch(title) is not None


def are_references(texts: list[str]) -> bool:
    """Return True if most texts of a section of references look like one; False of text about references."""
    return 2 * sum(map(is_reference, texts)) > len(texts)


def is_reference(text: str) -> bool:
    """Return True if a text looks like a reference: a year, and authors, pages, a volume or an address."""
    return (
        len(text) <= _MAX_REFERENCE
        and _YEAR.search(text) is not None
        and (
            _REFERENCE_AUTHOR.match(text) is not None
            or _REFERENCE_NUMBER.match(text) is not None
            or _REFERENCE_PAGES.search(text) is not None
        )
    )


_FULL_AUTHOR = re.compile(
    r"\W{0,3}(?:[a-z]{1,3}\s){0,2}[^\W\d_a-z][\w’'-]{1,30}(?:\s[^\W\d_a-z][\w’'-]{1,30}){0,2},?\s"
    r"(?:[^\W\d_a-z](?:\.-?\s?|-)?){1,4}"
    r"(?:(?<=\.)\s(?=[\dA-Z])|(?<!\s)\s?[,;/&.]|(?<=\s)[/&(]|\s(?:and|[Jj]r|(?:1[89]|20)\d\d)\b)"
)
"""A first author with initials, by which the footnote of a reference begins: "Ode AB,", "ODE, A. B. Of"."""
_CITED_WORK = re.compile(
    r"\[(?:internet|(?:updated|cited|citado|accessed|acesso)\b[^\[\]]{2,60}"
    r"|[^\[\]]{0,40}\b(?:thesis|dissertation|disserta[cç][aã]o|tese|software)\b[^\[\]]{0,30})\]"
    r"|[.:;]\s?(?-i:[^\W\d_a-z])[\w’' .&()/-]{2,70}[;:]\s?c?(?:1[89]|20)\d\d\.?(?:\sp\.\s?\d{1,4}\.?)?\Z"
    r"|\b(?:1[89]|20)\d\d\.\s.{10,400}\s\d{1,4}\s?(?:\(\w{1,9}\))?:\s?\w?\d{1,6}\s?[-–]\s?\w?\d{1,6}\.?\Z",
    re.IGNORECASE,
)
"""What the reference of a work without such an author has: "[cited 2031 May 3]", "Gull Town: Auk; 2031."."""
_ADDRESS_ALONE = re.compile(
    r"""
    \W{0,3} (?: (?: source | available (?: \s online )? | retrieved | dispon[ií]vel )
                (?: \s (?: at | em | from | in ) )? \s? :? \s? )?
    \W{0,2} (?: https?:// | www\. ) [^\s;<>]{3,250} [\s;.,<>()\[]{0,9}
    (?: (?: last \s )? (?: access (?:ed)? | acess(?: ado | ed | o ) | checked | cited | consulted
          | retrieved | viewed | visited ) \b .{1,40} )? \W*
    """,
    _FLAGS,
)
"""An address with the day on which it was read, and nothing else."""
_NOTE_MARKS_ALONE = re.compile(r"[a-z](?:[\s,;.:]+[a-z]){0,9}[\s,;.:]*")
"""What is left of the sources of a table without its citations: "a, b."."""
_MAX_ADDRESS: Final = 300
_MAX_AUTHOR: Final = 60
_AFTER_NOTE_MARK: Final = ("", ",", ";", ".", ":")


_MAX_CITED_NAMES: Final = 100
_NAMES_AND_YEAR = re.compile(
    r"(?:[^\W\d_a-z][\w’'-]{1,30}(?:,?(?= \()|,|(?: et al\.?| (?:and|&) [^\W\d_a-z][\w’'-]{1,30}),?)"
    r" \(?(?:1[89]|20)\d\d[a-z]?\)?[.,;] ?){1,4}"
)
"""Sources of a table's value: "Ode et al. (2031a),", "Ode and Tern, 2031; Roe, 2031."."""


def is_whole_reference(text: str) -> bool:
    """Return True if a footnote is references or an address and has no words of the article's own."""
    if text[1:2] in _AFTER_NOTE_MARK and _NOTE_MARKS_ALONE.fullmatch(text):
        return True
    if len(text) <= _MAX_ADDRESS and ("://" in text or "www." in text) and _ADDRESS_ALONE.fullmatch(text):
        return True
    if len(text) <= _MAX_CITED_NAMES and text[-1] in ".,;" and _NAMES_AND_YEAR.fullmatch(text):
        return True
    last_word = text[text.rfind(" ") + 1 :]
    if not any(map(str.isdigit, last_word)) and "//" not in last_word and "www." not in last_word:
        return False
    if len(text) > _MAX_REFERENCE or _YEAR.search(text) is None:
        return False
    author = text[:_MAX_AUTHOR].partition(". ")[0].replace("WHO", "")
    return _FULL_AUTHOR.match(text) is not None or (
        text[0].isupper() and _SENTENCE_WORDS.search(author) is None and _CITED_WORK.search(text) is not None
    )


def count_references(texts: list[str]) -> int:
    """Return how many texts after the title of a list of references belong to it; 0 if it is text.

    The list ends before two texts in a row that are no references. Three in four of its texts are.
    """
    num_references = end = 0
    for index, text in enumerate(texts):
        if is_reference(text):
            num_references, end = num_references + 1, index + 1
        elif index - end >= 1:
            break
    return end if 4 * num_references >= 3 * end else 0


def starts_with_references(text: str) -> bool:
    """Return True if a paragraph is a title of references and references: "References 1. Ode A. 2011"."""
    if text[:9].lower() != "reference":
        return False
    title = _REFERENCE_TITLE_IN_TEXT.match(text)
    rest = text[title.end() :] if title else ""
    return bool(rest) and _YEAR.search(rest) is not None and _REFERENCE_AUTHOR.match(rest) is not None


def remove_html_references(text: str) -> str:
    """Remove comments, and a list of references with its title, from HTML that came as text (CDATA)."""
    return _HTML_LIST.sub("", _HTML_COMMENT.sub("", text)).strip() if "</" in text else text


# Paragraphs

_LINK = re.compile(
    r"""
    (?: supplementary \s material \s file \. \s )? \W* (?: doi \s? :? \s? )?
    (?: (?: https?:// | 10\.\d{4,9}/ ) \S+
      | [\w-]+ (?: \. [\w-]+ )* \. (?: com | edu | eu | gov | info | int | io | net | org | ac \. [a-z]{2} )
        (?: / \S* )? ) \W*
    """,
    _FLAGS,
)
"""A link or the name of a server, and nothing else."""
_MAX_SHORT_NOTE: Final = 300
"""Characters. Labels and links are no longer."""
_MAX_LINK_OPENING: Final = 40
"""Characters that may be before a link: "Supplementary material file. DOI: "."""


def _is_link(text: str) -> bool:
    """Return True if a text is only a link."""
    return "." in text and text.find(" ", _MAX_LINK_OPENING) < 0 and _LINK.fullmatch(text) is not None


_EQUATION_NUMBER = re.compile(r"\W*\(\d{1,3}[a-z]?\)\W*")
_MAX_EQUATION_NUMBER: Final = 12


def is_note(text: str) -> bool:
    """Return True if a paragraph is only a label, a link or the number of a formula: "...(2)"."""
    if len(text) <= _MAX_EQUATION_NUMBER and _EQUATION_NUMBER.fullmatch(text):
        return True
    return len(text) <= _MAX_SHORT_NOTE and (is_label(text) or _is_link(text))
