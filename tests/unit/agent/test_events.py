"""Events and content: built at their first use, whatever asks for them first; ids are UUIDs."""

import subprocess
import sys
import uuid

from agency.agent.events import new_id

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
