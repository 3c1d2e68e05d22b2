"""Events and content: built at first use, whatever asks first; ids are UUIDs; short cuts change nothing."""

import subprocess
import sys
import uuid
from typing import Any, cast

import pytest
from pydantic import ValidationError

from agency.agent.events import Event, Message, ToolCall, Usage, new_id, recorded

AT_ONCE = """
import threading
from agency.agent import Event, Message, ToolCall, Usage

COUNT = 16
line = threading.Barrier(COUNT)
made = []

def first(number):
    line.wait()
    said = [Message(role="user", content="hi"), ToolCall(tool_call_id="c", name="add")]
    made.append(Event(execution_id=str(number), author="user", content=said, usage=Usage()).model_dump_json())

threads = [threading.Thread(target=first, args=(number,)) for number in range(COUNT)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(made) == COUNT, len(made)
assert len({Event.model_validate_json(text).execution_id for text in made}) == COUNT
"""


def test_many_threads_may_be_the_first_to_make_an_event() -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ids_are_random_uuids() -> None:
    made = [new_id() for _ in range(200)]
    assert {uuid.UUID(one).version for one in made} == {4}
    assert {uuid.UUID(one).variant for one in made} == {uuid.RFC_4122}
    assert [str(uuid.UUID(one)) for one in made] == made
    assert len(set(made)) == 200


def test_a_recorded_event_is_what_the_checked_one_would_be() -> None:
    call = ToolCall(tool_call_id="a", name="add", arguments={"a": 1})
    event = recorded("e", "adder", [call], 3, usage=Usage(model_calls=1), call={"model": "m"})
    checked = Event.model_validate(event.model_dump())
    assert event == checked
    assert event.model_dump_json() == checked.model_dump_json()
    assert event.model_copy(update={"step": 4}).step == 4
    assert recorded("e", "adder", [], 3).id != recorded("e", "adder", [], 3).id


def test_what_is_not_made_of_our_items_is_checked_before_it_is_recorded() -> None:
    foreign: Any = [{"type": "message", "role": "user", "content": "hello"}]
    assert recorded("e", "adder", foreign, 0).content == [Message(role="user", content="hello")]
    for content, usage in (([{"type": "message"}], None), ([], {"model_calls": "many"})):
        with pytest.raises(ValidationError):
            recorded("e", "adder", cast("Any", content), 0, usage=cast("Any", usage))
