"""How a decision is had from a model: asked for, validated, and its claims weighed by code.

A decision is never searched for in prose: it validates, is asked for once more with its fault, or is
none. Knows no database: the transcript is passed in.
"""

from dataclasses import dataclass, field

from agency.agent.events import Message, Usage
from agency.agent.llm import LlmClient, LlmRequest, LlmResponse, with_structured_output
from agency.agent.text import clean, cut
from agency.enums import DecisionStatus
from agency.errors import ModelOutputInvalid
from agency.mission.decision import LONGEST_WAIT, TEXT_LIMIT, LoopDecision, RequiredInput, Wait
from agency.mission.evidence import weighed
from agency.mission.prompt import Matter

__all__ = [
    "LONGEST_WAIT",
    "TEXT_LIMIT",
    "Evaluation",
    "LoopDecision",
    "RequiredInput",
    "Wait",
    "evaluate_loop_decision",
]

RAW_LIMIT = 20_000


@dataclass(slots=True)
class Evaluation:
    """What the supervisor gave: a decision, or none with the `error` and the `raw` text of the last try.

    `claimed` says that the model called the mission complete: `decision` is "continue" then, unless code
    found the evidence in what the tools returned. `unproven` is the completion where code found none: what
    proves more than a quote, as the project's checks do, may still confirm it.
    """

    decision: LoopDecision | None
    raw: str = ""
    error: str = ""
    usage: Usage = field(default_factory=Usage)
    claimed: bool = False
    unproven: LoopDecision | None = None


def evaluate_loop_decision(
    supervisor: LlmClient, matter: Matter, form: type[LoopDecision] = LoopDecision
) -> Evaluation:
    """Ask the supervisor for its decision; an answer that does not validate is sent back once with its fault.

    A completion counts only if its evidence stands in the transcript (`evidence.weighed`).

    `form` is how the decision is asked for (`branches.BranchedLoopDecision` for local models).
    `ModelUnavailable` passes through: that is worth a later try and no decision.
    """
    client = _Metered(supervisor)
    form = form.settled(client, matter)
    asking = with_structured_output(client, form)
    request = form.request(matter)
    raw = error = ""
    for _ in range(2):
        try:
            decision = asking.generate(request)
        except ModelOutputInvalid as exc:
            raw, error = exc.raw, str(exc)
            request.contents = [*request.contents, *_correction(raw, error)]
            continue
        claimed = decision.status is DecisionStatus.COMPLETE
        confirmed = decision.confirmed(client, matter)
        shown = weighed(confirmed, matter.transcript)
        unproven = None if shown is confirmed else confirmed
        return Evaluation(shown, client.raw, usage=client.usage, claimed=claimed, unproven=unproven)
    return Evaluation(None, cut(clean(raw), RAW_LIMIT), cut(clean(error), TEXT_LIMIT), client.usage)


def _correction(raw: str, error: str) -> list[Message]:
    return [
        Message(role="assistant", content=raw or "(nothing)"),
        Message(
            role="user",
            content=f"That cannot be used: {cut(error, TEXT_LIMIT)}\nGive the whole decision anew.",
        ),
    ]


class _Metered:
    """A client that adds up what its calls cost and keeps the last text."""

    def __init__(self, client: LlmClient) -> None:
        self.client = client
        self.usage = Usage()
        self.raw = ""
        self.model_name = getattr(client, "model_name", None)
        self.takes_probes = getattr(client, "takes_probes", False)

    def generate(self, request: LlmRequest) -> LlmResponse:
        response = self.client.generate(request)
        self.usage += response.usage or Usage(model_calls=1)
        self.raw = response.text
        return response
