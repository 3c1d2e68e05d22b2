"""One agent with three tools and an output type, and the tasks that it must do on every model alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from agency.agent import (
    Agent,
    AgentResult,
    LlmClient,
    RunStatus,
    tool,
)

CUSTOMERS = {"Nordwind GmbH": "C-31", "Sonnig AG": "C-77", "Blau KG": "C-12"}
PRICES = {"desk": 310.0, "lamp": 45.5, "chair": 89.0, "shelf": 120.0}
STOCK = {"desk": 4, "lamp": 250, "chair": 17, "shelf": 0}
INSTRUCTIONS = (
    "You answer inquiries. Call find_customer, find_price and find_stock first, "
    "then give the final answer with exactly what they returned."
)


@tool(effect="read")
def find_customer(company: str) -> dict[str, str]:
    """Find a customer's number.

    Args:
        company: the company's name as it is written in the inquiry
    """
    return {"customer_number": CUSTOMERS[company]}


@tool(effect="read")
def find_price(article: str) -> dict[str, float]:
    """Find what one piece of an article costs, in EUR.

    Args:
        article: one word in the singular, for example "table"
    """
    return {"price": PRICES[article]}


@tool(effect="read")
def find_stock(article: str) -> dict[str, int]:
    """Find how many pieces of an article are in stock.

    Args:
        article: one word in the singular, for example "table"
    """
    return {"in_stock": STOCK[article]}


class Offer(BaseModel):
    """The answer to an inquiry."""

    customer_number: str = Field(min_length=1, description="from find_customer")
    article: str = Field(min_length=1)
    price: float = Field(description="from find_price")
    in_stock: int = Field(description="from find_stock")


@dataclass(frozen=True, slots=True)
class Task:
    """An inquiry and the offer that it must lead to."""

    company: str
    article: str

    @property
    def inquiry(self) -> str:
        return f"{self.company} asks what a {self.article} costs and how many are in stock."

    @property
    def offer(self) -> Offer:
        return Offer(
            customer_number=CUSTOMERS[self.company],
            article=self.article,
            price=PRICES[self.article],
            in_stock=STOCK[self.article],
        )


TASKS = [
    Task("Nordwind GmbH", "desk"),
    Task("Sonnig AG", "lamp"),
    Task("Blau KG", "chair"),
    Task("Nordwind GmbH", "shelf"),
]


def clerk(model: LlmClient | str, tools: Sequence[Any] = (), **options: Any) -> Agent:
    """The agent; `tools` in place of its own."""
    own = [find_customer, find_price, find_stock]
    # A small model would rather guess than ask.
    options.setdefault("first_tools", [one.__name__ for one in tools or own])
    return Agent("clerk", model, INSTRUCTIONS, tools or own, max_steps=8, output_type=Offer, **options)


def check(result: AgentResult, task: Task) -> None:
    """The run is complete, its answer right, and every tool was really asked."""
    assert (result.status, result.stop_reason) == (RunStatus.COMPLETED, "final_answer")
    assert result.output == task.offer
    results = [one for event in result.context.events for one in event.tool_results]
    asked = {one.name for one in results if one.status == "success"}
    assert {"find_customer", "find_price", "find_stock"} <= asked
