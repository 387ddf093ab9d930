"""Files for file_sd_configs: where they are, what is in them, and that they are always whole."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from fastdisco.configuration import Configuration
from fastdisco.errors import FastdiscoError
from fastdisco.sidecar.file_sd import FileSD
from fastdisco.sidecar.job_files import file_of

from .live import pod
from .rig import eventually
from .service_rig import Exporting, exporting

PODS = [pod("a", "127.0.0.1"), pod("b", "127.0.0.2", ports=(8080, 9090))]
NAMES = ["web", "a/b c", "a-b c", "ä", "..", "serviceMonitor/monitoring/x/0", "x" * 300, "*.json"]


def files(directory: Path) -> list[Path]:
    """What a scraper may find with any glob."""
    return sorted(file for pattern in ("*.json", "*.yml", "*.yaml") for file in directory.rglob(pattern))


def keeping(it: Exporting, directory: Path, **options: Any) -> FileSD:
    made = FileSD(directory, it.service.jobs, it.service.exports, **options)
    made.prepare()
    return made


def test_each_job_has_a_directory_of_its_own_with_one_file() -> None:
    """Of safe characters, and unlike that of any other job."""
    found = [file_of(Path("/d"), name, "json") for name in NAMES]
    assert len(set(found)) == len(NAMES)
    for file in found:
        assert file.parent.parent == Path("/d")
        assert file.stem == file.parent.name
        assert set(file.name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
        assert not file.name.startswith((".", "-"))
        assert len(file.name) < 100
    assert file_of(Path("/d"), "web", "yaml") == found[0].with_suffix(".yml")


@pytest.mark.parametrize("syntax", ["json", "yaml"])
async def test_a_file_has_what_http_sd_answers(tmp_path: Path, syntax: Any) -> None:
    """As soon as the job has synced, readable for all; nothing before."""
    async with exporting({"pods": PODS}, file_sd_directory=tmp_path, file_sd_format=syntax) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        await asyncio.sleep(0.05)
        assert files(tmp_path) == []
        gate.set()
        file = file_of(tmp_path, "web", syntax)
        async with asyncio.timeout(10):
            await eventually(file.exists)
        text = file.read_bytes()
        assert (orjson.loads(text) if syntax == "json" else yaml.safe_load(text)) == (await it.get("/sd/web"))[2]
        assert (file.stat().st_mode & 0o777, files(tmp_path)) == (0o644, [file])
        assert list((tmp_path / ".partial").iterdir()) == []
    assert file.read_bytes() == text  # who reads it goes on when we have gone


async def test_a_directory_is_there_before_the_first_sync(tmp_path: Path) -> None:
    """Once the service has started, and for a new job with the next look: Prometheus watches no directory that comes later."""
    async with exporting({"pods": PODS}, file_sd_directory=tmp_path) as it:
        it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        assert file_of(tmp_path, "web", "json").parent.is_dir()
        await it.service.jobs.apply(Configuration((it.job("web"), it.job("new"))))
        async with asyncio.timeout(10):
            await eventually(file_of(tmp_path, "new", "json").parent.is_dir)
        assert files(tmp_path) == []


async def test_a_file_is_written_when_its_targets_change_and_not_too_often(tmp_path: Path) -> None:
    """At most once in a time of its own; what has not changed is not written."""
    now = 0.0
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        await it.synced()
        kept = keeping(it, tmp_path, write_seconds=5.0, now=lambda: now)
        file = file_of(tmp_path, "web", "json")

        async def written() -> int:
            await kept.write_changed()
            return file.stat().st_ino

        first = await written()
        now = 100.0
        assert await written() == first
        it.live.put("pods", pod("c", "127.0.0.3"))
        await it.live.handled("pod", "default", "c")
        async with asyncio.timeout(10):
            await eventually(lambda: len(it.service.discovery.jobs["web"].scrape_works()) == 4)
        second = await written()
        assert second != first
        it.live.delete("pods", "default/c")
        async with asyncio.timeout(10):
            await eventually(lambda: len(it.service.discovery.jobs["web"].scrape_works()) == 3)
        now = 104.9
        assert await written() == second
        now = 105.0
        assert await written() != second
        assert len(orjson.loads(file.read_bytes())) == 3


async def test_a_removed_job_s_file_says_that_it_has_no_targets_before_it_goes(tmp_path: Path) -> None:
    """So that whoever reads it drops them; another job's file is untouched."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"), it.job("other"))
        await it.synced()
        kept = keeping(it, tmp_path)
        await kept.write_changed()
        other = file_of(tmp_path, "other", "json").stat()
        await it.service.jobs.apply(Configuration((it.job("other"),)))
        await kept.write_changed()
        file = file_of(tmp_path, "web", "json")
        assert file.read_bytes() == b"[]\n"
        it.service.jobs.removed.clear()  # as when its time is over
        await kept.write_changed()
        assert not file.parent.exists()
        assert file_of(tmp_path, "other", "json").stat() == other
        await it.service.jobs.apply(Configuration((it.job("web"),)))
        await it.synced()
        await kept.write_changed()
        assert len(orjson.loads(file.read_bytes())) == 3


async def test_a_file_that_is_as_it_should_be_is_not_written_after_a_restart(tmp_path: Path) -> None:
    """Prometheus would read it again for nothing."""
    seen = []
    for _ in range(2):
        async with exporting({"pods": [{**one, "metadata": {**one["metadata"], "uid": "u"}} for one in PODS]}) as it:
            await it.start(it.job("web"))
            await it.synced()
            await keeping(it, tmp_path).write_changed()
            seen.append(file_of(tmp_path, "web", "json").stat())
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.ENOSPC, "No space left on device"), (errno.EXDEV, "its directory is on another file system")]
)
async def test_a_write_that_fails_leaves_the_old_file_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int, reason: str
) -> None:
    """It is counted each time and logged once, and discovery goes on."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        await it.synced()
        kept = keeping(it, tmp_path, write_seconds=0.0)
        await kept.write_changed()
        file = file_of(tmp_path, "web", "json")
        before = file.read_bytes()
        it.live.put("pods", pod("c", "127.0.0.3"))
        async with asyncio.timeout(10):
            await eventually(lambda: len(it.service.discovery.jobs["web"].scrape_works()) == 4)

        def fail(*_: object) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as broken:
            broken.setattr("fastdisco.sidecar.files.os.fsync" if number == errno.ENOSPC else "fastdisco.sidecar.files.Path.replace", fail)
            await kept.write_changed()
            await kept.write_changed()
        assert (file.read_bytes(), kept.failures["web"]) == (before, 2)
        assert list((tmp_path / ".partial").iterdir()) == []
        assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == [
            f"cannot write the file of job web: {reason}; the old one stays"
        ]
        await kept.write_changed()
        assert len(orjson.loads(file.read_bytes())) == 4


async def test_what_a_killed_process_has_left_goes_and_what_another_writes_stays(tmp_path: Path) -> None:
    """By its age."""
    partial = tmp_path / ".partial"
    partial.mkdir()
    for name, age in (("web.json.x.partial", 3600), ("web.json.y.partial", 1)):
        (partial / name).write_text("[")
        os.utime(partial / name, (partial.stat().st_mtime - age,) * 2)
    async with exporting({}) as it:
        keeping(it, tmp_path)
    assert [file.name for file in partial.iterdir()] == ["web.json.y.partial"]


async def test_a_directory_that_cannot_be_used_is_told_at_once(tmp_path: Path) -> None:
    """Before any job starts."""
    (tmp_path / "file").touch()
    async with exporting({}) as it:
        with pytest.raises(FastdiscoError, match=rf"cannot use the directory {tmp_path}/file: (File exists|Not a directory)"):
            keeping(it, tmp_path / "file")


async def test_the_mode_of_files_may_be_chosen(tmp_path: Path) -> None:
    """Whatever the process's mask."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        await it.synced()
        await keeping(it, tmp_path, mode=0o640).write_changed()
        assert file_of(tmp_path, "web", "json").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("loss", ["file", "directory", "all", "changed"])
async def test_what_somebody_else_removes_or_changes_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, loss: str
) -> None:
    """At the next look, though the targets are as before; it is counted and logged, and what is as it was left is not touched."""
    now = 0.0
    directory = tmp_path / "made" / "files"
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"), it.job("other"))
        await it.synced()
        kept = keeping(it, directory, write_seconds=5.0, now=lambda: now)
        await kept.write_changed()
        file = file_of(directory, "web", "json")
        text, other = file.read_bytes(), file_of(directory, "other", "json").stat()
        if loss == "changed":
            file.write_bytes(b"[]")
        elif loss == "file":
            file.unlink()
        else:
            shutil.rmtree(file.parent if loss == "directory" else directory)
        now = 4.9
        await kept.write_changed()
        assert not file.exists() or loss == "changed"
        now = 5.0
        await kept.write_changed()
        assert file.read_bytes() == text
        if loss != "all":
            assert kept.restored == {"web": 1}
            assert file_of(directory, "other", "json").stat() == other
        assert "the file of job web was not as it had been written; it has been written again" in caplog.messages
        now = 10.0
        await kept.write_changed()
        assert kept.restored["web"] == 1


@pytest.mark.parametrize(("mode", "expected"), [(0o644, 0o755), (0o640, 0o750), (0o600, 0o700)])
async def test_who_may_read_the_files_may_get_to_them(tmp_path: Path, mode: int, expected: int) -> None:
    """Whatever the process's mask; a directory that the user has made stays as it is."""
    mask = os.umask(0o077)
    try:
        async with exporting({"pods": PODS}) as it:
            await it.start(it.job("web"))
            await it.synced()
            file = file_of(tmp_path / "a" / "b", "web", "json")
            before = file.parents[3].stat().st_mode & 0o777
            await keeping(it, tmp_path / "a" / "b", mode=mode).write_changed()
            assert {one.stat().st_mode & 0o777 for one in file.parents[:3]} == {expected}
            assert file.parents[3].stat().st_mode & 0o777 == before
            file.parent.chmod(0o700)  # as a run with another mode has left it
            await keeping(it, tmp_path / "a" / "b", mode=mode).write_changed()
            assert file.parent.stat().st_mode & 0o777 == expected
    finally:
        os.umask(mask)


async def test_a_file_that_could_not_be_written_at_first_is_none_that_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a failure, and then it is there."""
    async with exporting({"pods": PODS}) as it:
        await it.start(it.job("web"))
        await it.synced()
        kept = keeping(it, tmp_path, write_seconds=0.0)

        def fail(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as broken:
            broken.setattr("fastdisco.sidecar.files.os.fsync", fail)
            await kept.write_changed()
        assert (kept.failures, list(kept.reported)) == ({"web": 1}, ["web"])
        await kept.write_changed()
        assert file_of(tmp_path, "web", "json").exists()
        assert (kept.restored, kept.reported) == ({}, {})
