"""Sources, download addresses and licences that several text benchmarks share."""

from __future__ import annotations

from typing import Final

BLURB_SOURCE: Final = "Gu et al. 2020 (arXiv 2007.15779), the table of BLURB's sets"
BLUE_SOURCE: Final = (
    "Miolo et al. 2021 (ELECTRAMed, arXiv 2104.09585); positive pairs: Peng et al. 2019 (BLUE), table 1"
)
BIO_ELECTRA_SOURCE: Final = "Ozyurt 2020 (Bio-ELECTRA, sdp-1.12)"
BIO_ELECTRA_FILES_SOURCE: Final = "SciCrunch/bio_electra at 7a53526"

ELECTRAMED_DOWNLOAD: Final = "https://github.com/gmpoli/electramed, data/, to be put into electramed/"
BIO_ELECTRA_DOWNLOAD: Final = "https://github.com/SciCrunch/bio_electra, to be put into bio_electra/"
BIOASQ_DOWNLOAD: Final = "https://participants-area.bioasq.org/datasets/, after registration"

REGENTS_LICENCE: Final = "University of California: education, research and non-profit purposes"
BIOCREATIVE_LICENCE: Final = "BioCreative VI: research, with citation"
BIOASQ_LICENCE: Final = "CC BY 2.5 (BioASQ)"
