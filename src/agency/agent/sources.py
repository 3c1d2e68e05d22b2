"""Where tools come from that an agent cannot hold itself: a source is opened for a run and closed after it.

Knows no protocol; `agency.agent.mcp` is one source.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol, TypeGuard, runtime_checkable

from agency.agent.tools import Tool


@runtime_checkable
class ToolSource(Protocol):
    """Gives tools that work as long as `connected()` lasts. `name` tells sources apart."""

    name: str

    def connected(self) -> AbstractContextManager[Sequence[Tool]]: ...


def is_source(item: Any) -> TypeGuard[ToolSource]:
    if isinstance(item, Tool | type):  # to ask a protocol costs as much as a whole step of a run
        return False
    return isinstance(item, ToolSource)


def split(tools: Iterable[Any]) -> tuple[list[Any], list[ToolSource]]:
    """The declarations that are tools themselves, and the sources among them."""
    plain: list[Any] = []
    sources: list[ToolSource] = []
    for item in tools:
        if is_source(item):
            sources.append(item)
        else:
            plain.append(item)
    return plain, sources


@contextmanager
def opened(sources: Iterable[ToolSource]) -> Generator[list[Tool]]:
    """The tools of all sources, each over one connection, which is closed at the end of the block."""
    with ExitStack() as stack:
        yield [tool for source in sources for tool in stack.enter_context(source.connected())]
