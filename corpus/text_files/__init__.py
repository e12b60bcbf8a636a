"""Text files of one's own: JSON Lines, Parquet and plain text.

The config names the fields to read, and has the text settings that all sources share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.ui.options import Option

DEFAULT_ID_FIELD: Final = "id"


@dataclass(frozen=True, slots=True)
class TextFilesConfig(TextConfig):
    """Fields and text settings of text files; the fields are options of ``beam run text_to_shards``.

    The defaults keep every record that has text.
    """

    drop_retracted: bool = False
    id_field: Annotated[
        str,
        Option(
            "of JSON Lines and Parquet: the field with the id, a string or an integer; records without a "
            "field of the default name get the file's name and their number "
            f"(default: {DEFAULT_ID_FIELD})",
            metavar="NAME",
        ),
    ] = DEFAULT_ID_FIELD
    text_field: Annotated[
        str,
        Option("the field with the text; blank lines in it end a paragraph (default: text)", metavar="NAME"),
    ] = "text"
    title_field: Annotated[
        str, Option("the field with the title, which may be missing (default: title)", metavar="NAME")
    ] = "title"

    drop_reasons: ClassVar[tuple[str, ...]] = (
        "superseded",
        "no-text",
        "not-included",
        "duplicate",
        "near-duplicate",
        "excluded",
    )
    """All drop reasons, in order of precedence.

    ``superseded``: a later file has a record of the same id (lifecycle/decisions.py).
    """

    def __post_init__(self) -> None:
        TextConfig.__post_init__(self)
        names = (self.id_field, self.text_field, self.title_field)
        if len(set(names)) < len(names) or not all(names):
            raise InvalidValueError(
                f"id_field, text_field and title_field are {', '.join(map(repr, names))}; they must name "
                "three fields"
            )
