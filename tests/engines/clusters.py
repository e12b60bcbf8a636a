"""Small clusters of the engines on this machine: their processes, and the options of a run on them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.engines import install

START_SECONDS: Final = 600
WORKERS: Final = ("sdk_harness --id", "bioshards-worker --id")
"""Texts in the command lines of Python workers."""
EXECUTORS: Final = ("CoarseGrainedExecutorBackend",)
"""Of Spark's executors."""

_PORTABLE: Final = ("--runner=PortableRunner", "--job_endpoint=localhost:8099")
_ON_POOL: Final = ("--environment_type=EXTERNAL", "--environment_config=localhost:50000")
_POOL: Final = (sys.executable, "-m", "bioshards", "worker-pool", "--port", "50000")
_OPENED: Final = """
java.io java.lang java.lang.invoke java.lang.reflect java.net java.nio java.text java.time java.util
java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks sun.net.util sun.nio.ch sun.nio.cs
sun.security.action sun.util.calendar"""
"""Packages of Java 17 that Flink and Spark look into."""
_JAVA: Final = (
    "java",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()),
    "-Djdk.reflect.useDirectMethodHandle=false",
)
_JOB_SERVER: Final = """
--job-host=127.0.0.1 --job-port=8099 --artifact-port=8098 --expansion-port=8097
--artifacts-dir={home}/artifacts"""

_FLINK_CONFIG: Final = """\
jobmanager.rpc.address: localhost
rest.port: 8081
restart-strategy: fixed-delay
restart-strategy.fixed-delay.attempts: 5
restart-strategy.fixed-delay.delay: 3 s
taskmanager.cpu.cores: 1.0
taskmanager.memory.task.heap.size: 384mb
taskmanager.memory.task.off-heap.size: 0b
taskmanager.memory.framework.heap.size: 128mb
taskmanager.memory.framework.off-heap.size: 128mb
taskmanager.memory.managed.size: 512mb
taskmanager.memory.network.min: 128mb
taskmanager.memory.network.max: 128mb
taskmanager.memory.jvm-metaspace.size: 256mb
taskmanager.memory.jvm-overhead.min: 192mb
taskmanager.memory.jvm-overhead.max: 192mb
"""
"""With the sizes that Flink's start script works out of 1,600 MB."""
_FLINK_LOG: Final = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = Console
appender.console.type = CONSOLE
appender.console.name = Console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c - %m%n
"""
_JOB_MANAGER: Final = """
-Xmx700m -Dlog4j.configurationFile={home}/conf/log4j.properties -cp {jars}/*
org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir {home}/conf
--executionMode cluster"""
_TASK_MANAGER: Final = """
-Xmx512m -XX:MaxDirectMemorySize=270m -XX:MaxMetaspaceSize=256m
-Dlog4j.configurationFile={home}/conf/log4j.properties -cp {jars}/*
org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir {home}/conf"""
_FLINK_JOB_SERVER: Final = """
-Xmx800m -cp {server}/* org.apache.beam.runners.flink.FlinkJobServerDriver --flink-master=127.0.0.1:8081"""

_MASTER: Final = """
-Xmx256m -cp {jars}/* org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 7077 --webui-port 8082"""
_WORKER: Final = """
-Xmx256m -cp {jars}/* org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --cores 1 --memory 1500m
--work-dir {home}/work --webui-port 0 spark://127.0.0.1:7077"""
_SPARK_JOB_SERVER: Final = """
-Xmx1g -Dspark.driver.host=127.0.0.1 -Dspark.driver.bindAddress=127.0.0.1 -Dspark.executor.memory=1g
-Dspark.executor.extraClassPath={server}/* -cp {server}/*:{jars}/*
org.apache.beam.runners.spark.SparkJobServerDriver --spark-master-url=spark://127.0.0.1:7077"""


@dataclass(frozen=True, slots=True)
class Command:
    """A process of a cluster.

    Attributes:
        is_up: what its output holds once it serves.
    """

    words: tuple[str, ...]
    is_up: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine: its processes in the order in which they start, and the options of a run on it."""

    name: str
    title: str
    commands: Mapping[str, Command]
    options: tuple[str, ...]


def make_prism(folder: Path) -> Engine:
    """Prism, with workers in the process of the command: a busy machine starts none in Prism's minute."""
    prism = (install.get_prism(folder), "--job_port", "8099", "--serve_http=false")
    commands = {"Prism": Command(prism, "Serving JobManagement")}
    return Engine("prism", f"Prism {install.BEAM}", commands, (*_PORTABLE, "--environment_type=LOOPBACK"))


def make_flink(folder: Path) -> Engine:
    """Flink with two TaskManagers of a slot each, which share a pool."""
    jars = install.get_distribution(folder, "apache-flink-libraries", install.FLINK)
    server = install.get_job_server(folder, f"beam-runners-flink-{install.FLINK.rpartition('.')[0]}")
    home = folder / "flink"
    (home / "conf").mkdir(parents=True, exist_ok=True)
    (home / "conf" / "flink-conf.yaml").write_text(_FLINK_CONFIG)
    (home / "conf" / "log4j.properties").write_text(_FLINK_LOG)

    def make_command(template: str, is_up: str) -> Command:
        return Command(_java(template, jars=jars, server=server, home=home), is_up)

    commands = {
        "JobManager": make_command(_JOB_MANAGER, "Rest endpoint listening at"),
        "TaskManager 1": make_command(_TASK_MANAGER, "Successful registration at resource manager"),
        "TaskManager 2": make_command(_TASK_MANAGER, "Successful registration at resource manager"),
        "pool": Command(_POOL, "worker pool at"),
        "job server": make_command(_FLINK_JOB_SERVER + _JOB_SERVER, "JobService started on"),
    }
    options = (*_PORTABLE, "--flink_master=localhost:8081", *_ON_POOL)
    return Engine("flink", f"Flink {install.FLINK}, 2 TaskManagers, a pool", commands, options)


def make_spark(folder: Path) -> Engine:
    """Spark with two workers, whose executors start the Python workers."""
    jars = install.get_distribution(folder, "pyspark", install.SPARK)
    server = install.get_job_server(folder, "beam-runners-spark-3")
    environment = {"SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.12"}
    environment["SPARK_LOCAL_IP"] = "127.0.0.1"

    def make_command(template: str, is_up: str) -> Command:
        words = _java(template, jars=jars, server=server, home=folder / "spark")
        return Command(words, is_up, environment)

    commands = {
        "master": make_command(_MASTER, "New state: ALIVE"),
        "worker 1": make_command(_WORKER, "Successfully registered with master"),
        "worker 2": make_command(_WORKER, "Successfully registered with master"),
        "job server": make_command(_SPARK_JOB_SERVER + _JOB_SERVER, "JobService started on"),
    }
    options = (*_PORTABLE, "--environment_type=PROCESS")
    return Engine("spark", f"Spark {install.SPARK}, 2 workers, PROCESS", commands, options)


ENGINES: Final[dict[str, Callable[[Path], Engine]]] = {
    "prism": make_prism,
    "flink": make_flink,
    "spark": make_spark,
}


def _java(template: str, **folders: Path) -> tuple[str, ...]:
    return (*_JAVA, *(word.format(**folders) for word in template.split()))


class Cluster:
    """The processes of an engine."""

    def __init__(self, engine: Engine, logs: Path) -> None:
        self.engine = engine
        self.logs = logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start what does not run, each once the one before it serves."""
        for name, command in self.engine.commands.items():
            if name not in self._processes:
                self._start(command, name, self.logs / f"{name}.log")

    def _start(self, command: Command, name: str, log: Path) -> None:
        with log.open("ab") as output:
            begin = output.tell()
            process = subprocess.Popen(
                command.words,
                env=os.environ | command.environment,
                cwd=self.logs,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._processes[name] = process
        deadline = time.monotonic() + START_SECONDS
        while command.is_up.encode() not in log.read_bytes()[begin:]:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.engine.name}: {name} does not start: see {log}")
            time.sleep(0.2)

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Kill all processes."""
        for name in list(self._processes):
            self.kill(name)
        kill_by_command((*WORKERS, *EXECUTORS))


@contextlib.contextmanager
def run_cluster(engine: Engine, logs: Path) -> Iterator[Cluster]:
    """Run the processes of an engine."""
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    cluster = Cluster(engine, logs)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def kill_by_command(texts: tuple[str, ...], most: int | None = None) -> None:
    """Kill the processes of this process namespace whose command line holds one of the texts, or some."""
    pids = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if any(text.encode() in path.read_bytes().replace(b"\0", b" ") for text in texts)
    ]
    assert pids or most is None, f"no process of {texts} is running"
    for pid in pids[:most]:
        os.kill(pid, signal.SIGKILL)
