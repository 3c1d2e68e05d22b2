"""Whatever a supervisor says, it is a decision or none: nothing that it says breaks a run."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agency.agent import LlmRequest, LlmResponse, Message, Usage
from agency.enums import DecisionStatus
from agency.mission.branches import BranchedLoopDecision
from agency.mission.loop import LoopDecision, evaluate_loop_decision
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter
from agency.mission.waits import knowing

MATTER = Matter("Do it", Counters(1, 3), "", "", "tool: ← do: it is done\nagent: Done.")
WORDS = [
    *DecisionStatus,
    "all done",
    "go on",
    "ask a person",
    "impossible",
    "n/a",
    "bell",
    "2026-12-01T10:00:00Z",
]
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(WORDS)
)
WAIT = ["seconds", "until", "signal", "watch", "what_for"]
FIELDS = [*LoopDecision.model_fields, "follow_up", "verdict", "detail", "missing", "shown", "minutes"]
FIELDS += ["left", "proof", "question", "kind", "choices", *WAIT]


def objects(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(st.sampled_from(FIELDS), inside, max_size=8)


VALUES = st.recursive(LEAVES, lambda inside: st.lists(inside, max_size=3) | objects(inside), max_leaves=12)
LIKELY = st.fixed_dictionaries(
    {"status": st.sampled_from(WORDS), "reason": LEAVES, "summary": LEAVES},
    optional={
        "next_input": LEAVES,
        "evidence": LEAVES,
        "wait": st.dictionaries(st.sampled_from(WAIT), LEAVES, max_size=2),
        "verdict": VALUES,
        "minutes": VALUES,
        "missing": VALUES,
        "shown": LEAVES,
        "detail": LEAVES,
    },
)
SAID = (
    objects(VALUES).map(json.dumps) | LIKELY.map(json.dumps) | VALUES.map(json.dumps) | st.text(max_size=60)
)


class Saying:
    """A supervisor that says these texts in turn."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def generate(self, request: LlmRequest) -> LlmResponse:
        return LlmResponse([Message(role="assistant", content=self.texts.pop(0))], Usage(model_calls=1))


@pytest.mark.parametrize("form", [LoopDecision, BranchedLoopDecision])
@given(texts=st.lists(SAID, min_size=4, max_size=4))
def test_it_is_a_decision_that_can_be_stored_or_none_with_the_text(
    form: type[LoopDecision], texts: list[str]
) -> None:
    evaluation = evaluate_loop_decision(Saying([*texts]), MATTER, knowing(form, ["bell"]))
    if evaluation.decision is None:
        assert evaluation.error
        return
    stored = evaluation.decision.model_dump_json()
    assert LoopDecision.model_validate_json(stored).status is evaluation.decision.status
