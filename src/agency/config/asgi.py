"""ASGI entry of the ready project: HTTP and sockets."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.config.settings")

http = get_asgi_application()

# Models are known only now.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from agency.ws.routing import others, websocket_urlpatterns  # noqa: E402

application = ProtocolTypeRouter({"http": http, "websocket": URLRouter([*websocket_urlpatterns, others])})
