"""The metadata of providers, and roles by claims."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.accounts.identity.oidc.metadata import BadMetadata, checked_metadata, discovery_url
from deskwire.engine.accounts.identity.oidc.role_rules import RoleRule, mapped_role, value_at

ISSUER = "https://idp.test/realm/"
GOOD = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://idp.test/authorize",
    "token_endpoint": "https://tokens.idp.test/token",
    "jwks_uri": "https://idp.test/jwks",
}


def test_final_slash_of_an_issuer_is_left_out_of_the_address_alone() -> None:
    assert discovery_url(ISSUER) == "https://idp.test/realm/.well-known/openid-configuration"
    assert checked_metadata(GOOD, ISSUER).issuer == ISSUER


BAD: list[dict[str, Any]] = [
    {"issuer": "https://idp.test/realm"},
    {"issuer": None},
    {"token_endpoint": "http://idp.test/token"},
    {"token_endpoint": "http://127.0.0.1/token"},
    {"token_endpoint": "file:///etc/passwd"},
    {"token_endpoint": "https://user:password@idp.test/token"},
    {"token_endpoint": "https:///token"},
    {"token_endpoint": "https://[::1/token"},
    {"token_endpoint": "https://idp.test:99999/token"},
    {"token_endpoint": 7},
    {"token_endpoint": None},
    {"jwks_uri": "https://idp.test/j\r\nwks"},
    {"authorization_endpoint": "javascript:alert(1)"},
    {"authorization_endpoint": "https://idp.test/a#b"},
    {"userinfo_endpoint": "ftp://idp.test/"},
    {"token_endpoint_auth_methods_supported": "client_secret_basic"},
]


@pytest.mark.parametrize("changes", BAD, ids=range(len(BAD)))
def test_metadata_with_an_unsafe_value_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadMetadata):
        checked_metadata({**GOOD, **changes}, ISSUER)


def test_issuer_on_this_machine_may_be_plain_http_with_endpoints_there_alone() -> None:
    here = {name: value.replace("https://idp.test", "http://localhost:9") for name, value in GOOD.items()}
    here["token_endpoint"] = "http://127.0.0.1:9/token"
    assert checked_metadata(here, "http://localhost:9/realm/").token_endpoint == "http://127.0.0.1:9/token"
    with pytest.raises(BadMetadata):
        checked_metadata(
            {**here, "token_endpoint": "http://169.254.169.254/token"}, "http://localhost:9/realm/"
        )


@pytest.mark.parametrize(
    ("methods", "by_post"),
    [
        (None, False),
        (["client_secret_post"], True),
        (["client_secret_post", "client_secret_basic"], False),
        ([], False),
    ],
)
def test_secret_goes_into_the_body_only_where_the_header_is_not_supported(
    methods: list[str] | None, by_post: bool
) -> None:
    given = {} if methods is None else {"token_endpoint_auth_methods_supported": methods}
    assert checked_metadata({**GOOD, **given}, ISSUER).token_by_post == by_post


def test_claim_named_like_the_whole_path_comes_first() -> None:
    claims = {"a.b": "whole", "a": {"b": "nested", "c": {"d": ["deep"]}}}
    assert [value_at(claims, path) for path in ("a.b", "a.c.d", "a.x", "a.b.c", "")] == [
        "whole",
        ["deep"],
        None,
        None,
        None,
    ]


RULES = (RoleRule("leads", "admin"), RoleRule("desk", "agent"))


@pytest.mark.parametrize(
    ("found", "role"),
    [
        (["desk", "leads"], "admin"),
        ("desk", "agent"),
        (["Desk", " desk"], None),
        ([{"desk": 1}, 7, None], None),
        ({"desk": True}, None),
        (["x"] * 1_000 + ["desk"], None),
    ],
)
def test_first_rule_that_fits_gives_the_role(found: Any, role: str | None) -> None:
    assert mapped_role({"groups": found}, "groups", RULES) == role
    everyone = (*RULES, RoleRule("*", "viewer"))
    assert mapped_role({"groups": found}, "groups", everyone) == (role or "viewer")
    assert mapped_role({}, None, everyone) == "viewer"
