"""The README's examples run as they stand and print what it says they print."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str, nth: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)[nth]


def steady(text: str) -> str:
    """The text without what differs from run to run: ids and times."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r"\d+\.\d\d s", "TIME", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_example_prints_what_the_readme_shows() -> None:
    assert steady(run(block("python"))) == steady(block("text"))


def test_the_first_example_is_about_twenty_lines() -> None:
    lines = [line for line in block("python").splitlines() if line.strip()]
    assert len(lines) <= 20


def test_the_definition_example_judges_and_retries() -> None:
    check = """
from agency.agent import Agent
from agency.agent.testing import ScriptedLlm
from agency.execution.conversation import Conversation

llm = ScriptedLlm('{"title": "Chair", "colour": "blue"}', '{"title": "Chair", "colour": "red"}')
product = ProductInput(sku="A-1", text="A red chair")
result = EnrichProduct().run(product, Conversation(Agent("clerk", llm), execution_input=product))
print(result.output, len(llm.requests))
"""
    assert run(block("python", 1) + check).strip() == "{'title': 'Chair', 'colour': 'red'} 2"
