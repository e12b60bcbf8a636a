"""Read the DOCTYPE of an untrusted XML file without its risks: no DTD, no external entity, no entity bomb.

A DOCTYPE may have declarations of its own. Those of elements, attributes, notations and unparsed entities
change no text and are passed over. An entity that stands for a few characters is resolved in the bytes of the
file. A file that declares anything else is rejected as a whole: parameter entities, external entities, and
entities of markup or of other entities, which entity bombs are made of.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from typing import Final

from bioshards.corpus.errors import BadFileError

MAX_DOCTYPE_BYTES: Final = 1 << 16
"""Longest DOCTYPE with its declarations."""
MAX_ENTITY_CHARACTERS: Final = 64
"""Longest text of a declared entity."""
GROWTH_EXEMPT_BYTES: Final = 1 << 20
"""Bytes by which declared entities may lengthen any file; a larger file may become twice as long."""

_DOCTYPE_START: Final = b"<!DOCTYPE"
_LITERAL: Final = rb"""(?:"[^"]*"|'[^']*')"""
_SPACE: Final = rb"[ \t\r\n]"
_NAME: Final = rb"[A-Za-z_:\x80-\xff][\w.:\x80-\xff-]*"
_DOCTYPE = re.compile(rb"<!DOCTYPE(?:[^\[\"'<>]|" + _LITERAL + rb")*([\[>])")
_SUBSET = re.compile(rb"((?:[^\]\"']|" + _LITERAL + rb")*)\]" + _SPACE + rb"*>")
_CHARACTER_ENTITY = re.compile(
    rb"%(space)s*<!ENTITY%(space)s+(%(name)s)%(space)s+(%(literal)s)%(space)s*>"
    % {b"space": _SPACE, b"name": _NAME, b"literal": _LITERAL}
)
_PASSED_OVER = re.compile(
    rb"%(space)s*<!(?:(?:ELEMENT|ATTLIST|NOTATION)%(space)s(?:[^<>\"'%%]|%(literal)s)*"
    rb"|ENTITY%(space)s+%(name)s%(space)s+(?:SYSTEM|PUBLIC%(space)s+%(literal)s)%(space)s+%(literal)s"
    rb"%(space)s+NDATA%(space)s+%(name)s%(space)s*)>"
    % {b"space": _SPACE, b"name": _NAME, b"literal": _LITERAL}
)
"""A declaration that changes no text. Of entities only the unparsed, as figures: text cannot name them."""
_PREDEFINED: Final[Mapping[str, str]] = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
"""Entities of XML itself. A declaration of one must agree with XML, and is passed over."""


def resolve_doctype(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a file without the declarations of its DOCTYPE, the entities that it declares resolved.

    Args:
        blocks: UTF-8 without comments, processing instructions and CDATA.

    Raises:
        BadFileError: the DOCTYPE declares what is not read, or its entities lengthen the file too much.
    """
    head = b""
    doctype = subset = None
    for block in blocks:
        head = (head + block).lstrip()
        if not head.startswith(_DOCTYPE_START[: len(head)]) or len(head) > MAX_DOCTYPE_BYTES:
            break
        if b"[" in block or b">" in block:
            doctype = _DOCTYPE.match(head)
            subset = _SUBSET.match(head, doctype.end()) if doctype and doctype[1] == b"[" else None
            if doctype and (subset or doctype[1] == b">"):
                break
    doctype = doctype or _DOCTYPE.match(head)
    if doctype is None or doctype[1] == b">":
        yield head
        yield from blocks
        return
    subset = subset or _SUBSET.match(head, doctype.end())
    if subset is None or subset.end() > MAX_DOCTYPE_BYTES:
        if len(head) > MAX_DOCTYPE_BYTES:
            raise _declaration_error(f"they are longer than {MAX_DOCTYPE_BYTES:,} bytes")
        raise BadFileError("truncated-xml", f"ends within its DOCTYPE: {head[-60:]!r}")
    references = _parse_declarations(subset[1])
    head = head[subset.end() :]
    if references:
        yield from _resolve_references(_prepend(head, blocks), references)
    else:
        yield head
        yield from blocks


def _prepend(head: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from blocks


def _declaration_error(problem: str) -> BadFileError:
    return BadFileError(
        "dtd-declarations",
        f"its DOCTYPE carries declarations of its own that are not read: {problem}. Only characters, "
        "notations, elements and attributes may be declared",
    )


def _parse_declarations(subset: bytes) -> dict[bytes, bytes]:
    """Return the declared entities: names and their text as character references.

    Raises:
        BadFileError: a declaration that is not read.
    """
    references: dict[bytes, bytes] = {}
    position, end = 0, len(subset.rstrip())
    while position < end:
        match = _CHARACTER_ENTITY.match(subset, position)
        if match and match[1].decode("ascii", "replace") not in _PREDEFINED:
            text = _read_entity_text(match[2][1:-1])
            if text is None or len(text) > MAX_ENTITY_CHARACTERS:
                raise _declaration_error(
                    f"entity {match[1][:40]!r} is more than a few characters, or has markup or entities in it"
                )
            references.setdefault(match[1], _to_references(text))  # the first declaration of a name counts
        match = match or _PASSED_OVER.match(subset, position)
        if match is None:
            raise _declaration_error(repr(subset[position : position + 60].strip()))
        position = match.end()
    return references


_CHARACTER_REFERENCE = re.compile(r"&#(?:([0-9]{1,7})|x([0-9A-Fa-f]{1,6}));")
_REFERENCE = re.compile(rf"{_CHARACTER_REFERENCE.pattern}|&(lt|gt|amp|quot|apos);|&")


def _read_entity_text(value: bytes) -> str | None:
    """Return the text that an entity with this value stands for; None if it has markup or entities in it.

    A character reference is resolved in the declaration, and one that this makes (``&#38;#60;``) in the text
    (https://www.w3.org/TR/xml/#sec-predefined-ent).
    """
    try:
        content = _CHARACTER_REFERENCE.sub(_resolve_reference, value.decode())
        if b"%" in value or "<" in content:
            return None
        return _REFERENCE.sub(_resolve_reference, content)
    except (UnicodeDecodeError, ValueError, OverflowError, LookupError):
        return None


def _resolve_reference(reference: re.Match[str]) -> str:
    """Return the character of a reference.

    Raises:
        LookupError: it is no reference to a character.
        ValueError, OverflowError: there is no such character.
    """
    decimal, hexadecimal, *names = reference.groups()
    if decimal or hexadecimal:
        return chr(int(decimal) if decimal else int(hexadecimal, 16))
    return _PREDEFINED[names[0]]


_PLAIN_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + " ")


def _to_references(text: str) -> bytes:
    return "".join(
        character if character in _PLAIN_CHARACTERS else f"&#{ord(character)};" for character in text
    ).encode()


_MAX_REFERENCE_BYTES: Final = 256
_ENTITY_REFERENCE = re.compile(rb"&(" + _NAME + rb");")


def _resolve_references(blocks: Iterator[bytes], references: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """Yield the blocks with the declared entities resolved; other entities stay.

    Raises:
        BadFileError: the entities lengthen the file too much.
    """
    total_bytes = growth = 0

    def resolve(reference: re.Match[bytes]) -> bytes:
        nonlocal growth
        text = references.get(reference[1])
        if text is None:
            return reference[0]
        growth += max(0, len(text) - len(reference[0]))
        if growth > max(GROWTH_EXEMPT_BYTES, total_bytes):
            raise BadFileError("bomb", f"its entities make {total_bytes:,} bytes twice as long, and longer")
        return text

    pending = b""
    for block in blocks:
        total_bytes += len(block)
        block = pending + block
        start = block.rfind(b"&", max(0, len(block) - _MAX_REFERENCE_BYTES))
        is_cut = start >= 0 and b";" not in block[start:]
        block, pending = (block[:start], block[start:]) if is_cut else (block, b"")
        if block:
            yield _ENTITY_REFERENCE.sub(resolve, block)
    if pending:
        yield pending
