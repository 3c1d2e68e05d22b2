"""The API's URLs: `path("api/", include("agency.api.urls"))` in a project's URL configuration."""

from django.urls import path

from agency.api.api import api

urlpatterns = [path("", api.urls)]
