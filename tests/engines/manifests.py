"""Check the manifests of docker/kubernetes against the schemas of Kubernetes and of Flink's operator."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

import jsonschema

from tests.engines import install

MANIFESTS: Final = Path(__file__).resolve().parents[2] / "docker" / "kubernetes"
KUBERNETES: Final = "1.34"
_OPERATOR_SCHEMA: Final = "META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"


def check_manifests(folder: Path) -> dict[str, list[str]]:
    """Return the errors of each document, by file and kind.

    Raises:
        EngineMissingError: the schemas cannot be had.
    """
    packages = install.get_python_packages(folder, "kubernetes-validate", "kubernetes-validate==1.37.0")
    sys.path.append(str(packages))
    yaml, kubernetes_validate = map(importlib.import_module, ("yaml", "kubernetes_validate"))
    [operator] = install.get_jars(
        folder,
        f"flink-operator-{install.FLINK_OPERATOR}",
        [("org.apache.flink", "flink-kubernetes-operator-api", install.FLINK_OPERATOR)],
    ).glob("flink-kubernetes-operator-api-*.jar")
    definition = yaml.safe_load(zipfile.ZipFile(operator).read(_OPERATOR_SCHEMA))
    [version] = definition["spec"]["versions"]
    operator_schema = version["schema"]["openAPIV3Schema"]
    operator_schema["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {}}  # of every object
    operator_schema = _forbid_unknown_fields(operator_schema)
    errors: dict[str, list[str]] = {}
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            found = errors.setdefault(f"{path.name}: {document['kind']} {document['metadata']['name']}", [])
            if document["kind"] == "FlinkDeployment":
                validator = jsonschema.Draft202012Validator(operator_schema)
                found += [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
                continue
            try:
                kubernetes_validate.validate(document, KUBERNETES, strict=True)
            except kubernetes_validate.ValidationError as error:
                found.append(str(error.message))
    return errors


def _forbid_unknown_fields(schema: Any) -> Any:
    """Return a schema that refuses the fields that Kubernetes would drop in silence."""
    if isinstance(schema, list):
        return [_forbid_unknown_fields(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _forbid_unknown_fields(each) for name, each in schema.items()}
    is_open = strict.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in strict
    if isinstance(strict.get("properties"), dict) and strict.get("type") == "object" and not is_open:
        strict["additionalProperties"] = False
    return strict


def main() -> int:
    """Print the errors of each document; return 1 if there is one, or if the schemas cannot be had."""
    try:
        documents = check_manifests(Path("build/engines").resolve())
    except install.EngineMissingError as error:
        print(f"{MANIFESTS.name}: NOT CHECKED: {error}")
        return 1
    for name, errors in documents.items():
        print(f"{name}: {'; '.join(errors) or 'follows its schema'}")
    return int(any(documents.values()))


if __name__ == "__main__":
    sys.exit(main())
