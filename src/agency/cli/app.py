"""How commands are gathered: Typer's apps, but for the type that its help shows beside a flag."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _typeless(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _typeless(super().get_params(ctx))


class App(typer.Typer):
    """A flag takes no value, so none is announced."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=Group, no_args_is_help="invoke_without_command" not in settings, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, cls=Command, **settings)


def _typeless(params: list[Any]) -> list[Any]:
    for one in params:
        if getattr(one, "is_flag", False) and one.metavar is None:
            one.metavar = ""
    return params
