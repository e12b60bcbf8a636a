"""Run a pipeline from its command line to its exit code.

Everything a person meets is here: is there input, is the output folder ours, what is done already,
progress, and errors that say what, where, why and what to do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from bioshards import __version__
from bioshards.corpus import sources, workspace
from bioshards.corpus.files import TEMPORARY, LocalFiles
from bioshards.corpus.sources import NoInput
from bioshards.corpus.workspace import FORMAT, Workspace, WrongOutput

from . import pubmed_to_shards as pipeline
from .exits import FAILED, INTERRUPTED, NOT_PUBLISHED, OK, USAGE_ERROR
from .options import Parser, UsageError, beam_options
from .pubmed_to_shards import Job

TICK_SECONDS = 0.5


def main(arguments: Sequence[str]) -> int:
    """Run ``beam run pubmed_to_shards`` with these arguments; returns the exit code."""
    parser = pipeline.parser()
    try:
        options, rest = parser.parse_known_args(list(arguments))
        return _run(parser, options, rest)
    except SystemExit as left:  # --help
        return int(left.code or 0)
    except UsageError as error:
        return _say(f"{error}. See beam run pubmed_to_shards --help", USAGE_ERROR)
    except (NoInput, WrongOutput) as error:
        return _say(str(error), USAGE_ERROR)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        code = _say("stopped. Nothing is lost: run the same command again to continue", INTERRUPTED)
        sys.stdout.flush()
        os._exit(code)  # Beam's threads do not end by themselves
    except Exception as error:
        return _say(_explained(error), FAILED)


def _say(message: str, code: int) -> int:
    print(f"beam: {message}", file=sys.stderr)
    return code


def _run(parser: Parser, options: Any, rest: Sequence[str]) -> int:
    started = time.gmtime()
    given = options.input or [pipeline.sample()]
    files = _files([*given, options.output or ""])
    rules = pipeline.rules_of(options)
    beams = beam_options(rest, parser, **_local_options(rest, options.workers)) if rest else None
    if not options.output:
        raise UsageError("--output DIR is missing: the folder to write")
    found = sources.discover(files, given)
    output = options.output if "://" in options.output else os.path.abspath(options.output)
    job = Job(
        files=files,
        work=Workspace(output.rstrip("/")),
        sources=found,
        rules=rules,
        keep_dropped=options.keep_dropped,
        max_shard_bytes=options.max_shard_mb * 1_000_000,
        max_rejected=options.max_rejected,
        config={
            "pipeline": "pubmed_to_shards",
            "format": FORMAT,
            "preset": options.preset,
            "rules": rules.as_dict(),
            "keep_dropped": options.keep_dropped,
            "max_shard_mb": options.max_shard_mb,
        },
        run={
            "bioshards": __version__,
            "command": ["beam", "run", "pubmed_to_shards", *sys.argv[3:]],
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", started),
        },
    )
    try:
        workspace.check(files, job.work, job.config)
    except OSError as error:
        raise WrongOutput(f"--output {output} cannot be written: {error.strerror or error}") from error
    with _locked(job.work):
        if _finished(job):
            print(
                f"{job.work.output} is finished and its {len(found)} input files are unchanged: "
                "nothing to do."
            )
            return OK
        _clear_way(job)
        _execute(job, beams, options.workers, runner_given=any(word.startswith("--runner") for word in rest))
        return _report(job)


def _files(paths: Sequence[str]) -> LocalFiles:
    if not any("://" in path for path in paths):
        return LocalFiles()
    from .storage import AnyFiles

    return AnyFiles()


def _local_options(rest: Sequence[str], workers: int) -> dict[str, Any]:
    if any(word.startswith("--runner") for word in rest):
        return {}
    from . import local

    return local.options_for(workers)


@contextlib.contextmanager
def _locked(work: Workspace) -> Iterator[None]:
    """One run at a time in a local output folder; the system drops the lock of a killed one."""
    if "://" in work.output:
        yield
        return
    import fcntl

    with open(f"{work.folder}/lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise WrongOutput(f"another run is writing {work.output}; wait for it or stop it") from error
        yield


def _finished(job: Job) -> bool:
    """Is the manifest there, of these very inputs, with every shard in place?"""
    files, work = job.files, job.work
    if not files.exists(work.manifest):
        return False
    manifest = files.read_json(work.manifest)
    sizes = {found.path: found.size for found in files.walk(work.output)}
    for shard in manifest["outputs"] + manifest["dropped"]:
        if sizes.get(f"{work.output}/{shard['file']}") != shard["bytes"]:
            return False
    if manifest["bad_files"]:
        return False
    now = set()
    for source in job.sources:
        seen = work.seen(source.path, source.stamp)
        if not files.exists(seen):
            return False
        now.add((source.name, files.read_json(seen)["md5"]))
    return now == {(item["file"], item["md5"]) for item in manifest["inputs"]}


def _clear_way(job: Job) -> None:
    """No manifest while unfinished; nothing left of what a killed run was just writing."""
    files, work = job.files, job.work
    for path in (work.manifest, f"{work.output}/state.json", work.outcome):
        files.remove(path)
    parts = ["", "/dropped", "/rejected", "/.bioshards"]
    parts += [f"/.bioshards/{part}" for part in ("seen", "staged", "verdicts", "finished")]
    for folder in [f"{work.output}{part}" for part in parts]:
        for name in files.names(folder):
            if name.startswith(TEMPORARY):
                files.remove(f"{folder}/{name}")


def _execute(job: Job, beams: Any, workers: int, runner_given: bool) -> None:
    import apache_beam as beam

    from . import local
    from .progress import Progress

    if beams is None:
        from apache_beam.options.pipeline_options import PipelineOptions

        beams = PipelineOptions([], **local.options_for(workers))
    runner = None if runner_given else local.runner(beams)

    def work() -> None:
        root = beam.Pipeline(runner=runner, options=beams)
        pipeline.build(root, job)
        root.run().wait_until_finish()

    progress = Progress(job.files, job.work, len(job.sources))
    try:
        local.run(work, progress.tick, TICK_SECONDS)
    finally:
        progress.end()


def _report(job: Job) -> int:
    outcome = job.files.read_json(job.work.outcome)
    if outcome["problem"]:
        return _say(outcome["problem"], NOT_PUBLISHED)
    manifest = job.files.read_json(job.work.manifest)
    for warning in manifest["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    funnel = "\n".join(f"  {count:>12,}  {what}" for what, count in manifest["funnel"].items())
    print(
        f"{outcome['documents']:,} documents, {outcome['sentences']:,} sentences in "
        f"{len(manifest['outputs'])} shards\n{funnel}\n"
        f"shards:   {job.work.output}\nreport:   {job.work.manifest}"
    )
    if outcome["rejected"] or manifest["bad_files"]:
        print(f"rejected: {job.work.output}/rejected")
    return OK


_RAISED = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Refused|Interrupt)): (.*)$", re.MULTILINE)


def _explained(error: Exception) -> str:
    """What went wrong, in a line or two, from an error that may be a worker's whole traceback."""
    text = "".join(traceback.format_exception_only(error))
    raised = _RAISED.findall(text)
    kind, what = raised[-1] if raised else (type(error).__name__, str(error))
    what = re.sub(r" \[while running '.*", "", what).strip()
    full = os.strerror(errno.ENOSPC)
    if getattr(error, "errno", None) == errno.ENOSPC or full in what:
        return "the disk is full. Free some space and run the same command again: it continues"
    if os.environ.get("BIOSHARDS_TRACEBACK"):
        traceback.print_exception(error)
    return (
        f"the run failed: {kind}: {what}. What was done is kept; run the same command again to continue "
        "(BIOSHARDS_TRACEBACK=1 shows where it failed)"
    )
