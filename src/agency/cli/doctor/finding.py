"""What the doctor says of one thing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`detail` is what was found, `fix` what to do about it (empty if nothing is wrong)."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def fine(name: str, detail: str) -> Finding:
    return Finding(name, True, detail)


def wrong(name: str, detail: str, fix: str) -> Finding:
    return Finding(name, False, detail, fix)
