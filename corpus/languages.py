"""Language codes: those of PubMed's records, and the conversion of others to them.

PubMed uses the three-letter codes of MARC (https://www.loc.gov/marc/languages/). JATS ``xml:lang`` uses the
two letters of ISO 639-1 where they exist (https://www.rfc-editor.org/info/bcp47).  MARC's codes are those of
ISO 639-2, the bibliographic one if there are two (20 languages): ``ger``, not ``deu``.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Final

from bioshards.corpus.errors import InvalidValueError, find_nearest


def _read_codes() -> tuple[dict[str, str], dict[str, str]]:
    """Return the names of languages by MARC code, and their MARC codes by the other codes."""
    names: dict[str, str] = {}
    marc_codes: dict[str, str] = {}
    path = os.path.join(os.path.dirname(__file__), "languages.tsv")
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                code, name, *other_codes = line.rstrip("\n").split("\t")
                names[code] = name
                marc_codes |= dict.fromkeys(other_codes, code)
    return names, marc_codes


_NAME_BY_CODE, _MARC_BY_ISO = _read_codes()

_LANGUAGE_TAG: Final = re.compile(r"([a-z]{2,3})(?:[-_].*)?", re.DOTALL)


@lru_cache(maxsize=1024)
def to_marc_code(code: str) -> str:
    """Return the MARC code of a language: ``eng`` for ``en``, ``EN`` and ``en-US``, ``ger`` for ``deu``.

    Three-letter codes lose their suffix; unknown codes are lower-cased.
    """
    normalised = code.strip().lower()
    match = _LANGUAGE_TAG.fullmatch(normalised)
    if match is None:
        return normalised
    return _MARC_BY_ISO.get(match[1], match[1] if len(match[1]) == 3 else normalised)


def parse_language(text: str) -> str:
    """Return the MARC code that a person means: ``eng`` for ``eng``, ``ENG`` and ``en``.

    Raises:
        InvalidValueError: there is no such code; the message names the nearest.
    """
    code = to_marc_code(text)
    if code in _NAME_BY_CODE:
        return code
    code_by_name = {name: code for code, name in _NAME_BY_CODE.items()}
    nearest = code_by_name.get(find_nearest(text, code_by_name, 0.7)) or find_nearest(
        code, _NAME_BY_CODE, 0.6
    )
    hint = "eng is English, fre French, ger German"
    if nearest:
        hint = f"did you mean {nearest} ({_NAME_BY_CODE[nearest]})?"
    raise InvalidValueError(f"{text} is no code of a language: {hint}")
