"""Tells the story of a mission's execution: dispatched with a snapshot of everything, due at once.

Works inside the caller's transaction and never enqueues: `execution_due` says what is due.
"""

from typing import Any

from agency.agent.providers.choice import provider_of
from agency.enums import LoopStatus, Wakeup
from agency.errors import InvalidInput
from agency.execution.agents import check_agent_settings, registered_keys
from agency.execution.order import check_key
from agency.execution.placing import Placing, Submission
from agency.execution.snapshot import digest, of_order, provider
from agency.mission.config import LOOP_CONFIG, LoopConfig, caps_for
from agency.mission.fields import FIELDS, faults, useless_checks
from agency.mission.prices import model_of, price_faults
from agency.models import Mission
from agency.models.clock import Now


def dispatch(
    mission: Mission,
    *,
    owner: Any = None,
    idempotency_key: str | None = None,
    trigger: dict[str, Any] | None = None,
) -> Submission:
    """Store an execution of the mission as it is now; editing the mission changes later ones only.

    `owner` is the mission's if not given; `trigger` says what dispatched it. The same `idempotency_key`
    gives the same execution again. `InvalidInput` names what keeps the mission from running.
    """
    _check(mission)
    key = check_key(idempotency_key)
    once = None if key is None else [(key, digest(["mission", str(mission.pk)]))]
    placing = _placing(mission, owner or mission.owner, trigger or {"by": "call"})
    return placing.place([{}], once)[0]


def _placing(mission: Mission, owner: Any, trigger: dict[str, Any]) -> Placing:
    config, config_hash = of_order(
        mission.agent, mission={"id": str(mission.pk), "name": mission.name, "prompt": mission.prompt}
    )
    loop = loop_config(mission)
    columns: dict[str, Any] = {
        "mission": mission,
        "provider": provider(mission.agent),
        "config": config,
        "config_hash": config_hash,
        "metadata": {LOOP_CONFIG: loop.as_json(), "trigger": trigger},
    }
    if loop.is_loop:
        columns |= {"loop_status": LoopStatus.RUNNING.value, "max_iterations": loop.max_iterations}
    if (seconds := loop.limits.get("seconds")) is not None:
        columns["deadline_at"] = Now(seconds)
    return Placing(mission.agent, owner, mission.name, Wakeup.START_MISSION, columns)


def loop_config(mission: Mission) -> LoopConfig:
    """The mission's configuration as a dispatch would take it now."""
    supervisor = mission.supervisor_model or model_of(mission.agent)
    return LoopConfig(
        is_loop=mission.is_loop,
        loop_prompt=mission.loop_prompt,
        max_iterations=mission.max_iterations,
        loop_delay_seconds=mission.loop_delay_seconds,
        supervisor_model=mission.supervisor_model,
        caps=caps_for(provider_of(supervisor)),
        completion_checks=list(mission.completion_checks),
        limits=dict(mission.limits),
    )


def _check(mission: Mission) -> None:
    if mission.archived_at is not None:
        raise _invalid("mission", f"{mission.name!r} was removed; create another one")
    if mission.agent.agent_key not in registered_keys():
        raise _invalid("agent", f"its class {mission.agent.agent_key!r} is not registered in this project")
    unfit = next(faults({name: getattr(mission, name) for name in FIELDS}), None)
    unfit = unfit or next(useless_checks(mission.loop_prompt, mission.completion_checks), None)
    if unfit is None:  # the agent may have got another model since the mission was made
        supervisor = mission.supervisor_model if mission.is_loop else None
        unfit = next(price_faults(mission.agent, supervisor, mission.limits), None)
    if unfit is not None:
        raise _invalid(*unfit)
    try:
        check_agent_settings(mission.agent.agent_key, vars(mission.agent))
    except InvalidInput as exc:
        errors = [{**error, "path": f"agent.{error['path']}"} for error in exc.errors]
        raise InvalidInput(f"agent.{exc}", errors) from exc


def _invalid(path: str, message: str) -> InvalidInput:
    return InvalidInput(f"{path}: {message}", [{"path": path, "message": message}])
