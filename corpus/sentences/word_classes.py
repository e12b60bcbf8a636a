"""Classes of the words around a full stop: the knowledge of the sentence splitter.

A word is classified by the tables of families, or else by the patterns of its shape. The meaning of a class
for a boundary is learned: boundary_model.py weighs the classes with weights fitted on annotated texts. To
teach the splitter a word, add it to its family and refit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

WORD_FAMILIES: Final[dict[str, str]] = {
    # A name follows.
    "title": "Dr Drs Mr Mrs Ms Prof Profs prof Sir St Mt Ft Hon Capt Lt Col Rev Messrs Mme Mlle",
    # A number or letter follows: of a figure, a volume, an accession, a chromosome, a UniGene cluster.
    "reference": """
        Fig Figs fig figs Eq Eqs eq eqs Eqn Eqns Ref Refs ref refs No Nos no nos Nr nr Nb Vol Vols vol vols
        Tab Tabs Suppl suppl Supp supp Sect Sects Sec Chap chap pp Ser Cat acc Acc Chr Chrs chr chrs
        chrom Ver ver Pt Art Lot Mm Hs Rn Sch Cat.No Acc.No v p
    """,
    # In the middle of a clause by what they mean: for example, compare, and others, approximately.
    "latin": """
        cal cf c.f Cf vs v.s viz e.g i.e eg ie E.g I.e ca circa approx appr incl elev esp sensu q.v ibid op
        loc cit seq a.k.a aka aff pers comm unpubl orig i.a calcd Calcd Exc Exch exch
    """,
    # In the wide or the narrow sense, after a species: an author follows, or the sentence ends.
    "sense": "s.l s.s",
    # "And others", "respectively": at the end of a sentence or not.
    "others": "al et.al etc resp",
    # A strain follows, or the sentence ends: "Pseudomonas sp. MB1".
    "species": "sp spp Sp Spp",
    # Ranks and marks of taxonomy; a name follows.
    "rank": """
        ssp subsp var vars subvar cv cvs pv pvs pvar bv biovar f.sp sv serov ser str gen nov comb fam
        ord sect Var n.sp sp.nov syn
    """,
    # A genus of which two or three letters are left; the species follows in lower case.
    "genus": "Ae An Cx Cs Th Lm Lb Lc Tr Ps Pl Sm Sc Pa Bl Cu Mn Ix Xe Str Staph Strep Psa Bac",
    # Authors of names of plants, as in IPNI; a family in brackets, another author or a verb follows.
    "author": """
        Adans Ait Arg Aubl Baill Benth Boiss Burm Cass Cav Cham Coss Decne Desf Ehrh Ehrenb Endl Forssk Forst
        Gaertn Griseb Haw Hemsl Hochst Hoffm Hook Jacq Juss Lam Ledeb Lehm Lindl Lour Maxim Merr Michx Mill
        Miq Moench Muell Müll Nutt Oliv Pers Planch Poir Radlk Retz Roem Roxb Rupr Salisb Schrad Schreb Schult
        Schum Schumach Schweinf Sieb Sond Spreng Steud Thonn Thunb Torr Turcz Vell Vent Vill Wall Walp Wedd
        Welw Willd Zucc
    """,
    # Abbreviated words of journal names, as in MEDLINE's list of journals.
    "journal": """
        Acad Acta Adv Am Anal Anat Angew Ann Annu Antimicrob Appl Arch Assoc Aust Bacteriol Behav Belg
        Biochem Bioeng Bioinf Biol Biomed Biometr Biophys Biosci Biotechnol Bot Br Bull Can Cardiol Chem
        Chemother Chim Chir Chromatogr Circ Clin Cogn Commun Comp Comput Contrib Crit Curr Cytochem Cytol
        Dent Dermatol Dev Diabetol Dis Ecol Embryol Endocr Endocrinol Eng Engl Entomol Environ Epidemiol Eur
        Evol Exp Expt Fed Forsch Fr Funct Gastroenterol Genet Ger Gerontol Gynecol Haematol Hematol Hepatol
        Histochem Histol Hosp Hum Hyg Immunol Inf Infect Int Intern Invest Ital Jpn Lett Lond Magn Mech Med
        Metab Microb Microbiol Mol Monogr Morphol Mutat Nat Natl Nephrol Neurobiol Neurochem Neurol Neurosci
        Neurosurg Nucl Nutr Obstet Oncol Ophthalmol Opin Orthop Otolaryngol Parasitol Pathol Pediatr
        Pflugers Pharm Pharmacol Philos Phys Physiol Prev Proc Prog Psychiatr Psychol Quant Radiat Radiol
        Rep Reprod Res Resp Respir Rheum Rheumatol Scand Sci Soc Spectrom Steroid Struct Surg Symp Syst
        Technol Ther Thromb Toxicol Trans Transl Transplant Trop Ultrastruct Univ Urol Vasc Vet Virol
        Vis Zool
    """,
    # A day or a year follows, or the sentence ends.
    "month": "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec",
    # Firms, addresses and degrees: they end a sentence about as often as not.
    "company": "Inc Ltd Corp",
    "firm": """
        Pvt Co Cos Bros GmbH S.A Pty Dept Depts Div Inst Lab Labs Jr Sr Ph Ph.D PhD M.D MD M.Sc
        B.Sc D.Sc D.V.M Calif Mass Conn Penn Fla Tex Mich Minn Wis Ill Ariz Colo Wash Ont Ave Blvd Rd Bldg
        U.S U.K U.S.A E.U U.N D.C
    """,
    # Ways and times of giving a drug, measures with full stops inside: they end a sentence now and then.
    "dose": """
        i.p i.v i.m s.c p.o i.c.v i.d i.n i.t i.g i.c b.i.d t.i.d q.d q.i.d o.d b.w w.t b.wt d.w f.w
        r.p.m rpm a.m p.m h.p.i d.p.i p.i m.o.i a.s.l s.d s.e s.e.m n.s S.D S.E S.E.M O.D m.p b.p v.v w.v
        v/v w/v
    """,
    # Units and amounts: mostly the last word of their sentence where a capital follows.
    "unit": """
        min mins hr hrs sec secs msec mg kg ug ml mL dl cm mm km nm mo mos wk wks yr yrs wt Da kDa kd kb bp
        Mb mol mmol mM nM ppm IU mCi max avg conc temp sq lb lbs oz gal mil dia diam
    """,
    # Short words that are whole.
    "word": """
        he she it we us so do go not was has had one two all low age old new use far way set mice rats cell
        men
    """,
}
"""Words before a full stop, without it, by family."""

_SENTENCE_OPENER_LIST: Final = """
    A An The This That These Those Each Every Both All Some Any Many Most Several Few Such Other Others
    Another No None Neither Either One Two Three Four Five Six Seven Eight Nine Ten Eleven Twelve Twenty
    First Second Third Firstly Secondly Thirdly Next Then Last Lastly Finally I We He She It They You Our
    His Her Its Their My Who Which What Whose Here There Where When While Whereas Whilst Why How Whether If
    Unless Until Once Since Because As Although Though Even Despite However Nevertheless Nonetheless
    Moreover Furthermore Further Additionally Also Besides Therefore Thus Hence Consequently Accordingly So
    Instead Rather Otherwise Likewise Similarly Conversely Meanwhile Overall Indeed Interestingly
    Importantly Notably Surprisingly Unexpectedly Remarkably Strikingly Recently Previously Currently
    Subsequently Thereafter Afterwards Later Initially Originally Briefly Specifically Particularly
    Especially Generally Usually Typically Often Sometimes Presumably Perhaps Possibly Probably Clearly
    Apparently Collectively Altogether Together Taken Again Still Yet But And Or Nor Not Only Just About
    Approximately Almost Nearly More Less Much Very Under Over Above Below Between Among Amongst Across
    Along Around Through Throughout Within Without With By For From In Into On Of At To Up Upon Out After
    Before During Except Like Unlike Given Due Owing Regarding Concerning Considering Depending According
    Based Compared Using Following Prior Results Result Methods Method Conclusion Conclusions Background
    Objective Objectives Aim Aims Purpose Introduction Discussion Data Patients Cells Mice Values Samples
    Arrows Arrowheads Asterisks Bars Scale Error Note See Can Could May Might Must Should Would Do Does Did
    Is Are Was Were Has Have Had Having Let Activities Activity Analyses Animals Antibodies Blots
    Children Controls Domain Domains Embryos Experiments Extracts Females Genes Images Infants Larvae
    Levels Littermates Males Men Mutants Neurons Participants Plants Proteins Rats Sections Seeds
    Strains Students Subjects Tissues Tumors Tumours Women
"""
SENTENCE_OPENERS: Final = frozenset(_SENTENCE_OPENER_LIST.split())
"""Capitalised openers of sentences other than names: function words, and openers of abstracts and
legends, of which some look like surnames."""

_FIGURE_WORD_LIST: Final = "Figure Figures Fig Figs Table Tables Scheme Section Box Appendix Supplementary Eq"
"""Targets of references: they open sentences and occur in brackets (``cf. Table 2``)."""

_COMMON_WORD_LIST: Final = """
    the of and in to a is was were for with by that from as at on are be this which or an not has have had
    it its their these than been between after both also may can but during did do does more no into all
    other while when who will only such most within using used one two we they there then however if so each
    through under over before among against because could would should being including due following per via
    about above below without where what how either neither nor yet and/or & et thank thanks Thank
"""
COMMON_WORDS: Final = frozenset(_COMMON_WORD_LIST.split())
"""Lower-case words within a sentence."""

_PATTERNS_BEFORE_STOP: Final = {
    "initials": r"(?:[A-Z][a-z]?\.?[-–]?){1,4}[.–-][A-Z][a-z]?",  # J.M  A.-K.H  J.-I
    "capital": r"[A-Z]",  # an initial, a vitamin, a panel, the genus of a species
    "letter": r"[a-z]",
    # of a list or a legend: 1  2)  (a)  ii  A,B  (C-E)
    "item": r"\d{1,2}|\(?(?:\d{1,2}|[A-Za-z]|[ivx]{2,4})\)|[ivx]{2,4}|\(?[A-Za-z](?:[,–-][A-Za-z])+\)?",
    "number": r"[<>=~≥≤±+−-]*[\d.,·–-]*\d%?",
    "dotted": r"[A-Za-z](?:\.[A-Za-z])+",
    "short": r"[a-z]{2,3}",
    "word": r"[a-z][a-z'’-]{3,}",
    "Short": r"[A-Z][a-z]{1,3}",
    "Word": r"[A-Z][a-z'’-]{4,}",
    "ACRONYM": r"[A-Z]{2,}s?",
    "capital at end": r".*[-–—/][A-Z]",
    "closed": r".*[)\]}]",
    "quoted": r".*[\"'”’]",
    "blank": r"",  # of text cut into tokens: was seen .
    "dots": r"\.+",
    "genus": rf".*[-–—](?:{'|'.join(WORD_FAMILIES['genus'].split())})",  # wheat-Th
    "reference": r".*[–—](?:Eq|Fig|Tab)s?",  # Information—Fig
    "inner dot": r".*\..*",
}
"""Classes of words before a full stop outside the families: the first pattern that matches the whole word."""

_PATTERNS_AFTER_STOP: Final = {
    "in citation": r"doi(?::.*)?|Vol\.?",  # Gulls of islands. Birds 2018. Vol 3. doi: 10.5555/3
    "dash": r"[–—-]",
    "Dr": r"(?:Dr|Mr|Prof)\.",
    "Drs": r"(?:Drs|Mrs|Ms)\.",
    "dots": r"[.…!?]+",
    "initials": r"[A-Z](?:\.[-–]?[A-Z])*\.(?:[-–][A-Z]\.?)?[,;]?",
    "capital": r"[A-Z]",
    "panel": r"\(?[A-Za-z](?:[-–,&][A-Za-z]?)*\)[.:,;]?|[a-z](?:[-–,][a-z])?[:.]|\([a-zA-Z],",
    "item": r"\(?\d{1,2}[).]|\(?[ivx]{1,4}\)",
    "number": r"[\d.,:–-]+[;:),]*",
    "amount": r"\d.*",
    "Name,": r"[A-Z][\w'’-]*[,;]",
    "Word": r"[A-Z][a-z]*(?:[st]ion|ment|ing|[^aeiou]ed|[sl]is|ness|[ae]nce|ity|[ai]ry|logy|gen|ase|in|ic|al"
    r"|ous|ive|ly|s)s?[.)]?",  # no surname, by its ending
    "Name": r"[A-Z][a-z'’]+(?:[-–][A-Z][a-z]+)*[.)]?",
    "ACRONYM": r"[A-Z]{2,}s?",
    "Mixed": r"[A-Z].*",
    "greek": r"(?:alpha|beta|gamma|delta|epsilon|zeta|theta|kappa|lambda|sigma|omega|[α-ω])(?:[^a-z].*)?",
    "gene": r"[a-z]{1,6}-?[A-Z0-9].*",  # p53  mRNA  cDNA  iPSC  miR-21
    "prefixed": r"[a-z]{1,2}-.*",  # c-jun  m-calpain  n-3
    "letter": r"[a-z]",
    "code": r"[a-z]{2,4}[,:=]",  # of a key: ac, anterior crista; lc, lateral crista
    "small": r"[^\W\d_].*",
    "(Word": r"[(\[{][A-Z].*",
    "(small": r"[(\[{][a-z].*",
    "citation": r"\[\d[\d,–-]*\]?[.,;:]?",
    "[number": r"\[\d.*",
    "(": r"[(\[{].*",
    "“Word": r"[\"'“‘«][A-Z].*",
    "“": r"[\"'“‘«].*",
    "genotype": r"[+−–-]+/.*",
    "mark": r"[*†‡§¶•●■]+.*",
    "sign": r"[#±×÷<>=~≈≤≥%‰°/+–−-].*",
}
"""Classes of words after a full stop outside the tables."""

_OPENING_MARKS: Final = "([{\"'“‘«"
_NON_ASCII_LETTER: Final = re.compile(r"[^\W\d_a-zA-Zα-ω]")
_MAX_WORD_LENGTH: Final = 40
"""Trailing characters of a word before a full stop that are used."""
MAX_CACHED: Final = 1 << 16
"""Entries of a cache of words or contexts: more than a file has, at most 10 MB."""


class WordClasses(dict[str, str]):
    """Cache from word to class, computed on demand."""

    def __init__(self, table: dict[str, str], patterns: dict[str, str], opening_marks: str = "") -> None:
        self._table, self._class_names, self._opening_marks = table, list(patterns), opening_marks
        self._match = re.compile(
            "|".join(rf"({pattern})\Z" for pattern in patterns.values()), re.DOTALL
        ).match

    def __missing__(self, word: str) -> str:
        if len(word) > _MAX_WORD_LENGTH:
            return self[word[-_MAX_WORD_LENGTH:]]
        if len(self) >= MAX_CACHED:
            self.clear()
        stripped = word if word.endswith((")", "]")) else word.lstrip(self._opening_marks)
        word_class = self._table.get(stripped)
        if word_class is None:
            match = self._match(
                stripped if stripped.isascii() else _NON_ASCII_LETTER.sub(_as_ascii, stripped)
            )
            word_class = self._class_names[match.lastindex - 1] if match and match.lastindex else "other"
        self[word] = word_class
        return word_class


def _as_ascii(letter: re.Match[str]) -> str:
    """Return an ASCII letter of the same case: only case matters for accented and Cyrillic words."""
    return "A" if letter[0].isupper() else "a" if letter[0].islower() else letter[0]


CLASS_BEFORE_STOP: Final = WordClasses(
    {word: family for family, words in WORD_FAMILIES.items() for word in words.split()},
    _PATTERNS_BEFORE_STOP,
    _OPENING_MARKS,
)
"""Class of a word before a full stop, given without it; opening brackets and quotes are ignored."""

CLASS_AFTER_STOP: Final = WordClasses(
    {
        **{word + mark: f"Opener{mark}" for word in SENTENCE_OPENERS for mark in ("", ",")},
        **{word + mark: "common" for word in COMMON_WORDS for mark in ("", ",")},
        **dict.fromkeys(_FIGURE_WORD_LIST.split(), "Figure"),
        **{
            word + mark: "author" for word in WORD_FAMILIES["author"].split() for mark in ("", ".", ",", ".,")
        },
    },
    _PATTERNS_AFTER_STOP,
)
"""Class of a word after a full stop."""


class SecondWordClasses(dict[str, str]):
    """Cache from the second word before or after a full stop to its class."""

    def __init__(self, classify: Callable[[str], str]) -> None:
        self._classify = classify

    def __missing__(self, word: str) -> str:
        word_class = self._classify(word)
        if len(word) <= _MAX_WORD_LENGTH:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[word] = word_class
        return word_class


_SUPPLEMENT_NUMBER: Final = re.compile(r"S\d")
"""Number of a supplement before its kind: S4 Fig."""


def _classify_second_word_before(word: str) -> str:
    if not word:
        return "none"
    if word in (".", "...", "…"):
        return "dots"
    if word[-1] in ",;:." and len(word) > 1:
        return "Name" + word[-1] if word[0].isupper() else word[-1]
    if word in ("and", "&"):
        return "and"
    if word in COMMON_WORDS:
        return "common"
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


CLASS_OF_SECOND_WORD_BEFORE: Final = SecondWordClasses(_classify_second_word_before)
"""Class of the second word before a full stop: what an initial or a number belongs to."""

CLASS_OF_SECOND_WORD_AFTER: Final = SecondWordClasses(_classify_second_word_after)
"""Class of the second word after a full stop."""
