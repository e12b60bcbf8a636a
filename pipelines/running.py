"""Run a pipeline from its command line to its exit code.

Everything a person meets is here: is there input, is the output folder ours, what is done already,
progress, and errors that say what, where, why and what to do.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

from bioshards import __version__
from bioshards.corpus import sources, splitters, workspace
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.sources import NoInput
from bioshards.corpus.splitters import MissingExtra
from bioshards.corpus.workspace import FORMAT, Workspace, WrongOutput

from . import pubmed_to_shards as pipeline
from .exits import FAILED, INTERRUPTED, NOT_PUBLISHED, OK, USAGE_ERROR
from .options import Parser, UsageError, beam_options
from .pubmed_to_shards import Job

TICK_SECONDS, REMOTE_TICK_SECONDS = 0.5, 20
"""How often progress is looked for; in an object store each look is a listing that costs."""


def main(arguments: Sequence[str]) -> int:
    """Run ``beam run pubmed_to_shards`` with these arguments; returns the exit code."""
    parser = pipeline.parser()
    try:
        options, rest = parser.parse_known_args(list(arguments))
        return _run(parser, options, rest, arguments)
    except SystemExit as left:  # --help
        return int(left.code or 0)
    except UsageError as error:
        return _say(f"{error}. See beam run pubmed_to_shards --help", USAGE_ERROR)
    except (NoInput, WrongOutput, MissingExtra) as error:
        return _say(str(error), USAGE_ERROR)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        code = _say("stopped. Nothing is lost: run the same command again to continue", INTERRUPTED)
        sys.stdout.flush()
        os._exit(code)  # Beam's threads do not end by themselves
    except Exception as error:
        if os.environ.get("BIOSHARDS_TRACEBACK"):
            traceback.print_exc()
        return _say(_explained(error), FAILED)


def _say(message: str, code: int) -> int:
    print(f"beam: {message}", file=sys.stderr)
    return code


def _run(parser: Parser, options: Any, rest: Sequence[str], arguments: Sequence[str]) -> int:
    runner_given = any(word.startswith("--runner") for word in rest)
    if not runner_given:
        logging.getLogger().setLevel(logging.CRITICAL)  # errors reach people as our own lines
    inputs = options.input or [pipeline.sample()]
    remote = any("://" in path for path in [*inputs, options.output or ""])
    beams = None  # made later where neither options nor paths need them before, as Beam is slow to import
    if rest or remote:
        beams = beam_options(rest, parser, **_local_options(runner_given, options.workers))
    if not options.output:
        raise UsageError("--output DIR is missing: the folder to write")
    if "DataflowRunner" in " ".join(rest) and "://" not in options.output:
        raise UsageError(f"--output {options.output} is local; Dataflow's workers need gs://BUCKET/...")
    files = _remote_files([*inputs, options.output], beams) if remote else LocalFiles()
    job = _job(options, arguments, files, inputs)
    try:
        workspace.check(job.files, job.work, job.config)
    except OSError as error:
        reason = error.strerror or error
        raise WrongOutput(f"--output {job.work.output} cannot be written: {reason}") from error
    with workspace.locked(job.work):
        if workspace.finished(job.files, job.work, job.sources):
            unchanged = f"its {len(job.sources)} input files are unchanged"
            print(f"{job.work.output} is finished and {unchanged}: nothing to do.")
            return OK
        workspace.clear(job.files, job.work)
        _execute(job, beams, options.workers, runner_given)
        return _report(job)


def _job(options: Any, arguments: Sequence[str], files: LocalFiles, inputs: Sequence[str]) -> Job:
    """The job that the command line asks for, its inputs found."""
    rules = pipeline.rules_of(options)
    output = options.output if "://" in options.output else os.path.abspath(options.output)
    return Job(
        files=files,
        work=Workspace(output.rstrip("/")),
        sources=sources.discover(files, inputs),
        rules=rules,
        keep_dropped=options.keep_dropped,
        dedup=options.dedup,
        max_shard_bytes=options.max_shard_mb * 1_000_000,
        max_rejected=options.max_rejected,
        config={
            "pipeline": "pubmed_to_shards",
            "format": FORMAT,
            "preset": options.preset,
            "rules": rules.as_dict(),
            "tools": splitters.tools(rules.splitter, rules.treebank),
            "keep_dropped": options.keep_dropped,
            "dedup": options.dedup,
            "max_shard_mb": options.max_shard_mb,
        },
        run={
            "bioshards": __version__,
            "command": ["beam", "run", "pubmed_to_shards", *_without_secrets(arguments)],
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        },
    )


_SECRET = re.compile(r"(--\w*(?:key|secret|token|password)\w*)(=.*)?", re.IGNORECASE)


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments as a manifest may show them: no access keys, passwords and tokens."""
    shown: list[str] = []
    hide = False
    for word in arguments:
        secret = _SECRET.fullmatch(word)
        shown.append("***" if hide else f"{secret[1]}=***" if secret and secret[2] else word)
        hide = bool(secret and not secret[2])
    return shown


def _remote_files(paths: Sequence[str], beams: Any) -> LocalFiles:
    from .storage import AnyFiles, configure, supported

    configure(beams)
    for path in paths:
        if "://" in path and not supported(path):
            raise UsageError(
                f"nothing here can open {path}; gs:// and s3:// need: pip install 'bioshards[cloud]'"
            )
    return AnyFiles()


def _local_options(runner_given: bool, workers: int) -> dict[str, Any]:
    if runner_given:
        return {}
    from . import local

    return local.options_for(workers)


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
        state = root.run().wait_until_finish()
        if state in ("FAILED", "CANCELLED"):
            raise RuntimeError(f"the runner says the job {state.lower()}")

    log = None if "://" in job.work.output or workers == 1 else f"{job.work.folder}/error.log"
    with local.errors_to(log) as terminal:
        progress = Progress(job.files, job.work, len(job.sources), terminal)
        try:
            remote = "://" in job.work.output
            local.run(work, progress.tick, REMOTE_TICK_SECONDS if remote else TICK_SECONDS)
        except Exception:
            if log:
                traceback.print_exc()
            raise
        finally:
            progress.end()


def _report(job: Job) -> int:
    if not job.files.exists(job.work.outcome):
        print(
            "The job has published nothing yet: a dry run, or one that goes on without this command. "
            f"It is finished when {job.work.manifest} is there."
        )
        return OK
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


_RAISED = re.compile(r"^(?:[\w.]+: )*?([A-Za-z_.]*(?:Error|Exception|Refused|Invalid)): (.*)$", re.MULTILINE)


def _explained(error: Exception) -> str:
    """What went wrong, in a line or two, from an error that may be a worker's whole traceback."""
    raised = _RAISED.findall("".join(traceback.format_exception_only(error)))
    kind, what = raised[-1] if raised else (type(error).__name__, str(error))
    while nested := _RAISED.match(what):
        kind, what = nested.groups()
    what = re.sub(r" \[while running '.*", "", what).strip()
    if getattr(error, "errno", None) == errno.ENOSPC or os.strerror(errno.ENOSPC) in what:
        return "the disk is full. Free some space and run the same command again: it continues"
    if "Channel closed" in what:
        return (
            "a worker process ended before its time, perhaps killed because memory ran out. Nothing is lost: "
            "run the same command again to continue, with fewer --workers if memory is short"
        )
    if kind.endswith("FutureTimeoutError"):
        return "the runner's job service does not answer. Look at --job_endpoint, and whether it is running"
    return (
        f"the run failed: {kind}: {what.rstrip('.')}. What was done is kept; run the same command again "
        "to continue. BIOSHARDS_TRACEBACK=1, or .bioshards/error.log of the output, shows where it failed"
    )
