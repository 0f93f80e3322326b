"""The command line of `listen`."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.commands.listen.receiver import BadHeaders, BadReceiverUrl, parse_headers, receiver_url


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("localhost:3000/hook", "http://localhost:3000/hook"),
        ("localhost", "http://localhost"),
        ("127.0.0.1:80", "http://127.0.0.1:80"),
        ("[::1]:3000/", "http://[::1]:3000/"),
        ("my-app.test/hook?next=http://x.test/", "http://my-app.test/hook?next=http://x.test/"),
        ("3000", "http://localhost:3000"),
        (":3000/hook", "http://localhost:3000/hook"),
        ("http://localhost:1/", "http://localhost:1/"),
        ("https://x.test/hook", "https://x.test/hook"),
        ("HTTPS://x.test/hook", "HTTPS://x.test/hook"),
    ],
)
def test_a_receiver_without_a_scheme_is_one_of_http(target: str, url: str) -> None:
    assert receiver_url(target) == url


@pytest.mark.parametrize(
    "target", ["", "ftp://x.test/", "local host", "http://", "localhost:port/", "a@b:1", "/hook"]
)
def test_invalid_target_is_refused_with_a_reason(target: str) -> None:
    with pytest.raises(BadReceiverUrl, match=r"\w"):
        receiver_url(target)
    done = CliRunner().invoke(cli, ["listen", "--forward", target])
    assert done.exit_code == 2
    assert "--forward: " in done.output


def test_every_problem_of_every_header_is_named_and_no_value() -> None:
    given = [
        "X-Good: 1",
        "no colon",
        "bad name: s3cret",
        ": s3cret",
        "X-Line: s3cret\n",
        "service-signature: s3cret",
    ]
    given += ["Content-Type: s3cret", "host: s3cret\u00e9"]
    with pytest.raises(BadHeaders) as refused:
        parse_headers(given)
    assert str(refused.value).splitlines() == [
        "Header 2 has no colon; write it as 'Name: value'.",
        "Header 3: 'bad name' is not a header name.",
        "Header 4: '' is not a header name.",
        "Header 5: the value of 'X-Line' must be printable ASCII.",
        "Header 6: service-signature is set by the service and can't be changed.",
        "Header 7: Content-Type is set by the service and can't be changed.",
        "Header 8: host belongs to the connection and can't be set.",
        "Header 8: the value of 'host' must be printable ASCII.",
    ]
    options = [word for each in given for word in ("--header", each)]
    done = CliRunner().invoke(cli, ["listen", "--forward", "localhost:1", *options])
    assert done.exit_code == 2
    assert all(line in done.output for line in str(refused.value).splitlines())


def test_every_type_that_the_feed_never_has_is_named_with_its_reason() -> None:
    done = CliRunner().invoke(
        cli, ["listen", "--events", "ticket.created,ticket.lost,note.created,agent.typing.started"]
    )
    assert done.exit_code == 2
    assert "no stored event type 'ticket.lost'" in " ".join(done.output.split())
    assert "note.created is sent by webhook only" in " ".join(done.output.split())
    assert "'agent.typing.started'" in done.output
    assert "'ticket.created'" not in done.output


@pytest.mark.parametrize("options", [("--secret", "whsec_1"), ("-H", "X-A: 1")])
def test_options_for_a_receiver_are_refused_without_one(options: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, ["listen", *options])
    assert done.exit_code == 2
    assert "no effect without --forward" in done.output
