"""URLs of the ready project: the API and the health checks."""

from django.urls import include, path

from agency.config import health

urlpatterns = [
    path("api/", include("agency.api.urls")),
    path("health/live", health.live, name="health-live"),
    path("health/ready", health.ready, name="health-ready"),
]
