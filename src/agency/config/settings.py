"""Settings of the ready project that `agency up` runs. All choices come from the environment:

`AGENCY_HOME`, `AGENCY_DATABASE_URL`, `AGENCY_BROKER_URL` (absent or `none`: workers poll the database),
`AGENCY_APPS` (comma-separated Django apps with agents), `AGENCY_APPS_DIR` (where they are),
`AGENCY_SECRET_KEY`, `AGENCY_HOST`, `AGENCY_PORT`, `AGENCY_ALLOWED_HOSTS`, `AGENCY_WORKER_THREADS`,
`AGENCY_LOG_LEVEL`, `AGENCY_LOG_FORMAT` (`line` or `json`).
"""

import os
import sys
from pathlib import Path

from agency.config.channels import channel_layers
from agency.config.database import database
from agency.config.environment import count, log_format, log_level
from agency.runtime.home import Home

HOME = Home.of(os.environ)
HOST = os.environ.get("AGENCY_HOST", "127.0.0.1")
WORKER_THREADS = count(os.environ, "AGENCY_WORKER_THREADS", 8)


def _listed(name: str) -> list[str]:
    return [item.strip() for item in os.environ.get(name, "").split(",") if item.strip()]


if apps_directory := os.environ.get("AGENCY_APPS_DIR"):
    sys.path.insert(0, str(Path(apps_directory).expanduser().resolve()))

SECRET_KEY = os.environ.get("AGENCY_SECRET_KEY") or HOME.secret_key()
DEBUG = False
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", HOST, *_listed("AGENCY_ALLOWED_HOSTS")]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "ninja",
    "agency",
    "agency.config",
    *_listed("AGENCY_APPS"),
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
            ]
        },
    }
]
ROOT_URLCONF = "agency.config.urls"
ASGI_APPLICATION = "agency.config.asgi.application"
WSGI_APPLICATION = "agency.config.wsgi.application"

DATABASES = {"default": database(os.environ.get("AGENCY_DATABASE_URL", ""), HOME.database, WORKER_THREADS)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"

STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"

CELERY_BROKER_URL = None if (broker := os.environ.get("AGENCY_BROKER_URL", "")) in {"", "none"} else broker
CHANNEL_LAYERS = channel_layers(CELERY_BROKER_URL)
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"unacked_restore_interval": 2, "unacked_restore_throttle": 1}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_DEFAULT_QUEUE = "agency"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = WORKER_THREADS
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{levelname} {name}: {message}", "style": "{"},
        "json": {"()": "agency.config.logs.JsonLines"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": log_format(os.environ)}},
    "root": {"handlers": ["stderr"], "level": log_level(os.environ)},
    "loggers": {
        "celery": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
        "uvicorn": {"level": "WARNING"},
    },
}

# Less than the supervisor grants to all of its programs together.
AGENCY: dict[str, object] = {"DRAIN_SECONDS": 2.0}
