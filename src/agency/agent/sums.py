"""What events have cost together, and how counts and times are written for people."""

from collections.abc import Iterable

from agency.agent.events import Event, Usage


def usage_of(events: Iterable[Event]) -> Usage:
    """What the events have cost together."""
    total = Usage()
    for event in events:
        if event.usage is not None:
            total += event.usage
    return total


def costs(usage: Usage) -> str:
    """`2 model calls · 1,200 tokens in, 15 out · $0.0100`; nothing for what was not used."""
    parts: list[str] = []
    if usage.model_calls:
        parts.append(counted(usage.model_calls, "model call"))
    if usage.tool_calls:
        parts.append(counted(usage.tool_calls, "tool call"))
    if usage.total_tokens:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out")
    if usage.cost is not None:
        parts.append(f"${usage.cost:.4f}")
    return " · ".join(parts)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def lasted(value: float) -> str:
    if value < 120:
        return f"{value:.2f} s"
    minutes, seconds = divmod(round(value), 60)
    return f"{minutes} min {seconds:02} s"
