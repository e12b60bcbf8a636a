"""HTML reports from jinja2 templates, and the text formats that they share.

A page uses the macros of page.html, and lies beside the module that renders it.  Reports show arbitrary input
text: all of it is escaped, and invisible characters are spelled out.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar, which page.html draws in CSS.

    Attributes:
        size: its length in per cent of its room; without one it is not drawn.
        start: where it begins, in per cent.
        colour: number of a colour of page.html: ``--c0`` or ``--c1``.
    """

    size: float
    start: float = 0
    colour: int = 0


def render_page(package: str, template: str, **values: object) -> str:
    """Render a template that lies in a package.

    Args:
        package: name of the package, ``__package__`` of the caller.
        template: file name of the template.
        values: its variables; objects with ``__html__``, such as charts, are inserted as they are.
    """
    page = _load_environment(package).get_template(template).render(**values).lstrip()
    # Text by text, since a mark at the beginning of one would be drawn on what is before it.
    return "".join(spell_out_invisible(text, keep=" \n") for text in re.split('([<>"])', page))


@functools.cache
def _load_environment(package: str) -> Environment:
    """Return the templates of a package and page.html: each is compiled once in a process."""
    # Imported late: only pages need it.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, ".") for name in (__package__, package)]),
        autoescape=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["number"] = lambda number: f"{number:,}"
    environment.filters["percent"] = lambda ratio: Markup(format_percent(ratio).replace("\u202f", "&#8239;"))
    return environment


def spell_out_invisible(text: str, keep: str = "") -> str:
    """Replace invisible characters by their code points (``U+200B``).

    Args:
        text: any text.
        keep: invisible characters that stay. A leading combining mark is put on a dotted circle.
    """
    output: list[str] = []
    for character in text:
        category = unicodedata.category(character)
        if category[0] in "CZ" and character not in keep:
            output.append(f"U+{ord(character):04X}")
        else:
            output.append("\u25cc" + character if category[0] == "M" and not output else character)
    return "".join(output)


def format_percent(value: float) -> str:
    """Format a ratio as a percentage with at least two significant digits of it or of its complement."""
    digits = 0
    if 0 < value < 1:
        _, _, exponent = f"{100 * min(value, 1 - value):e}".partition("e")
        digits = max(2, 1 - int(exponent))
    return f"{100 * value:.{digits}f}\u202f%"
