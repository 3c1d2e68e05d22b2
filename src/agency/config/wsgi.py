"""WSGI entry of the ready project, for servers that speak no ASGI."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.config.settings")

application = get_wsgi_application()
