"""Django settings of the tests: a small project that uses agency, on the database that the plugin chose."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

HOME = os.environ.get("AGENCY_TEST_HOME")

SECRET_KEY = "for tests only, and long enough for every check that counts characters"
DEBUG = False
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "agency.config.urls"
STATIC_URL = "static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "ninja",
    "agency",
    "tests.project",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]


def _sqlite() -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(Path(HOME, "db.sqlite3")) if HOME else ":memory:",
        "TEST": {"NAME": str(Path(HOME, "test.sqlite3")) if HOME else None},
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
        },
    }


def _postgres(url: str) -> dict[str, object]:
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": parts.username,
        "HOST": unquote(parts.hostname or ""),
    }


DATABASES = {
    "default": _postgres(os.environ["AGENCY_TEST_PG_URL"])
    if os.environ.get("AGENCY_TEST_DB") == "postgres"
    else _sqlite()
}

CELERY_BROKER_URL = os.environ.get("AGENCY_TEST_BROKER_URL")
