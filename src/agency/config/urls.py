"""URLs of the ready project: the API, the health checks, and the way from the address to the docs."""

from django.urls import include, path
from django.views.generic import RedirectView

from agency.config import health

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="agency-api:openapi-view")),
    path("api/", include("agency.api.urls")),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
]
