"""The course of a definition's run: execute, validate, feed back, give up. Decides; the conversation acts."""

from typing import TYPE_CHECKING, Any, cast

from agency.agent.beside import present
from agency.agent.text import cut, describe_error
from agency.enums import Verdict
from agency.errors import AgencyError, ConfigurationError, StaleExecution
from agency.execution.conversation import Conversation, TurnFailed
from agency.execution.failure import ExecutionResult, failure_codes
from agency.execution.output import as_object, to_output
from agency.execution.schema_validator import MatchesSchemaValidator
from agency.execution.storable import storable
from agency.execution.validators import (
    BaseExecutionValidator,
    ValidatorResponse,
    make_validator,
    validator_name,
)
from agency.redaction import safe_logger

if TYPE_CHECKING:
    from agency.execution.definition import BaseAgenticExecutionDefinition

logger = safe_logger(__name__)

GENERIC_FEEDBACK = "Your last answer was not accepted. Check it against the task and answer again."
SUMMARY_LENGTH = 2_000
CODE_LENGTH = 100


class Attempts:
    """One run of one definition."""

    def __init__(
        self, definition: "BaseAgenticExecutionDefinition", input_data: Any, conversation: Conversation
    ) -> None:
        self.definition = definition
        self.input_data = input_data
        self.conversation = conversation
        self.codes = definition.FAILURE_CODES
        self._doing = "execute()"

    def run(self) -> ExecutionResult:
        try:
            return self._attempt_until_decided()
        except StaleExecution:
            raise
        except TurnFailed as exc:
            return self._fail(exc.code, exc.summary)
        except Exception as exc:
            return self._fail(self.codes.RUNTIME_ERROR, self._report(exc))

    def _attempt_until_decided(self) -> ExecutionResult:
        while self.conversation.attempt <= 1 + self.definition.MAX_RETRIES:
            response = self._execute()
            name, rejection = self._judge(response)
            if rejection is None:
                return self._succeed(response)
            code = self._known(rejection.failure_code, name)
            feedback = (rejection.feedback or "").strip()
            if not rejection.retry_needed:
                summary = feedback or f"{name} refused the answer and gave no reason."
                return self._fail(code or self.codes.VALIDATION_FAILED, summary)
            self._close(feedback or GENERIC_FEEDBACK, code)
        return self._give_up()

    def _execute(self) -> str:
        self._doing = f"{type(self.definition).__name__}.execute()"
        response = cast("object", self.definition.execute(self.input_data, self.conversation))
        if not isinstance(response, str):
            raise ConfigurationError(f"returned {type(response).__name__}; return the answer as text (str)")
        return response

    def _judge(self, response: str) -> tuple[str, ValidatorResponse | None]:
        """The name and answer of the first validator that refuses the response; `None` if all accept it."""
        for entry in self._validators():
            name = validator_name(entry)
            self._doing = f"validator {name}"
            verdict = self._ask(make_validator(entry), response)
            if not isinstance(verdict, ValidatorResponse):
                raise ConfigurationError(f"returned {type(verdict).__name__}, not a ValidatorResponse")
            if verdict.usage:
                self.conversation.add_usage(verdict.usage)
            if not verdict.validation_successful:
                return name, verdict
        return "", None

    def _ask(self, validator: BaseExecutionValidator, response: str) -> object:
        token = present.set(self.conversation.beside)
        try:
            return validator.validate(response, self.input_data, self.conversation.scratchpad)
        finally:
            present.reset(token)

    def _validators(self) -> list[Any]:
        implicit = (
            []
            if self.definition.OUTPUT_TYPE is None
            else [MatchesSchemaValidator(self.definition.OUTPUT_TYPE)]
        )
        return [*self.definition.VALIDATORS, *implicit]

    def _close(self, feedback: str, code: str | None) -> None:
        retries_left = self.conversation.attempt <= self.definition.MAX_RETRIES
        self._doing = "closing the attempt"
        self.conversation.close_attempt(Verdict.RETRY if retries_left else Verdict.FAILED, feedback, code)

    def _give_up(self) -> ExecutionResult:
        summary = self._summary() or self.conversation.last_feedback or GENERIC_FEEDBACK
        return ExecutionResult(
            success=False, failure_code=self.codes.MAX_RETRIES_EXCEEDED, failure_summary=summary
        )

    def _summary(self) -> str:
        try:
            return self.conversation.summarise(self.definition.FAILURE_SUMMARY_PROMPT).strip()
        except StaleExecution:
            raise
        except Exception:
            # The outcome is decided; a summary is only its wording, and the last feedback will do.
            logger.warning("no failure summary could be had", exc_info=True)
            return ""

    def _succeed(self, response: str) -> ExecutionResult:
        if self.definition.OUTPUT_TYPE is None:
            output = to_output(response)
        else:
            output = as_object(MatchesSchemaValidator(self.definition.OUTPUT_TYPE).parse(response))
        self.conversation.conclude(Verdict.PASSED, cut(storable(response), SUMMARY_LENGTH))
        return ExecutionResult(success=True, output=output)

    def _fail(self, code: str, summary: str) -> ExecutionResult:
        summary = cut(storable(summary), SUMMARY_LENGTH)
        self.conversation.conclude(Verdict.FAILED, summary, code)
        return ExecutionResult(success=False, failure_code=code, failure_summary=summary)

    def _report(self, error: Exception) -> str:
        """A summary that is safe to show: of a foreign error only the type, its message stays on record."""
        reference = self.conversation.record_error(error, self._doing)
        logger.error("%s failed (event %s)", self._doing, reference, exc_info=error)
        shown = describe_error(error) if isinstance(error, AgencyError) else type(error).__name__
        return f"{self._doing} failed: {shown} (recorded as event {reference})"

    def _known(self, code: str | None, name: str) -> str | None:
        if code and len(code) > CODE_LENGTH:
            raise ConfigurationError(
                f"gave a failure code of {len(code)} characters; {CODE_LENGTH} may be stored"
            )
        if code and code not in failure_codes(self.codes):
            logger.warning("%s returned the failure code %r, which %s lacks", name, code, self.codes.__name__)
        return code or None
