"""The closed sets of words that rows, the API and the domain share. Knows nothing but strings."""

from enum import StrEnum


class ExecutionStatus(StrEnum):
    """Where an execution stands. Stored and served in lower case."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self in TERMINAL_STATUSES


TERMINAL_STATUSES = frozenset({ExecutionStatus.FINISHED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED})


class LoopStatus(StrEnum):
    """Where a mission's loop stands; NULL for one-shot missions and definitions."""

    RUNNING = "running"
    WAITING = "waiting"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LIMIT_REACHED = "limit_reached"


class DecisionStatus(StrEnum):
    """What a supervisor decides about a loop after an iteration."""

    CONTINUE = "continue"
    COMPLETE = "complete"
    WAIT = "wait"
    BLOCKED = "blocked"
    FAILED = "failed"


class Overlap(StrEnum):
    """What a schedule does in a slot while an execution of an earlier one still runs."""

    SKIP = "skip"
    QUEUE = "queue"
    CANCEL_PREVIOUS = "cancel_previous"


class CatchUp(StrEnum):
    """What becomes of slots that passed while nothing ran."""

    RUN_ONCE = "run_once"
    SKIP = "skip"


class SlotOutcome(StrEnum):
    """What became of one slot of a schedule. A queued one is dispatched when the one before has ended."""

    DISPATCHED = "dispatched"
    QUEUED = "queued"
    SKIPPED = "skipped"


class Wakeup(StrEnum):
    """What an execution is due for. With `agency.` before it, the frozen name of a Celery task."""

    RUN_EXECUTION = "run_execution"
    START_MISSION = "start_mission"
    RUN_LOOP_ITERATION = "run_loop_iteration"
    RESUME_MISSION = "resume_mission"


class Verdict(StrEnum):
    """What became of one iteration: for a definition, what the validators said of the attempt."""

    PASSED = "passed"
    RETRY = "retry"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CONTINUE = "continue"
    COMPLETE = "complete"
    WAIT = "wait"
    BLOCKED = "blocked"


class EventKind(StrEnum):
    """What an event row records; only `CONTENT` rows are part of an agent's context."""

    CONTENT = "content"
    STARTED = "execution_started"
    ATTEMPT_COMPLETED = "execution_attempt_completed"
    INTERRUPTED = "execution_interrupted"
    RESUMED = "execution_resumed"
    FINISHED = "execution_finished"
    FAILED = "execution_failed"
    CANCELLED = "execution_cancelled"
    LOOP_STARTED = "mission_loop_started"
    ITERATION_STARTED = "mission_iteration_started"
    ITERATION_COMPLETED = "mission_iteration_completed"
    LOOP_WAITING = "mission_loop_waiting"
    LOOP_BLOCKED = "mission_loop_blocked"
    LOOP_RESUMED = "mission_loop_resumed"
    LOOP_COMPLETED = "mission_loop_completed"
    LOOP_LIMIT_REACHED = "mission_loop_limit_reached"
    LOOP_FAILED = "mission_loop_failed"
    LOOP_CANCELLED = "mission_loop_cancelled"
    SIGNAL_RECEIVED = "mission_signal_received"
    REQUEST_ANSWERED = "human_request_answered"
    REQUEST_EXPIRING = "human_request_expiring"
    REQUEST_EXPIRED = "human_request_expired"


TERMINAL_EVENTS = frozenset({EventKind.FINISHED, EventKind.FAILED, EventKind.CANCELLED})


class MessageRole(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class StepStatus(StrEnum):
    """A journal entry: an announced call, or a recorded result."""

    INTENT = "intent"
    DONE = "done"


class Effect(StrEnum):
    """What repeating a tool call would do to the world."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    UNSAFE = "unsafe"


class HumanRequestKind(StrEnum):
    """What a person is asked for."""

    CONFIRM_TOOL = "confirm_tool"
    QUESTION = "question"
    INPUT = "input"
    BUDGET = "budget"
    UNCERTAIN_EFFECT = "uncertain_effect"


class HumanRequestStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class HumanDecision(StrEnum):
    """What a person says to one call; `ALLOWED_DECISIONS` says which fit what is asked."""

    APPROVE = "approve"
    REJECT = "reject"
    ANSWER = "answer"
    HAPPENED = "happened"
    RUN_AGAIN = "run_again"
    GIVE_UP = "give_up"


class AlwaysFor(StrEnum):
    """For what a person allows a tool's later calls."""

    EXECUTION = "execution"
    MISSION = "mission"


ALLOWED_DECISIONS: dict[HumanRequestKind, tuple[HumanDecision, ...]] = {
    HumanRequestKind.CONFIRM_TOOL: (HumanDecision.APPROVE, HumanDecision.REJECT),
    HumanRequestKind.QUESTION: (HumanDecision.ANSWER, HumanDecision.REJECT),
    HumanRequestKind.INPUT: (HumanDecision.ANSWER, HumanDecision.GIVE_UP),
    HumanRequestKind.BUDGET: (HumanDecision.ANSWER, HumanDecision.GIVE_UP),
    HumanRequestKind.UNCERTAIN_EFFECT: (
        HumanDecision.HAPPENED,
        HumanDecision.RUN_AGAIN,
        HumanDecision.GIVE_UP,
    ),
}
