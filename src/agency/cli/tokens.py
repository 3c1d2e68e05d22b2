"""Commands for API tokens: `token create`, `token list`, `token revoke`."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from agency.cli import project
from agency.cli.app import App
from agency.cli.output import AsJson, console, note, print_json
from agency.errors import InvalidInput

if TYPE_CHECKING:
    from agency.models import ApiToken

app = App(help="API tokens: create, list, revoke.")
LONGEST_NAME = 200
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.")]
User = Annotated[str | None, typer.Option(help="Whose token; by default the local user's.")]


@app.command("create")
def create(name: Name, user: User = None, as_json: AsJson = False) -> None:
    """Create a token and print it. It is stored hashed and cannot be shown again."""
    if not name.strip() or len(name) > LONGEST_NAME:
        raise InvalidInput(f"A token needs a name of 1 to {LONGEST_NAME} characters, such as `laptop`.")
    project.setup()
    from agency.models import ApiToken

    token, secret = ApiToken.issue(project.user_named(user), name)
    if as_json:
        print_json({"id": str(token.id), "name": token.name, "token": secret})
        return
    console().print(secret, soft_wrap=True)
    note("Keep it: it cannot be shown again. Use it as `Authorization: Bearer ...`.")


@app.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List tokens, newest first, without their secrets."""
    project.setup()
    from agency.models import ApiToken

    rows = list(ApiToken.objects.select_related("owner").order_by("-created_at"))
    if as_json:
        print_json([_shown(row) for row in rows])
        return
    if not rows:
        console().print("No tokens yet. `agency token create NAME` makes one.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "name", "begins", "owner", "last used", "state"):
        table.add_column(column)
    for row in rows:
        used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never"
        state = "revoked" if row.revoked_at else "valid"
        table.add_row(str(row.id)[:8], row.name, f"{row.hint}…", str(row.owner), used, state)
    console().print(table)


@app.command("revoke")
def revoke(
    token: Annotated[str, typer.Argument(metavar="ID", help="A token's id, or its beginning.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token at once."""
    project.setup()
    from agency.models import ApiToken
    from agency.models.clock import Now

    row = project.by_prefix(ApiToken.objects.all(), token, "token", "agency token list")
    ApiToken.objects.filter(pk=row.pk, revoked_at__isnull=True).update(revoked_at=Now())
    row.refresh_from_db()
    if as_json:
        print_json(_shown(row))
    else:
        console().print(f"Revoked {row.name} ({row.hint}…).")


def _shown(row: "ApiToken") -> dict[str, object]:
    return {
        "id": str(row.id),
        "name": row.name,
        "hint": row.hint,
        "owner": str(row.owner),
        "created_at": row.created_at,
        "last_used_at": row.last_used_at,
        "revoked_at": row.revoked_at,
    }
