"""An answer of the web as text for a model: its address, status, type and body, capped; binary is refused."""

import codecs
import re
from typing import TYPE_CHECKING

from agency.errors import InvalidInput

if TYPE_CHECKING:
    import httpx

_TEXTUAL = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|toml)|application/(?:x-)?(?:javascript|ndjson|yaml|sql)"
    r"|application/(?:json-seq|jsonl|x-www-form-urlencoded)|image/svg\+xml|"
)
_SLOW_CODECS = {"idna", "punycode"}


async def told(response: "httpx.Response", url: "httpx.URL", limit: int) -> str:
    """A streamed response in words, of whose body at most `limit` bytes are read."""
    kind = response.headers.get("content-type", "")
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
    status = f"{response.status_code} {response.reason_phrase}".strip()
    return f"{url}\n{status}\n{kind or 'no content type'}\n\n{text}"


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
