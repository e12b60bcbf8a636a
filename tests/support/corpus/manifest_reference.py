"""Generate docs/manifest.schema.json, and the page of it, from the types in corpus/manifest.py."""

from __future__ import annotations

import ast
import itertools
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from bioshards.corpus import manifest
from tests.support.paths import REPOSITORY

_INTRODUCTION = """\
# manifest.json

Every finished directory has a `manifest.json`. It is written last: its presence marks the directory complete.
All of it but `run` is the same for the same inputs and options. Every field is always there.

[manifest.schema.json](manifest.schema.json) is its JSON Schema. `pipeline` identifies the kind of manifest,
each of which has a `schema_version` of its own. A manifest of another version is an error.
"""


def make_schema() -> dict[str, Any]:
    """Return the JSON Schema of manifests, with the docstring below each field as its description."""
    kinds, definitions = msgspec.json.schema_components(
        list(dict.fromkeys(manifest.KINDS.values())), ref_template="#/$defs/{name}"
    )
    docstrings = _read_docstrings()
    for name, definition in definitions.items():
        for field, schema in definition["properties"].items():
            schema.pop("default", None)  # for runs that begin; every field is always written
            owners = [kind.__name__ for kind in getattr(manifest, name).__mro__]
            schema["description"] = next(
                (docstrings[owner, field] for owner in owners if (owner, field) in docstrings),
                "Pipeline that made the directory.",  # a tag is no field
            )
        definition["required"] = list(definition["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "manifest.json of bioshards",
        "description": "Manifest of a finished directory.",
        "oneOf": list(kinds),
        "$defs": definitions,
    }


def _read_docstrings() -> dict[tuple[str, str], str]:
    """Return the docstring below every field, by class and field."""
    docstrings = {}
    for kind in ast.parse(Path(manifest.__file__).read_text(encoding="utf-8")).body:
        if isinstance(kind, ast.ClassDef):
            for field, below in itertools.pairwise(kind.body):
                if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                    text = ast.literal_eval(below.value)
                    docstrings[kind.name, ast.unparse(field.target)] = " ".join(text.split())
    return docstrings


def format_markdown(schema: dict[str, Any]) -> str:
    """Return the page: a table of fields for each definition of the schema, the kinds first."""
    kinds = [kind["$ref"].rpartition("/")[2] for kind in schema["oneOf"]]
    links = []
    for kind in kinds:
        pipelines = ", ".join(f"`{name}`" for name, of in manifest.KINDS.items() if of.__name__ == kind)
        links.append(f"- [{kind}: {pipelines}](#{kind.lower()})")
    parts = [_INTRODUCTION, "\n".join(links) + "\n"]
    for name in [*kinds, *sorted(schema["$defs"].keys() - {*kinds})]:
        definition = schema["$defs"][name]
        rows = [
            f"| `{field}` | {_format_type(value)} | {_format_text(value['description'])} |"
            for field, value in definition["properties"].items()
        ]
        summary = _format_text(" ".join(definition["description"].split()))
        header = [f"## {name}\n", f"{summary}\n", "| field | type | |", "|---|---|---|"]
        parts.append("\n".join([*header, *rows, ""]))
    return "\n".join(parts)


def _format_type(schema: dict[str, Any]) -> str:
    """Name a type as a reader of JSON knows it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(map(_format_type, schema["anyOf"]))
    if "items" in schema:
        return f"list of {_format_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"object: name to {_format_type(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


def _format_text(text: str) -> str:
    return re.sub("`{2}", "`", text).replace("|", "\\|")


def main() -> None:
    """Write the schema."""
    text = json.dumps(make_schema(), indent=2, ensure_ascii=False) + "\n"
    (REPOSITORY / "docs/manifest.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
