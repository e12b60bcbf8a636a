"""Change one operator or constant of a file at a time, and count the changes that its tests notice.

``make mutants FILE=corpus/lifecycle/checks.py`` changes a copy of the repository, so that a run that is
killed leaves nothing behind.  A change that no test notices survives: it is a rule that no test holds, or two
ways to write the same.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import re
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
NOT_COPIED: Final = (".git", ".venv*", ".data", ".*_cache", "__pycache__", "build", "out")
LIBRARIES: Final = {  # imported once; each mutant is a fork
    "": ("pytest", "hypothesis", "numpy", "pyarrow.parquet", "lxml.etree", "msgspec", "requests", "jinja2"),
    "pipelines": ("apache_beam",),
    "train": ("torch", "transformers"),
    "evaluate": ("torch", "transformers"),
    "vocab": ("tokenizers", "sentencepiece"),
}
SECONDS_ALLOWED: Final = 20
"""A mutant's time limit, beside five times that of the unchanged tests."""
OPERATORS: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
}


@dataclass(frozen=True)
class Mutant:
    """A changed file.

    Attributes:
        line: line of the change, from 1.
        change: the expression before and after.
        source: the whole file with the change.
    """

    line: int
    change: str
    source: str


@dataclass
class Verdict:
    """What the tests said of one file.

    Attributes:
        seconds: their time.
        failed: names of the tests that failed, without their parameters.
        is_noticed: whether a test failed, took too long or could not run.
    """

    seconds: float
    failed: list[str] = field(default_factory=list)
    is_noticed: bool = False


def make_mutants(source: str) -> list[Mutant]:
    """Return a mutant for every operator, number, truth value and plain condition of a file."""
    tree = ast.parse(source)
    mutants = []
    for node in _walk_code(tree):
        for name, changed in _find_changes(node):
            original, before = getattr(node, name), ast.unparse(node)
            setattr(node, name, changed)
            change = f"{before.splitlines()[0]}  ->  {ast.unparse(node).splitlines()[0]}"
            mutants.append(Mutant(getattr(node, "lineno", 0), change, ast.unparse(tree)))
            setattr(node, name, original)
    return sorted(mutants, key=lambda mutant: mutant.line)


def _walk_code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it but type annotations."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walk_code(child)


def _find_changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """Yield the attributes of a node that can be changed, and their changed values."""
    match node:
        case ast.Compare(ops=operators):
            for at, operator in enumerate(operators):
                yield "ops", [*operators[:at], OPERATORS[type(operator)](), *operators[at + 1 :]]
        case ast.BoolOp(op=operator):
            yield "op", OPERATORS[type(operator)]()
        case ast.BinOp(op=operator) if type(operator) in OPERATORS and not _is_text(node):
            yield "op", OPERATORS[type(operator)]()
        case ast.Constant(value=bool(value)):
            yield "value", not value
        case ast.Constant(value=int(value) | float(value)):
            yield "value", value + 1
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if isinstance(test, ast.UnaryOp):
                yield "test", test.operand
            elif not isinstance(test, ast.Compare | ast.BoolOp):
                yield "test", ast.UnaryOp(op=ast.Not(), operand=test)


def _is_text(node: ast.BinOp) -> bool:
    """Return whether a sum has a text on either side."""
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def find_tests(path: Path) -> list[str]:
    """Return the files of tests that name a module of the package."""
    *package, module = path.with_suffix("").parts
    named = re.compile(
        rf"bioshards\.{re.escape('.'.join(package))}(\.{module}\b| import (\(|.*\b){module}\b)"
        if package
        else rf"\b{module}\b"
    )
    return sorted(str(test) for test in Path("tests").rglob("test_*.py") if named.search(test.read_text()))


def run_tests(tests: Sequence[str], seconds: float, *, stop_at_first: bool) -> Verdict:
    """Run tests in a fork of this process, in a process group of its own."""
    read_end, write_end = os.pipe()
    started = time.monotonic()
    if not (child := os.fork()):
        os.setsid()
        os.close(read_end)
        with open("mutant.log", "w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        failures = _Failures()
        options = ["-q", "-p", "no:cacheprovider", *(["-x"] if stop_at_first else [])]
        code = pytest.main([*options, *tests], plugins=[failures])
        os.write(write_end, json.dumps([int(code), sorted(failures.names)]).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as answers:
        is_over = bool(select.select([answers], [], [], seconds)[0])
        answer = answers.read() if is_over else b""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    code, failed = json.loads(answer) if answer else (-1, [])
    return Verdict(time.monotonic() - started, failed, is_noticed=code != 0)


class _Failures:
    """A plugin of pytest that remembers which tests failed."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.add(report.nodeid.partition("[")[0])


def copy_repository(folder: Path) -> None:
    """Copy what tests need, and make the copy the current folder and the one that is imported."""
    shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*NOT_COPIED))
    os.chdir(folder)
    sys.path[:] = [str(folder / "src"), str(folder), *(entry for entry in sys.path if not _is_in_root(entry))]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    for name in [name for name in sys.modules if name.split(".")[0] in ("tests", "bioshards")]:
        del sys.modules[name]


def _is_in_root(entry: str) -> bool:
    return ROOT in (path := Path(entry).resolve(), path.parent)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the mutants of a file that its tests let live."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("file", type=Path, help="a file of the product, as corpus/lifecycle/checks.py")
    parser.add_argument(
        "--tests", nargs="+", help="files or names of tests (default: the tests that name its module)"
    )
    parser.add_argument("--sample", type=int, help="number of mutants, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument(
        "--all-tests",
        action="store_true",
        help="run every test on every mutant, and print how many each notices, and how many it alone",
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_repository(Path(folder).resolve() / "copy")
        return _try_mutants(options)


def _try_mutants(options: argparse.Namespace) -> int:
    """Run the tests on the file as it is, then on each mutant."""
    tests = options.tests or find_tests(options.file)
    if not tests:
        print(f"no test names the module of {options.file}: give --tests", file=sys.stderr)
        return 2
    print(f"{options.file}: {' '.join(tests)}", flush=True)
    for name in (*LIBRARIES[""], *LIBRARIES.get(options.file.parts[0], ())):
        importlib.import_module(name)
    unchanged = run_tests(tests, 3600, stop_at_first=True)
    if unchanged.is_noticed:
        print(Path("mutant.log").read_text(), "the tests fail on the file as it is", file=sys.stderr)
        return 2
    mutants = make_mutants(options.file.read_text())
    if options.sample and options.sample < len(mutants):
        mutants = random.Random(options.seed).sample(mutants, options.sample)
    noticed, noticed_alone = Counter[str](), Counter[str]()
    survivors = []
    for mutant in mutants:
        options.file.write_text(mutant.source)
        verdict = run_tests(
            tests, SECONDS_ALLOWED + 5 * unchanged.seconds, stop_at_first=not options.all_tests
        )
        noticed.update(verdict.failed)
        if len(verdict.failed) == 1:
            noticed_alone.update(verdict.failed)
        if not verdict.is_noticed:
            survivors.append(mutant)
            print(f"  {options.file}:{mutant.line}: {mutant.change}", flush=True)
    if options.all_tests:
        for name, count in noticed.most_common():
            print(f"{count:5} {noticed_alone[name]:5}  {name}")
    print(
        f"{len(mutants) - len(survivors)} of {len(mutants)} mutants noticed ({unchanged.seconds:.0f} s a run)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
