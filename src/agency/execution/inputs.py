"""The typed input of a definition."""

from pydantic import BaseModel, ConfigDict


class ExecutionInputType(BaseModel):
    """Subclass it and declare fields; its JSON Schema is served by the API and drives the web form.

    Unknown fields and numbers that JSON cannot hold (NaN, infinity) are refused. A field with an alias
    may be given by either name and is stored under its own.
    """

    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, validate_by_name=True, validate_by_alias=True
    )
