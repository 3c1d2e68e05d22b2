"""Lets Django find the tests' app."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "tests.project"
    label = "tests_project"
