"""Invented biomedical English: names, sentences that hold them, and what each sentence says of them.

The sample of benchmarks (benchmark_sample.py) is made of it.  No drug, gene, disease or species here exists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from bioshards.evaluate.benchmarks.records import Mention

ENTITY_NAMES: Final[Mapping[str, Sequence[str]]] = {
    "drug": (
        *("talmedrine", "spirelactone", "ovirastane", "quelonide", "bremaxine", "zumepril acetate"),
        "5-hydroxyvexamide",
    ),
    "gene": (*("KLT7R", "BRF12", "GLIM5", "lumen adhesion factor", "tubulose synthase", "piezin receptor"),),
    "disease": (
        *("Ansel fever", "Marlow syndrome", "pale kidney disease", "hollow lung syndrome", "tarsitis"),
        *("harbour asthma", "glassblower's neuropathy"),
    ),
    "species": (*("Murella portansis", "Bacillus anselii", "dock sponge", "mice", "rats", "M. portansis"),),
    "protein": ("KLT7R", "BRF12", "lumen adhesion factor", "piezin receptor", "GLIM5", "tubulose synthase"),
    "DNA": ("BRF12 promoter", "TMQ3 enhancer", "second exon of NXP4A", "lactose operator"),
    "RNA": ("KLT7R mRNA", "miR-9981", "SOLV1 transcripts", "GLIM5 mRNA"),
    "cell_type": ("tubular cells", "omental mast cells", "splenic T cells", "goblet cells"),
    "cell_line": ("PA-12 cells", "OM3 line", "HARB-4 cells", "TQ9 cells"),
    "participants": (
        *(
            "patients aged 70 years or older",
            "children with Ansel fever",
            "volunteers from two coastal villages",
        ),
        *("women after the menopause", "adults with harbour asthma", "retired pilots"),
    ),
    "interventions": (
        *("spirelactone 25 mg at night", "weekly postcards", "talmedrine by gavage", "a larger collar"),
        *("oral quelonide", "early physiotherapy"),
    ),
    "outcomes": (
        *("walking distance", "falls at night", "sleep quality", "grip strength on day 30"),
        *("time to the first relapse", "serum potassium"),
    ),
}
"""What stands for a name in braces, by what is in them."""

CHEMPROT: Final[Mapping[str, Sequence[str]]] = {
    "CPR:3": (
        "{drug} raised the activity of {gene} within {n} min.",
        "{gene} was activated by {drug} in goblet cells.",
    ),
    "CPR:4": (
        "{drug} inhibited {gene} with an IC50 of {n} nM.",
        "{gene} was blocked by {drug} at {n} mg/kg.",
    ),
    "CPR:5": (
        "{drug} is a full agonist of {gene}.",
        "As an agonist of {gene}, {drug} was effective at {n} nM.",
    ),
    "CPR:6": (
        "{drug} is an antagonist of {gene}.",
        "The antagonist {drug} displaced the natural ligand of {gene}.",
    ),
    "CPR:9": ("{drug} is a substrate of {gene}.", "{gene} converts {drug} to an inactive product."),
    "false": (
        "{drug} was given {n} min before {gene} was measured.",
        "Neither {drug} nor {gene} was found in urine.",
    ),
}
DDI: Final[Mapping[str, Sequence[str]]] = {
    "advise": (
        "{drug} should not be given together with {drug}.",
        "Caution is advised when {drug} is added to {drug}.",
    ),
    "effect": (
        "{drug} deepened the sedation that {drug} causes.",
        "Bleeding was more frequent when {drug} was taken with {drug}.",
    ),
    "mechanism": (
        "{drug} raised the plasma level of {drug} by {n}%.",
        "{drug} slows the clearance of {drug}.",
    ),
    "int": ("{drug} interacts with {drug}.", "An interaction of {drug} and {drug} has been reported."),
    "false": (
        "{drug} and {drug} were studied in separate trials.",
        "Patients took either {drug} or {drug} for {n} days.",
        "Trials of {drug}, {drug} and {drug} are under way.",
    ),
}
GAD: Final[Mapping[str, Sequence[str]]] = {
    "1": (
        "The short allele of {gene} was associated with {disease}.",
        "Carriers of a {gene} variant had {disease} more often.",
    ),
    "0": (
        "No link between {gene} and {disease} was found.",
        "Variants of {gene} did not alter the risk of {disease}.",
    ),
}
UNCLEAR: Final = (
    "It remains unclear whether {gene} plays a part in {disease}.",
    "Whether {gene} matters in {disease} remains to be shown.",
)
"""Answers to the questions that :data:`GAD` answers with yes and no."""
FACTS: Final = (
    "{drug} relieved {disease} in {n} of 98 patients.",
    "{disease} and {disease} followed the first dose of {drug}.",
    "{disease} was rare among the residents of Port Ansel.",
    "The loss of {gene} caused {disease} in {species}.",
    "{species} was isolated from the bark of a coastal shrub.",
    "Extracts of {species} killed {species} within {n} h.",
    "Urinary {drug} was measured in {species} by mass spectrometry.",
    "{protein} bound the {DNA} in {cell_type}.",
    "{RNA} was absent from {cell_line} after {n} h.",
    "{cell_line} express {protein}, unlike {cell_type}.",
    "Deleting the {DNA} removed {RNA} from {cell_type}.",
)
"""Sentences for taggers, besides those above."""
NEUTRAL: Final = (
    "No adverse event was recorded.",
    "The trial ended early, because nobody returned the postcards.",
    "Median reading time was {n} s.",
    "The habit, for once, seems sound.",
    "Larger studies are needed.",
)
SHARED: Final = (
    "{drug=Talmedrine} is a tetracyclic compound isolated from the bark of a coastal shrub.",
    "Two children with {disease=rheumatic fever} were followed until their sedimentation rate was normal.",
)
"""The first stands in an abstract of corpus/sample, too, so that contamination is there to be found."""
PARAPHRASES: Final = (
    ("{drug} inhibited {gene} in {species}.", "In {species}, {gene} was blocked by {drug}."),
    ("Carriers of {gene} often have {disease}.", "{disease} is frequent in people who carry {gene}."),
    ("{drug} relieved {disease} within {n} days.", "It took {n} days until {drug} relieved {disease}."),
    ("{species} lack {gene} altogether.", "There is no trace of {gene} in {species}."),
)
PICO: Final = (
    "We enrolled {participants} at {n} centres.",
    "They received {interventions} for {n} weeks.",
    "The main outcome was {outcomes}.",
    "{outcomes} improved under {interventions}, but not in {participants}.",
    "No harm was seen.",
)
HALLMARKS: Final[Mapping[str, Sequence[str]]] = {
    "Activating invasion and metastasis--Metastasis": ("Cells that lost {gene} spread to the lung.",),
    "Avoiding immune destruction": ("{gene} hides tumour cells from T cells.",),
    "Cellular energetics--Glycolysis/Warburg effect": ("{gene} shifts tumours to glycolysis.",),
    "Enabling replicative immortality": ("With {gene}, cells divided for {n} passages without senescence.",),
    "Evading growth suppressors--By deregulating cell cycle checkpoints": (
        "Tumours with {gene} pass the checkpoint unhindered.",
    ),
    "Genomic instability and mutation--DNA damage": ("Strand breaks accumulate where {gene} is lost.",),
    "Inducing angiogenesis--Angiogenic factors": ("{gene} draws new vessels into the tumour.",),
    "Resisting cell death--Apoptosis": ("{drug} failed to induce apoptosis in cells with {gene}.",),
    "Sustaining proliferative signaling": ("{gene} signals growth without any ligand.",),
    "Tumor promoting inflammation--Oxidative stress": ("Inflamed tissue with {gene} turned into tumour.",),
}
"""Sentences by the label that hallmarks-of-cancer's files have for them."""
FACTOIDS: Final = (
    ("Which drug blocks {gene}?", "{gene} is blocked by {drug} in most tissues.", "drug"),
    ("Which gene is mutated in {disease}?", "Mutations of {gene} are the cause of {disease}.", "gene"),
    ("Which disease is treated with {drug}?", "{drug} is the usual treatment of {disease}.", "disease"),
    ("In which species was {drug} found?", "{drug} was first found in {species} near Port Ansel.", "species"),
)
"""A question, a passage that answers it, and whose name the answer is."""

_SLOT: Final = re.compile(r"\{(\w+)(?:=([^}]*))?\}")
_WORD: Final = re.compile(r"\w+(?:[-.']\w+)*|[^\w\s]")
_LEAD_INS: Final = ("", "", "", "As expected, ")


@dataclass(frozen=True, slots=True)
class AnnotatedText:
    """A text and the names in it, each with the kind of name (``drug``) for its type."""

    text: str
    mentions: tuple[Mention, ...]

    def bio_tagged_words(self, types: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return words with BIO tags; only names of the given types are mentions."""
        tagged_words = []
        for word in _WORD.finditer(self.text):
            inside = [
                one
                for one in self.mentions
                if one.type in types and one.start < word.end() and word.start() < one.end
            ]
            tag = (
                f"{'B' if inside[0].start == word.start() else 'I'}-{types[inside[0].type]}"
                if inside
                else "O"
            )
            tagged_words.append((word.group(), tag))
        return tagged_words


def fill_template(
    rng: Random, template: str, names_by_type: Mapping[str, str] | None = None
) -> AnnotatedText:
    """A template with names: those ``names_by_type`` by kind, else any, each once in a sentence."""
    text, position = "", 0
    mentions: list[Mention] = []
    used: set[str] = set()
    for slot in _SLOT.finditer(template):
        entity_type, fixed_name = slot.groups()
        text += template[position : slot.start()]
        position = slot.end()
        if entity_type == "n":
            text += (names_by_type or {}).get("n") or str(rng.randrange(2, 90))
            continue
        name = (
            fixed_name
            or (names_by_type or {}).get(entity_type)
            or rng.choice([one for one in ENTITY_NAMES[entity_type] if one not in used])
        )
        used.add(name)
        mentions.append(Mention(len(text), len(text) + len(name), entity_type))
        text += name
    text += template[position:]
    return AnnotatedText(text[:1].upper() + text[1:], tuple(mentions))


def add_lead_in(rng: Random, template: str) -> str:
    """A template with something before it, or as it is."""
    lead_in = rng.choice(_LEAD_INS)
    return lead_in + (template[0].lower() + template[1:] if lead_in else template)


def join_texts(parts: Sequence[AnnotatedText], separator: str = " ") -> AnnotatedText:
    """Join sentences to one text."""
    text = ""
    mentions: list[Mention] = []
    for part in parts:
        text += separator if text else ""
        offset = len(text)
        mentions += [Mention(offset + one.start, offset + one.end, one.type) for one in part.mentions]
        text += part.text
    return AnnotatedText(text, tuple(mentions))
