"""Tools that many agents want."""

from agency.agent.injection import HumanAnswer
from agency.agent.tools import tool
from agency.enums import Effect


@tool(effect=Effect.READ)
def ask_human(question: str, answer: HumanAnswer, choices: list[str] | None = None) -> object:
    """Ask a person. Use it only for what you cannot find out yourself and cannot go on without.

    Args:
        question: One clear question, with all that is needed to answer it.
        choices: The possible answers, if there are only a few.
    """
    return answer.value
