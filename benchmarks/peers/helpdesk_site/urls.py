"""The pages and the API of django-helpdesk at the root, where its documentation puts them."""

from __future__ import annotations

from typing import Final

from django.urls import include, path

urlpatterns: Final = [path("", include("helpdesk.urls", namespace="helpdesk"))]
