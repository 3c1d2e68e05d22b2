"""The agents of the tests' project."""

from pydantic import BaseModel

from agency.agent import BaseAgent, Effect, tool
from agency.execution import ToolScratchpad


@tool(effect=Effect.READ)
def count_words(text: str, scratchpad: ToolScratchpad) -> int:
    """Count the words of a text."""
    words = len(text.split())
    scratchpad.record("words", words)
    return words


class OfficePrompt(BaseModel):
    office: str = "the office"


class Clerk(BaseAgent):
    """Counts and writes."""

    AGENT_KEY = "clerk"
    NAME = "Clerk"
    SYSTEM_PROMPT = "You work for {office}. Be brief."
    PROMPT_INPUT = OfficePrompt
    TOOLS = [count_words]
    DEFAULT_MODEL = "scripted:tests"


class Librarian(BaseAgent):
    """Has no tools and, of its own, no model."""

    AGENT_KEY = "librarian"
    NAME = "Librarian"
    SYSTEM_PROMPT = "You know every book."
