"""Java programs that Kafka publishes, each in a JVM of its own, ended by its process only."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.broker import artifacts

STOP_SECONDS = 30
_JVM = (
    "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)  # fmt: skip


class Program:
    """A program that may be ended and started again.

    Args:
        jars: Its class path.
        folder: Its own, for settings and output; made here.
        main: Its main class.
        arguments: Of the command line.
    """

    def __init__(self, jars: Path, folder: Path, main: str, *arguments: str) -> None:
        self.folder = folder
        self._command = [artifacts.java_path(), *_JVM, "-cp", str(jars / "*"), main, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with (self.folder / "output.txt").open("ab") as sink:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=self.folder
            )

    def stop(self) -> None:
        """Asks it to end (SIGTERM) and waits; it leaves its groups and closes its producers."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Ends it at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def output(self) -> str:
        """The end of what it wrote."""
        path = self.folder / "output.txt"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""


def properties(path: Path, settings: Mapping[str, object]) -> str:
    """Writes a file of properties, and gives its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return str(path)
