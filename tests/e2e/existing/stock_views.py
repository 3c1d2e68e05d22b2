"""A view of the project that submits an execution; `ATOMIC_REQUESTS` puts it into a transaction."""

from django.http import HttpRequest, JsonResponse
from stock.executions import DescribeProduct

from agency.models import ConfiguredAgent


class OutOfStock(Exception):
    """Rolls the request back."""


def describe(request: HttpRequest) -> JsonResponse:
    agent = ConfiguredAgent.objects.get(name="Clerk")
    execution = DescribeProduct.submit(agent, {"text": request.GET["text"]})
    if "fail" in request.GET:
        raise OutOfStock
    return JsonResponse({"id": str(execution.id)})
