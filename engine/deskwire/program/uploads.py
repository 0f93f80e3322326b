"""Uploads, voice replies and the model, put together from the settings."""

from __future__ import annotations

from deskwire.config.settings import Config
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.secret import Secrets
from deskwire.engine.llm.chat import OpenAiChat
from deskwire.engine.llm.port import ChatModel
from deskwire.engine.ports import Store
from deskwire.engine.uploads.links import Links
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.voice.reply import Voice
from deskwire.http.api.routing import BASE
from deskwire.storage.database import DataDirectoryError
from deskwire.storage.files import DiskFiles


async def open_shelf(config: Config, store: Store, secrets: Secrets, url: str) -> UploadService:
    """The uploads, ready to take some.

    Args:
        secrets: the installation's.
        url: what clients reach the service by.

    Raises DataDirectoryError if their folder can't be used.
    """
    shelf = UploadService(
        store,
        DiskFiles(config.data_dir),
        wall_clock,
        Links(secrets.keys("uploads"), f"{url}{BASE}/uploads", lifetime_s=config.upload_url_s),
        limit=config.upload_limit_bytes,
        unattached_s=config.upload_unattached_s,
    )
    try:
        await shelf.clear()
    except Unavailable as error:
        raise DataDirectoryError(f"The folder of the uploads can't be used. {error}") from error
    return shelf


def voice(config: Config, store: Store, shelf: UploadService) -> Voice:
    """What makes voice replies, with a model or without."""
    return Voice(
        store,
        shelf,
        wall_clock,
        model(config),
        audio_bytes=config.voice_audio_bytes,
        audio_s=config.voice_audio_s,
    )


def model(config: Config) -> ChatModel | None:
    """The language model, if one is configured."""
    if config.model_url is None or config.model_name is None:
        return None
    return OpenAiChat(config.model_url, config.model_key, config.model_name, timeout_s=config.model_timeout_s)
