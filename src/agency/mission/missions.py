"""What people do with missions: make, change, remove. What their executions were dispatched with stays."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agency.errors import InvalidInput
from agency.execution.agents import registered_keys
from agency.execution.claims import database
from agency.mission.fields import Fault, faults, normal, useless_checks
from agency.mission.prices import price_faults
from agency.models import ConfiguredAgent, Mission
from agency.models.clock import Now

_PRICED = frozenset({"agent", "limits", "loop_prompt", "supervisor_model"})
"""The fields that decide whether a budget in money can be reached."""
_CHECKED = frozenset({"completion_checks", "loop_prompt"})
"""The fields that decide whether completion checks are ever run."""
REMOVED = "The mission was removed; it can be neither changed nor dispatched any more."


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of a change; `mission` is as it is now. `refused` says why nothing was written."""

    mission: Mission
    refused: str | None = None


def create(owner: Any, *, agent: ConfiguredAgent, **fields: Any) -> Mission:
    """A new mission of `owner`; `fields` are those that people set, `name` and `prompt` at least.

    A blank `loop_prompt` is none: the mission is one-shot. `InvalidInput` names each field that does not fit.
    """
    _refuse([*faults({"name": None, "prompt": None, **fields}), *_agent_faults(agent)])
    made = Mission(owner=owner, agent=agent, **normal(fields))
    _refuse([*useless_checks(made.loop_prompt, made.completion_checks), *_price_faults(made, {})])
    made.save(using=database(), force_insert=True)
    return made


def update(mission: Mission, **changes: Any) -> Changed:
    """Change the given fields, which later dispatches take; what was dispatched goes on as it was.

    `InvalidInput` as `create`; a mission that was removed refuses.
    """
    agent = changes.pop("agent", None)
    _refuse([*faults(changes), *(() if agent is None else _agent_faults(agent))])
    values = normal(changes) | ({} if agent is None else {"agent": agent})
    if _PRICED & values.keys():
        # Before the transaction, since the list of prices may have to be loaded.
        current = Mission.objects.using(database()).select_related("agent").get(pk=mission.pk)
        _refuse([*_price_faults(current, values)])
    with transaction.atomic(using=database()):
        row = _locked(mission)
        if row.archived_at is not None:
            return Changed(row, REMOVED)
        for name, value in values.items():
            setattr(row, name, value)
        if _CHECKED & values.keys():
            _refuse([*useless_checks(row.loop_prompt, row.completion_checks)])
        if values:
            row.save(using=database(), update_fields=[*values, "updated_at"])
    return Changed(row)


def remove(mission: Mission) -> bool:
    """Remove a mission: `True` if nothing is left of it, `False` if it has executions and stays with them.

    Such a one has `archived_at`, its schedules are paused, and its executions go on. Twice is once.
    """
    with transaction.atomic(using=database()):
        # Held, so that no dispatch comes between the look for executions and the end.
        row = Mission.objects.using(database()).select_for_update().filter(pk=mission.pk).first()
        if row is None:
            return True
        if not row.executions.using(database()).exists():
            row.delete(using=database())
            return True
        if row.archived_at is None:
            Mission.objects.using(database()).filter(pk=row.pk).update(archived_at=Now())
            row.schedules.using(database()).update(is_paused=True, next_slot_at=None)
    return False


def locked_to_dispatch(mission: Mission) -> Mission | None:
    """The mission as it is, held until the caller's transaction ends; `None` if it was removed."""
    rows = Mission.objects.using(database()).select_related("agent", "owner").select_for_update(of=("self",))
    return rows.filter(pk=mission.pk, archived_at__isnull=True).first()


def _locked(mission: Mission) -> Mission:
    rows = Mission.objects.using(database()).select_related("agent").select_for_update(of=("self",))
    return rows.get(pk=mission.pk)


def _price_faults(mission: Mission, changes: dict[str, Any]) -> Iterator[Fault]:
    """Of the mission as it would be with the changes."""
    of = {name: changes.get(name, getattr(mission, name)) for name in _PRICED}
    supervisor = None if of["loop_prompt"] is None else of["supervisor_model"]
    return price_faults(of["agent"], supervisor, of["limits"])


def _agent_faults(agent: ConfiguredAgent) -> Iterator[Fault]:
    if agent.agent_key not in registered_keys():
        yield "agent", f"its class {agent.agent_key!r} is not registered in this project"


def _refuse(found: list[Fault]) -> None:
    if found:
        errors = [{"path": path, "message": message} for path, message in found]
        raise InvalidInput(f"{found[0][0]}: {found[0][1]}", errors)
