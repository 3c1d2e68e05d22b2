"""What may become a loop's next instruction or question: a sentence, never a leftover of the answer's form.

Models that fill in forms like to write a field's name, a status word or "n/a" where an instruction
belongs; sent to the worker, such a word would cost a whole iteration, and put to a person, their time. Knows
nothing but text.
"""

import re
import unicodedata

FIELDS = ("next_input", "follow_up", "required_input", "status", "summary", "reason", "evidence", "wait")
STATUSES = ("continue", "complete", "completed", "wait", "waiting", "blocked", "failed", "done", "finished")
EMPTY = ("none", "null", "nil", "n/a", "na", "not applicable", "undefined", "tbd", "todo", "string", "text")
_WORDS = frozenset(word for name in (*FIELDS, *STATUSES, *EMPTY) for word in re.split(r"[ _/]", name)) | {
    "followup",
    "nextinput",
    "input",
}
_ASKING = _WORDS | {"question", "ask", "a", "person", "human"}
_SPLIT = re.compile(r"[^\w]+|_+")


_NOTHING = re.compile(r"\W*(?:nothing|none)(?: (?:is |that is )?(?:left|missing|open))?\W*", re.I)


def is_nothing(text: str) -> bool:
    """Whether `text` answers "what is left?" with nothing."""
    return _NOTHING.fullmatch(text) is not None or is_placeholder(text)


def is_placeholder(text: str) -> bool:
    """Whether `text` says nothing: blank, marks, or only field names and status words, however quoted."""
    return _words(text) <= _WORDS


def is_no_question(text: str) -> bool:
    """Whether `text` asks a person nothing: a placeholder, "nothing", or only that one is to be asked."""
    return is_nothing(text) or _words(text) <= _ASKING


def _words(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return {word for word in _SPLIT.split(plain) if word}
