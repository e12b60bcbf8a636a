"""Frame of the HTML reports: one style for light, dark and print; escaped text; tables.

Reports show arbitrary input text. All of it is escaped, and invisible characters are spelled out.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1b1f24; --soft: #59636e; --back: #fff; --box: #eef2f7;
  --line: #d4dae1; --ours: #0b5cad; --c1: #b4540a; --c2: #23764a; --c3: #8a3b8f;
  --c4: #7a6500; --c5: #a3293d; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ed; --soft: #9aa5b1; --back: #14171b; --box: #242a32; --line: #39424d;
    --ours: #7db4ff; --c1: #f0a15c; --c2: #6fcf97; --c3: #d79be0; --c4: #d9c35a; --c5: #f08a9b; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
p, figcaption { max-width: 46rem; }
.note, figcaption { color: var(--soft); font-size: .875rem; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .3rem .75rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; }
th:first-child, td.text, th.text { text-align: left; }
tbody th { font-weight: 400; }
td.text { min-width: 9rem; }
.ours { font-weight: 600; color: var(--ours); }
.piece { display: inline-block; font: .85em/1.45 ui-monospace, monospace; background: var(--box);
  border-radius: .25em; padding: 0 .3em; margin: 0 .15em .15em 0; overflow-wrap: anywhere; }
.piece i { color: var(--soft); font-style: normal; }
figure { margin: .75rem 0; }
svg { max-width: 100%; height: auto; color: var(--text); font-size: 12px; }
@media print { .scroll { overflow: visible; } h2 { break-after: avoid; } tr, figure { break-inside: avoid; } }
"""
_CONTENT_SECURITY_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""The browser runs no script and loads nothing."""


def render_html_page(title: str, body: Iterable[str]) -> str:
    """Render a complete page; ``title`` and ``body`` are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_SECURITY_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body>\n</html>\n"
    )


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


def escape_html(value: object) -> str:
    """Escape any value for HTML; blanks and line breaks stay."""
    return html.escape(spell_out_invisible(str(value), keep=" \n"))


def format_percent(value: float) -> str:
    """Format a ratio as a percentage with at least two significant digits of it or of its complement."""
    digits = 0
    if 0 < value < 1:
        _, _, exponent = f"{100 * min(value, 1 - value):e}".partition("e")
        digits = max(2, 1 - int(exponent))
    return f"{100 * value:.{digits}f}\u202f%"


def render_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], left_aligned: Iterable[int] = ()
) -> str:
    """Render a table of cells that are HTML.

    Args:
        header: column headings; empty for none.
        rows: the rows.
        left_aligned: indices of left-aligned columns; column 0 always is.
    """
    left_columns = {0, *left_aligned}
    lines = ['<div class="scroll"><table>']
    if header:
        cells = "".join(
            f'<th scope="col"{" class=text" if column in left_columns else ""}>{cell}</th>'
            for column, cell in enumerate(header)
        )
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for first, *rest in rows:
        cells = "".join(
            f"<td{' class=text' if column in left_columns else ''}>{cell}</td>"
            for column, cell in enumerate(rest, start=1)
        )
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])
