"""What an order must be before anything is stored: the right agent, input that fits, a usable key."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agency.agent.text import DEEPEST, clean_json, is_deep
from agency.errors import InvalidInput
from agency.execution.agents import check_agent_settings
from agency.execution.definition import BaseAgenticExecutionDefinition
from agency.execution.inputs import ExecutionInputType
from agency.models import ConfiguredAgent

Definition = type[BaseAgenticExecutionDefinition]
KEY_LENGTH = 200


def check_agent(definition: Definition, agent: ConfiguredAgent) -> None:
    """Refuse an agent of another type than the definition is for, or with settings that cannot be used."""
    if agent.agent_key != definition.AGENT_KEY:
        raise _invalid(
            "agent",
            f"{agent.name!r} is of type {agent.agent_key!r}, but {definition.EXECUTION_KEY!r} needs one of "
            f"type {definition.AGENT_KEY!r}",
        )
    try:
        check_agent_settings(agent.agent_key, vars(agent))
    except InvalidInput as exc:
        errors = [{**error, "path": f"agent.{error['path']}"} for error in exc.errors]
        raise InvalidInput(f"agent.{exc}", errors) from exc


def check_input(definition: Definition, given: Any, path: str = "input") -> dict[str, Any]:
    """The input as it is stored: validated, with defaults filled in, as JSON."""
    wanted = definition.INPUT_TYPE
    if isinstance(given, ExecutionInputType) and not isinstance(given, wanted):
        raise _invalid(path, f"is a {type(given).__name__}, not a {wanted.__name__}")
    if isinstance(given, ExecutionInputType):
        given = given.model_dump()
    if not isinstance(given, Mapping):
        raise _invalid(path, f"must be an object with the fields of {wanted.__name__}")
    if is_deep(dict(given)):
        raise _invalid(path, f"is nested more than {DEEPEST} deep")
    try:
        return clean_json(wanted.model_validate(dict(given)).model_dump(mode="json"))
    except ValidationError as exc:
        errors = [
            {"path": _joined(path, error["loc"]), "message": error["msg"]}
            for error in exc.errors(include_url=False)
        ]
        raise InvalidInput(f"{errors[0]['path']}: {errors[0]['message']}", errors) from exc


def check_key(key: str | None, room: int = 0) -> str | None:
    """An idempotency key of 1 to 200 printable characters, with `room` left for what is appended."""
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip() or not key.isprintable() or len(key) + room > KEY_LENGTH:
        raise _invalid("idempotency_key", f"must be 1 to {KEY_LENGTH - room} printable characters")
    return key


def _joined(path: str, location: tuple[int | str, ...]) -> str:
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path


def _invalid(path: str, message: str) -> InvalidInput:
    return InvalidInput(f"{path}: {message}", [{"path": path, "message": message}])
