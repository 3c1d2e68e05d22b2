from pathlib import Path
from typing import Any

from agency.agent import LlmRequest, LlmResponse, Message
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter, supervisor_request
from benchmarks.supervisor.remembered import Remembered


class Counting:
    def __init__(self) -> None:
        self.calls = 0

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.calls += 1
        return LlmResponse([Message(role="assistant", content=f"answer {self.calls}")])


def matter(**changed: Any) -> Matter:
    given = {
        "objective": "Sing.",
        "counters": Counters(1, 2),
        "loop_prompt": "",
        "last_summary": "",
        "transcript": "agent: La.",
    }
    return Matter(**{**given, **changed})


def test_an_answer_is_had_once_whatever_the_mark_around_the_transcript_is(tmp_path: Path) -> None:
    model, file = Counting(), tmp_path / "kept" / "model.jsonl"
    first = Remembered(model, file).generate(supervisor_request(matter()))
    again = Remembered(model, file).generate(supervisor_request(matter()))
    assert (first.text, again.text, model.calls) == ("answer 1", "answer 1", 1)


def test_another_transcript_round_or_instruction_is_asked_anew(tmp_path: Path) -> None:
    model = Counting()
    client = Remembered(model, tmp_path / "model.jsonl")
    for changed in ({}, {"transcript": "agent: Lo."}, {"counters": Counters(2, 2)}, {"loop_prompt": "Go."}):
        client.generate(supervisor_request(matter(**changed)))
    request = supervisor_request(matter())
    request.instructions.append("Be brief.")
    client.generate(request)
    assert model.calls == 5
