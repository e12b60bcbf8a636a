"""Text of strangers, such as file names, for a line of the terminal."""

from __future__ import annotations


def to_printable(text: str) -> str:
    """Return the text with line breaks, control characters and invalid UTF-8 written as escapes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
