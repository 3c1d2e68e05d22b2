"""ASGI entry of the ready project."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.config.settings")

application = get_asgi_application()
