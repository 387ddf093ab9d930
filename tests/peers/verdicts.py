"""What real programs say of a configuration file, without running it."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.peers.programs import need


def vmagent(file: Path, environment: Mapping[str, str] | None = None) -> str:
    """Why vmagent would not load a file, or would leave out a job of it; empty if all is well."""
    done = _output(
        need("vmagent"),
        "-dryRun",
        f"-promscrape.config={file}",
        "-remoteWrite.url=http://127.0.0.1:1/",
        f"-remoteWrite.tmpDataPath={file.parent / 'data'}",
        environment=environment,
    )
    return done.stderr if done.returncode or "skipping `scrape_config`" in done.stderr else ""


def prometheus(file: Path) -> str:
    """Why Prometheus would not load a file; empty if it would.

    It has no dry run, so it is given a port that there cannot be: it comes to that when the file is loaded, and before anything is started.
    """
    data = file.parent / "tsdb"
    done = _output(need("prometheus"), f"--config.file={file}", "--web.listen-address=127.0.0.1:99999", f"--storage.tsdb.path={data}")
    if "Unable to start web listener" in done.stderr:
        return ""
    assert "Error loading" in done.stderr, done.stderr
    return done.stderr


def _output(*command: str | Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=60, check=False)
