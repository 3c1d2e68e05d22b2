"""An answer of the web as text for a model: its address, status, type and body, capped; binary is refused."""

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agency.errors import InvalidInput

if TYPE_CHECKING:
    import httpx

_TEXTUAL = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|toml)|application/(?:x-)?(?:javascript|ndjson|yaml|sql)"
    r"|application/(?:json-seq|jsonl|x-www-form-urlencoded)|image/svg\+xml|"
)
_SLOW_CODECS = {"idna", "punycode"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came from `url`; as a text, all of it. `text` is the body."""

    url: str
    status: int
    reason: str
    kind: str
    text: str

    def __str__(self) -> str:
        status = f"{self.status} {self.reason}".strip()
        return f"{self.url}\n{status}\n{self.kind or 'no content type'}\n\n{self.text}"


async def answer(response: "httpx.Response", url: "httpx.URL", limit: int | None) -> Answer:
    """A streamed response, of whose body at most `limit` bytes are read; with `None` it is left alone."""
    kind = response.headers.get("content-type", "")
    text = "" if limit is None else await _body(response, kind, limit)
    return Answer(str(url), response.status_code, response.reason_phrase, kind, text)


async def _body(response: "httpx.Response", kind: str, limit: int) -> str:
    _check_readable(kind, response.headers.get("content-encoding", ""))
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limit:
            break
    text = _decoded(bytes(body[:limit]), response.charset_encoding, whole=len(body) <= limit)
    if len(body) > limit:
        length = response.headers.get("content-length", "")
        of = f" of {int(length):,}" if length.isdecimal() else ""
        text += f"\n[cut here: the first {limit:,}{of} bytes are shown]"
    return text


def _check_readable(kind: str, encoding: str) -> None:
    if encoding.strip().lower() not in ("", "identity"):
        raise InvalidInput(
            f"refused: the answer is compressed ({encoding}), though it was asked for as it is"
        )
    if not _TEXTUAL.fullmatch(kind.partition(";")[0].strip().lower()):
        raise InvalidInput(f"refused: the answer is {kind}, which is no text")


def _decoded(body: bytes, charset: str | None, whole: bool) -> str:
    """The body as text; what does not fit the charset is replaced, half a character at a cut left out."""
    try:
        name = codecs.lookup(charset or "utf-8").name
        if name in _SLOW_CODECS:
            raise LookupError(name)
        b"    ".decode(name, "replace")  # refuses codecs that are not for text
    except (LookupError, ValueError):
        name = "utf-8"
    text = codecs.getincrementaldecoder(name)("replace").decode(body, whole)
    if "\x00" in text:
        raise InvalidInput("refused: the answer is binary, not text")
    return text
