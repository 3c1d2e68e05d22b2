"""The peers' own environments, so that no two libraries agree on a version for our sake."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PEERS = ("agno", "langgraph", "pydantic-ai", "openai-agents", "strands")


def python_of(peer: str, home: Path) -> Path | str:
    """The interpreter of a peer's environment, made and filled if need be; a text says why there is none."""
    wanted = HERE / f"requirements-{peer}.in"
    place = home / "bench-envs" / peer
    python, done = place / "bin" / "python", place / "installed.txt"
    pins = wanted.read_text(encoding="utf-8")
    if done.exists() and done.read_text(encoding="utf-8") == pins:
        return python
    print(f"Installing {pins.strip()} into {place}", flush=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    for command in ([sys.executable, "-m", "venv", "--clear", str(place)], [*pip, "-r", str(wanted)]):
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode:
            said = ran.stdout.strip().splitlines()
            return said[-1] if said else f"{command[0]} failed"
    done.write_text(pins, encoding="utf-8")
    return python
