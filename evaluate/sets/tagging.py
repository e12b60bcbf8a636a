"""The sets of tagged sentences (named entities, PICO), and the documents that BC5CDR's are from.

Counts are those that papers print, each with its source; what nobody printed is not expected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from bioshards.evaluate.datasets import DataSet, Known, Layout, Without
from bioshards.evaluate.readers import iob, pico, species, standoff
from bioshards.evaluate.records import Record, Sentence, Text

from . import tagged
from .jnlpba import JNLPBA

_BIO_ELECTRA: Final = "Bio-ELECTRA (Ozyurt 2020, table 1)"
_ANTHONY: Final = Known(
    "mentions",
    "dev",
    4246,
    'in dev the collection ends a sentence after "St.", and so counts each of two "St. Anthony\'s fire" '
    "twice; the corpus's own file has 4244 (bc5cdr-pubtator)",
    same=True,
)


def _crichton(
    name: str,
    title: str,
    mentions: Mapping[str, int],
    source: str = tagged.BLURB,
    known: tuple[Known, ...] = (),
    licence: str = "CC BY 4.0 (the collection's)",
    folder: str | None = None,
) -> DataSet:
    """A set of the collection of Crichton et al. (2017), each of one type of entity."""
    folder = folder or f"{title}-IOB"
    files = tagged.files(f"**/{folder}/{{}}.tsv", dev="devel")
    return DataSet(
        name=name,
        title=title,
        layouts=(Layout(files, tagged.EACH, tagged.reading(iob.sentences), known=known),),
        counts={"mentions": mentions},
        count=tagged.sizes,
        source=source,
        licence=licence,
        where=tagged.CRICHTON.format(folder),
    )


def _one_type(path: str) -> list[Sentence]:
    """ELECTRAMed's BC5CDR, in which a mention of one word is ``I-``, and of more begins with ``B-``."""
    return iob.as_iob2(iob.sentences(path))


def _pico() -> tuple[Layout, ...]:
    """EBM-NLP's own files, and SciBERT's."""
    spans = "**/ebm_nlp_2_00/annotations/aggregated/starting_spans/{}/{}/*.ann"
    files = {"tokens": "**/ebm_nlp_2_00/documents/*.tokens", "dev": "**/pico/ebmnlp/dev.txt"}
    for element in pico.ELEMENTS:
        files[f"train {element}"] = spans.format(element, "train")
        files[f"gold {element}"] = spans.format(element, "test/gold")
    crowd = ("tokens", *(f"train {element}" for element in pico.ELEMENTS))
    gold = ("tokens", *(f"gold {element}" for element in pico.ELEMENTS))
    split = Without(
        "SciBERT's pico/ebmnlp/dev.txt, which says what dev is, is absent: every fifth abstract is dev",
        ("train", "dev"),
    )
    why = (
        "SciBERT's labels are made otherwise: where two spans overlap the larger loses the words "
        "(BLURB, section 2.3.2); why dev has more nonetheless is not known"
    )
    return (
        Layout(files, {"train": crowd, "dev": crowd, "test": gold}, pico.original, {"dev": split}),
        Layout(
            tagged.files("**/pico/ebmnlp/{}.txt"),
            tagged.EACH,
            tagged.reading(iob.sentences),
            note="the labels are SciBERT's, and scores not comparable with BLURB's",
            known=(
                Known("labelled words", "dev", 87913, why),
                Known("labelled words", "test", 11908, why),
            ),
        ),
    )


def _species() -> tuple[Layout, ...]:
    """BioBERT's files, and the corpus's own."""
    corpus = {"mentions": "**/S800.tsv", "pmids": "**/pubmedid.tsv", "texts": "**/abstracts/*.txt"}
    split = Without(
        "the lists of spyysalo/s800, s800/split/*.txt, are absent: the split is our own",
        tuple(tagged.EACH),
    )
    return (
        Layout(
            tagged.files("**/s800/{}.tsv", dev="devel"),
            tagged.EACH,
            tagged.reading(partial(iob.sentences, type="Species")),
        ),
        Layout(
            {**corpus, **tagged.files("**/s800/split/{}.txt", dev="devel")},
            dict.fromkeys(tagged.EACH, tuple(corpus)),
            species.species,
            dict.fromkeys(tagged.EACH, split),
            note="sentences and words are bioshards' own, for the corpus has none",
        ),
    )


def _documents(records: Sequence[Record]) -> dict[str, int]:
    """What can be counted in the texts of BC5CDR."""
    texts = [record for record in records if isinstance(record, Text)]
    labels = [record.label for record in texts if isinstance(record.label, frozenset)]
    types = Counter(mention.split()[1] for label in labels for mention in label)
    return {"documents": len(texts), "chemicals": types["CHEMICAL"], "diseases": types["DISEASE"]}


TAGGING: Final[tuple[DataSet, ...]] = (
    _crichton("bc5-chem", "BC5CDR-chem", tagged.three(5203, 5347, 5385)),
    _crichton("bc5-disease", "BC5CDR-disease", tagged.three(4182, 4244, 4424), known=(_ANTHONY,)),
    _crichton("ncbi-disease", "NCBI-disease", tagged.three(5134, 787, 960)),
    _crichton("bc2gm", "BC2GM", tagged.three(15197, 3061, 6325)),
    _crichton("linnaeus", "LINNAEUS", tagged.three(2119, 711, 1433), _BIO_ELECTRA, folder="linnaeus-IOB"),
    _crichton(
        "bc4chemd",
        "BC4CHEMD",
        tagged.three(29478, 29486, 25346),
        _BIO_ELECTRA,
        licence="not clear, says the collection; the corpus is BioCreative's",
    ),
    *JNLPBA,
    DataSet(
        name="bc5cdr-merged",
        title="BC5CDR, chemicals and diseases as one type",
        layouts=(Layout(tagged.files("**/NER/bc5cdr/{}.txt"), tagged.EACH, tagged.reading(_one_type)),),
        counts={"sentences": tagged.three(3951, 3957, 4145)},
        count=tagged.sizes,
        source=tagged.ELECTRAMED,
        licence="MIT (the repository's)",
        where=tagged.ELECTRAMED_FILES.format("bc5cdr"),
    ),
    DataSet(
        name="ebm-pico",
        title="EBM PICO",
        layouts=_pico(),
        counts={
            "labelled words": tagged.three(339167, 85321, 16364),
            "documents": {"train+dev+test": 4993},
        },
        count=tagged.sizes,
        source=f"{tagged.BLURB}; documents: EBM-NLP's README",
        licence="not stated (EBM-NLP); Apache 2.0 (SciBERT's repository)",
        where="https://github.com/bepnye/EBM-NLP, ebm_nlp_2_00.tar.gz unpacked; for the split, and for "
        "labels of its own, https://github.com/allenai/scibert, data/pico/ebmnlp",
        pmids=True,
    ),
    DataSet(
        name="s800",
        title="Species-800",
        layouts=_species(),
        counts={"mentions": {"train+dev+test": 3708}, "documents": tagged.three(560, 80, 160)},
        count=tagged.sizes,
        source="BioALBERT (Naseem et al. 2020, table IV); documents: spyysalo/s800, split/",
        licence="not stated with BioBERT's files; the corpus is of https://species.jensenlab.org",
        where="NERdata of https://github.com/dmis-lab/biobert, s800, or https://species.jensenlab.org, "
        "S800-1.0.tar.gz unpacked, with https://github.com/spyysalo/s800",
        pmids=True,
    ),
    DataSet(
        name="bc5cdr-pubtator",
        title="BC5CDR, the task's documents",
        layouts=(
            Layout(
                {
                    "train": "**/CDR_TrainingSet.PubTator.txt",
                    "dev": "**/CDR_DevelopmentSet.PubTator.txt",
                    "test": "**/CDR_TestSet.PubTator.txt",
                },
                tagged.EACH,
                standoff.documents,
            ),
        ),
        counts={
            "documents": tagged.three(500, 500, 500),
            "chemicals": tagged.three(5203, 5347, 5385),
            "diseases": tagged.three(4182, 4244, 4424),
        },
        count=_documents,
        source=f"{tagged.BLURB}, and its section 2.3.1",
        licence="BioCreative's: see the readme of CDR_Data.zip",
        where="https://biocreative.bioinformatics.udel.edu/tasks/biocreative-v/track-3-cdr/ (CDR_Data.zip)",
        pmids=True,
    ),
)
