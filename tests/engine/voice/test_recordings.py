"""Durations of recordings follow their audio, whatever their headers contain."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest

from deskwire.engine.core.errors import Invalid
from deskwire.engine.uploads.audio import parse_frame
from deskwire.engine.uploads.file_type import sniff
from deskwire.engine.voice.reply import check_length

RATE = 16_000
SECOND = bytes(RATE * 2)
PCM = struct.pack("<HHIIHH", 1, 1, RATE, RATE * 2, 2, 16)
MAX = 0xFFFFFFFF


def chunk(name: bytes, body: bytes, size: int | None = None, *, filled: bool = True) -> bytes:
    padding = b"\0" * (len(body) % 2) if filled else b""
    return name + struct.pack("<I", len(body) if size is None else size) + body + padding


def riff(*chunks: bytes, size: int | None = None, form: bytes = b"RIFF") -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return form + struct.pack("<I", len(body) if size is None else size) + body


FORMAT = chunk(b"fmt ", PCM)
EXTENSIBLE = chunk(
    b"fmt ", struct.pack("<HHIIHHHHIH", 0xFFFE, 1, RATE, RATE * 2, 2, 16, 22, 16, 4, 1) + bytes(14)
)
LIST = chunk(b"LIST", b"INFOISFT\x0e\0\0\0Lavf60.16.100\0")
BROADCAST = chunk(b"bext", bytes(602))
SIZES_64 = chunk(b"ds64", struct.pack("<QQQI", 36 + len(SECOND), len(SECOND), RATE, 0))

ONE_SECOND = {
    "as it should be": riff(FORMAT, chunk(b"data", SECOND)),
    "ffmpeg to a pipe": riff(FORMAT, LIST, chunk(b"data", SECOND, MAX), size=MAX),
    "SoX to a pipe": riff(FORMAT, chunk(b"data", SECOND, 0x7FFFFFFF - 36), size=0x7FFFFFFF),
    "a telephone switch": riff(FORMAT, chunk(b"data", SECOND, 0x7FFFFFFF), size=0x7FFFFFFF + 36),
    "text to speech": riff(FORMAT, chunk(b"data", SECOND, 2_000_000_000), size=2_000_000_036),
    "a recorder that was killed": riff(FORMAT, chunk(b"data", SECOND, 0), size=0),
    "a recorder that wrote its header early": riff(FORMAT, chunk(b"data", SECOND, 4_096), size=4_132),
    "a download that was cut off": riff(FORMAT, chunk(b"data", SECOND * 3, len(SECOND) * 9))[
        : 44 + len(SECOND)
    ],
    "chunks around it": riff(BROADCAST, FORMAT, LIST, chunk(b"data", SECOND), LIST, chunk(b"odd ", b"abc")),
    "a last chunk that is not filled up": riff(
        FORMAT, chunk(b"data", SECOND), chunk(b"odd ", b"abc", filled=False)
    ),
    "extensible": riff(EXTENSIBLE, chunk(b"data", SECOND)),
    "extensible to a pipe": riff(EXTENSIBLE, chunk(b"data", SECOND, MAX), size=MAX),
    "RF64": riff(SIZES_64, FORMAT, chunk(b"data", SECOND, MAX), LIST, size=MAX, form=b"RF64"),
    "RF64 to a pipe": riff(
        chunk(b"ds64", bytes(28)), FORMAT, chunk(b"data", SECOND, MAX), size=MAX, form=b"RF64"
    ),
    "BW64": riff(SIZES_64, FORMAT, chunk(b"data", SECOND, MAX), size=MAX, form=b"BW64"),
    "A-law": riff(
        chunk(b"fmt ", struct.pack("<HHIIHH", 6, 1, 8_000, 8_000, 1, 8)), chunk(b"data", bytes(8_000), 0)
    ),
    "24 bits in stereo": riff(
        chunk(b"fmt ", struct.pack("<HHIIHH", 1, 2, RATE, RATE * 6, 6, 24)),
        chunk(b"data", bytes(RATE * 6), MAX),
    ),
    "a lie about the bytes of a second": riff(
        chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, 1 << 31, 2, 16)), chunk(b"data", SECOND)
    ),
    "ADPCM": riff(
        chunk(b"fmt ", struct.pack("<HHIIHHH", 0x11, 1, 8_000, 4_064, 256, 4, 2)),
        chunk(b"data", bytes(4_064), MAX),
    ),
}


def seconds(content: bytes, form: str) -> float:
    """Return a recording's duration as `check_length` measures it, to 0.01 s."""
    low, high = 0, 1 << 20
    check_length(content, form, high / 100)
    while low < high:
        middle = (low + high) // 2
        try:
            check_length(content, form, middle / 100)
            high = middle
        except Invalid:
            low = middle + 1
    return low / 100


@pytest.mark.parametrize("name", ONE_SECOND)
def test_wav_file_lasts_as_long_as_its_sound(name: str) -> None:
    assert sniff(ONE_SECOND[name]) == "audio/wav"
    assert seconds(ONE_SECOND[name], "wav") == 1.0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"RIFF\x24\0\0\0WAVEfmt ",
        riff(FORMAT),
        riff(FORMAT, chunk(b"data", b"")),
        riff(FORMAT, chunk(b"data", b""), LIST),
        riff(chunk(b"data", SECOND)),
        riff(chunk(b"fmt ", bytes(16)), chunk(b"data", SECOND)),
        riff(*[chunk(b"junk", b"")] * 200_000, FORMAT, chunk(b"data", SECOND)),
        b"RIFX" + riff(FORMAT, chunk(b"data", SECOND))[4:],
    ],
)
def test_wav_file_without_sound_is_unreadable(content: bytes) -> None:
    with pytest.raises(Invalid) as refusal:
        check_length(content, "wav", 300)
    assert refusal.value.problems[0].code == "audio_unreadable"


def frames(*headers: str, times: int = 1) -> bytes:
    """Return silent frames with these headers, repeated."""
    return b"".join(_frame(bytes.fromhex(header)) for header in headers) * times


def _frame(header: bytes) -> bytes:
    known = parse_frame(header)
    assert known is not None
    return header + bytes(known.length - 4)


def speech(number: int) -> Iterator[str]:
    """Yield headers with a variable bit rate.

    100 silent frames at 32 kbit/s come first, then others.
    """
    chosen = random.Random(5)
    for each in range(number):
        bits = 1 if each < 100 else chosen.randint(5, 14)
        yield f"fffb{bits << 4:02x}64"


FRAME_S = 1152 / 44_100
TAG = b"ID3\x04\0\0\0\0\x07\x76" + bytes(1014)
SUMMARY = bytes.fromhex("fffb9064") + bytes(32) + b"Xing\0\0\0\x01\0\0\0\x02" + bytes(417 - 48)

RECORDINGS = {
    "constant": (frames("fffb9064", times=100), 100 * FRAME_S),
    "varying, after silence, without a summary": (frames(*speech(2_297)), 2_297 * FRAME_S),
    "a summary that is wrong": (SUMMARY + frames("fffb9064", "fffbb064", times=50), 100 * FRAME_S),
    "a tag before and after": (TAG + frames("fffb9064", times=50) + b"TAG" + bytes(125), 50 * FRAME_S),
    "two tags before": (TAG * 2 + frames("fffb9064", times=50), 50 * FRAME_S),
    "the end cut off": (frames("fffb9064", times=50)[:-200], 50 * FRAME_S),
    "a gap of other bytes": (
        frames("fffb9064", times=20) + b"\xff\xfb\xff" * 50 + frames("fffb9064", times=20),
        40 * FRAME_S,
    ),
    "the begin missing": (bytes(77) + frames("fffb9064", times=20), 20 * FRAME_S),
    "MPEG-2, 22,050 Hz": (frames("fff38064", times=100), 100 * 576 / 22_050),
    "MPEG-2.5, 8,000 Hz": (frames("ffe31868", times=100), 100 * 576 / 8_000),
    "with checksums": (frames("fffa9064", times=100), 100 * FRAME_S),
    "layer II": (frames("fffd8064", times=100), 100 * FRAME_S),
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_mp3_file_lasts_as_long_as_its_frames(name: str) -> None:
    content, expected = RECORDINGS[name]
    if name != "the begin missing":
        assert sniff(content) == "audio/mpeg"
    assert seconds(content, "mp3") == pytest.approx(expected, abs=0.011)


@pytest.mark.parametrize(
    "content", [b"", TAG, b"no recording " * 1_000, b"\xff\xfb\x90\x00" * 500_000, b"\xff" * 2_000_000]
)
def test_mp3_file_without_frames_is_unreadable(content: bytes) -> None:
    with pytest.raises(Invalid) as refusal:
        check_length(content, "mp3", 300)
    assert refusal.value.problems[0].code == "audio_unreadable"
