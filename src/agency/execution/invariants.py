"""What must hold of every execution's rows at every moment, as queries that find the rows where it does not.

Constraints refuse what one row can say wrong; this looks across tables too. `agency doctor --invariants`
and the fault tests run it. It only reads.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connections

from agency.enums import TERMINAL_EVENTS, TERMINAL_STATUSES, EventKind, ExecutionStatus, HumanRequestStatus
from agency.execution.claims import database
from agency.models import Event, Execution, HumanRequest, Iteration, Message, Step

SHOWN = 20
"""How many executions a violated invariant names at most."""


def _among(words: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{word}'" for word in sorted(words)) + ")"


_TERMINAL = f"e.status IN {_among(TERMINAL_STATUSES)}"
_ENDING = f"v.kind IN {_among(TERMINAL_EVENTS)}"
_ENDED_AS = " OR ".join(
    f"(e.status = '{status}' AND v.kind = '{kind}')"
    for status, kind in (
        (ExecutionStatus.FINISHED, EventKind.FINISHED),
        (ExecutionStatus.FAILED, EventKind.FAILED),
        (ExecutionStatus.CANCELLED, EventKind.CANCELLED),
    )
)
_SITUATIONS = " + ".join(
    f"CASE WHEN {one} THEN 1 ELSE 0 END"
    for one in (
        "e.next_run_at IS NOT NULL",
        "e.claim_id IS NOT NULL",
        f"e.status = '{ExecutionStatus.INTERRUPTED}'",
    )
)
_TABLES = {
    model.__name__: model._meta.db_table
    for model in (Execution, HumanRequest, Iteration, Event, Step, Message)
}

_RULES = {
    "an execution that has not ended is exactly one of due, claimed or waiting for a person": f"""
        SELECT e.id FROM {{Execution}} e
        WHERE ({_SITUATIONS}) <> CASE WHEN {_TERMINAL} THEN 0 ELSE 1 END
    """,
    "a claim is whole: id, owner and lease, or none of them": """
        SELECT e.id FROM {Execution} e
        WHERE (e.claim_id IS NULL) <> (e.claim_owner IS NULL)
           OR (e.claim_id IS NULL) <> (e.lease_until IS NULL)
    """,
    "claims that were lost are counted up to the cap, and never beyond the fence": """
        SELECT e.id FROM {Execution} e WHERE e.claim_count > {cap} OR e.claim_count > e.fence
    """,
    "the ledger has the rows 1 to `iteration`, without a gap": """
        SELECT e.id FROM {Execution} e
        LEFT JOIN (SELECT execution_id, COUNT(DISTINCT n) AS many, COUNT(*) AS found, MAX(n) AS newest
                   FROM {Iteration} GROUP BY execution_id) i ON i.execution_id = e.id
        WHERE COALESCE(i.many, 0) <> e.iteration OR COALESCE(i.newest, 0) <> e.iteration
           OR COALESCE(i.found, 0) <> e.iteration
    """,
    "the events are numbered from 1 without a gap, and each claim and each attempt has its own": """
        SELECT e.id FROM {Execution} e
        LEFT JOIN (SELECT execution_id, COUNT(DISTINCT seq) AS many, COUNT(*) AS found, MIN(seq) AS oldest,
                          MAX(seq) AS newest
                   FROM {Event} GROUP BY execution_id) v ON v.execution_id = e.id
        WHERE v.many <> v.newest OR v.found <> v.newest OR v.oldest <> 1
           OR COALESCE(v.newest, 0) < e.iteration + CASE WHEN e.mission_id IS NULL THEN e.fence ELSE 0 END
    """,
    "each event and each journal entry is of an execution": """
        SELECT v.execution_id FROM {Event} v
        WHERE NOT EXISTS (SELECT 1 FROM {Execution} e WHERE e.id = v.execution_id)
        UNION ALL
        SELECT s.execution_id FROM {Step} s
        WHERE NOT EXISTS (SELECT 1 FROM {Execution} e WHERE e.id = s.execution_id)
    """,
    "each generation that has ended has one terminal event, and one that goes on has none": f"""
        SELECT e.id FROM {{Execution}} e
        LEFT JOIN (SELECT v.execution_id, COUNT(*) AS many, COUNT(DISTINCT v.generation) AS ended,
                          MAX(v.generation) AS newest
                   FROM {{Event}} v WHERE {_ENDING} GROUP BY v.execution_id) t ON t.execution_id = e.id
        WHERE COALESCE(t.many, 0) <> e.generation - CASE WHEN {_TERMINAL} THEN 0 ELSE 1 END
           OR COALESCE(t.ended, 0) <> COALESCE(t.many, 0)
           OR COALESCE(t.newest, 0) > e.generation
    """,
    "an ended execution's last event says how it ended": f"""
        SELECT e.id FROM {{Execution}} e
        LEFT JOIN {{Event}} v ON v.execution_id = e.id
            AND v.seq = (SELECT MAX(w.seq) FROM {{Event}} w WHERE w.execution_id = e.id)
        WHERE {_TERMINAL} AND (v.seq IS NULL OR NOT ({_ENDED_AS}))
    """,
    "each ledger row has its event": f"""
        SELECT i.execution_id FROM {{Iteration}} i
        LEFT JOIN {{Event}} v ON v.execution_id = i.execution_id AND v.seq = i.event_seq
            AND v.iteration = i.n
            AND v.kind IN ('{EventKind.ATTEMPT_COMPLETED}', '{EventKind.ITERATION_COMPLETED}')
        WHERE v.seq IS NULL
    """,
    "the ledger's claims follow one another: fences rise, and each fence is one claim": """
        SELECT i.execution_id FROM {Iteration} i
        JOIN {Execution} e ON e.id = i.execution_id
        LEFT JOIN {Iteration} b ON b.execution_id = i.execution_id AND b.n = i.n - 1
        WHERE i.fence < 1 OR i.fence > e.fence OR i.fence < b.fence
           OR (i.fence = b.fence AND i.claim_id <> b.claim_id)
           OR (i.fence > b.fence AND i.claim_id = b.claim_id)
    """,
    "each journal entry's event exists": """
        SELECT s.execution_id FROM {Step} s
        LEFT JOIN {Event} v ON v.execution_id = s.execution_id AND v.seq = s.event_seq
        WHERE s.event_seq IS NOT NULL AND v.seq IS NULL
    """,
    "each message's event exists": """
        SELECT e.id FROM {Message} m
        JOIN {Execution} e ON e.thread_id = m.thread_id
        LEFT JOIN {Event} v ON v.execution_id = e.id AND v.seq = m.event_seq
        WHERE m.event_seq IS NOT NULL AND v.seq IS NULL
    """,
    "an interrupted execution has exactly one open request, any other none": f"""
        SELECT e.id FROM {{Execution}} e
        LEFT JOIN (SELECT execution_id, COUNT(*) AS many FROM {{HumanRequest}}
                   WHERE status = '{HumanRequestStatus.OPEN}'
                   GROUP BY execution_id) r ON r.execution_id = e.id
        WHERE COALESCE(r.many, 0) <> CASE WHEN e.status = '{ExecutionStatus.INTERRUPTED}' THEN 1 ELSE 0 END
    """,
}


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold: how many executions break it, and the ids of the first `SHOWN`."""

    invariant: str
    count: int
    executions: list[str]

    def __str__(self) -> str:
        more = "" if self.count <= len(self.executions) else f" and {self.count - len(self.executions)} more"
        return f"not so: {self.invariant}: {', '.join(self.executions)}{more}"


def violations(cap: int) -> list[Violation]:
    """The invariants that are broken now; `cap` is how many claims of one attempt may be lost.

    Each is one query over whole tables: seconds where there are millions of rows.
    """
    checked = (_check(name, sql.format(cap=int(cap), **_TABLES)) for name, sql in _RULES.items())
    return [broken for broken in checked if broken is not None]


def invariants() -> list[str]:
    """What is checked, in words."""
    return list(_RULES)


def _check(invariant: str, sql: str) -> Violation | None:
    once = f"WITH found(id) AS ({sql}), broken AS (SELECT DISTINCT id FROM found)"
    with connections[database()].cursor() as cursor:
        cursor.execute(f"{once} SELECT id, COUNT(*) OVER () FROM broken ORDER BY id LIMIT {SHOWN}")
        rows = cursor.fetchall()
    if not rows:
        return None
    return Violation(invariant, rows[0][1], [str(uuid.UUID(str(execution_id))) for execution_id, _ in rows])
