"""Tools that many agents want."""

from typing import Annotated

from pydantic import Field

from agency.agent.injection import HumanAnswer
from agency.agent.tools import tool
from agency.enums import Effect


@tool(effect=Effect.READ)
def ask_human(
    question: Annotated[str, Field(description="One clear question, with all that is needed to answer it.")],
    answer: HumanAnswer,
    choices: Annotated[
        list[str] | None, Field(description="The possible answers, if there are only a few.")
    ] = None,
) -> object:
    """Ask a person. Use it only for what you cannot find out yourself and cannot go on without."""
    return answer.value
