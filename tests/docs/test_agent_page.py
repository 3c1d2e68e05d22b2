"""The page about the agent core is one session: every block runs, and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "agent.md"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:```text\n(?P<output>.*?)^```)?", re.DOTALL | re.MULTILINE
)


def test_every_example_runs_in_order_and_prints_what_the_page_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    session: dict[str, Any] = {"__name__": "page"}
    ran = 0
    for found in BLOCK.finditer(text):
        line = text[: found.start()].count("\n") + 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + found["code"], str(PAGE), "exec"), session)
        assert printed.getvalue() == (found["output"] or ""), f"the example at line {line}"
        ran += 1
    assert ran == text.count("```python")
