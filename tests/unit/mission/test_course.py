from typing import Any

import pytest

from agency.mission.course import Ask, Complete, Fail, GoOn, LimitReached, Pause, Round, course_of
from agency.mission.loop import LoopDecision
from agency.mission.placeholders import Counters

MIDDLE, LAST = Counters(2, 5), Counters(5, 5)


def decision(status: str, **more: Any) -> LoopDecision:
    return LoopDecision.model_validate({"reason": "why", "summary": "so far", "status": status, **more})


GO_ON = decision("continue", next_input="Read b.txt")


@pytest.mark.parametrize(
    ("decided", "kind"),
    [
        (decision("complete"), Complete),
        (decision("failed"), Fail),
        (decision("wait", wait={"seconds": 5}), Pause),
        (decision("blocked", required_input={"question": "Which?"}), Ask),
    ],
)
@pytest.mark.parametrize("counters", [MIDDLE, LAST])
def test_a_decision_stands_on_the_last_iteration_as_on_any_other(
    decided: LoopDecision, kind: type, counters: Counters
) -> None:
    assert isinstance(course_of(decided, counters, [], "answer"), kind)


def test_continue_goes_on_until_the_last_iteration_and_then_the_limit_is_reached() -> None:
    assert course_of(GO_ON, MIDDLE, [], "answer") == GoOn("Read b.txt")
    assert course_of(GO_ON, LAST, [], "answer") == LimitReached("Read b.txt")


def test_the_third_equal_instruction_asks_a_person() -> None:
    before = [Round("read  B.TXT", "one"), Round("Read b.txt", "two")]
    course = course_of(GO_ON, MIDDLE, before, "three")
    assert isinstance(course, Ask) and "Read b.txt" in course.required_input.question
    assert course_of(GO_ON, MIDDLE, before[1:], "three") == GoOn("Read b.txt")


def test_the_third_equal_answer_asks_a_person_but_no_answer_is_no_repetition() -> None:
    before = [Round("a", "I cannot."), Round("b", "I cannot.")]
    assert isinstance(course_of(GO_ON, MIDDLE, before, "i cannot."), Ask)
    assert course_of(GO_ON, MIDDLE, [Round("a", ""), Round("b", "")], "") == GoOn("Read b.txt")
