"""ASGI entry of the ready project: HTTP and sockets."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.config.settings")


def _application() -> Any:
    http = get_asgi_application()
    # Models are known only now.
    from channels.routing import ProtocolTypeRouter, URLRouter

    from agency.ws.routing import others, websocket_urlpatterns

    return ProtocolTypeRouter({"http": http, "websocket": URLRouter([*websocket_urlpatterns, others])})


application = _application()
