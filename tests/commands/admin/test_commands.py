"""The operator's commands on a data directory that no server has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.secret import Secrets
from deskwire.storage.sqlite.database import DirectoryLock
from tests.commands.admin.conftest import Deskwire, good, listed

PASSWORD = "a long enough password"


@pytest.fixture
def shop(deskwire: Deskwire) -> Deskwire:
    """Return commands on a directory with an organisation, a project and its owner."""
    good(deskwire("org", "create", "Acme"))
    good(deskwire("project", "create", "Shop"))
    good(
        deskwire(
            "user", "create", "ada@example.com", "--role", "owner", "--password-stdin", input=f"{PASSWORD}\n"
        )
    )
    return deskwire


def test_created_ids_go_to_stdout_alone_and_messages_to_stderr(deskwire: Deskwire) -> None:
    made = deskwire("org", "create", "Acme")
    assert re.fullmatch(r"org_\w{26}\n", made.stdout)
    assert made.stderr == "The organisation Acme was created.\n"
    assert re.fullmatch(r"prj_\w{26}\n", deskwire("project", "create", "Shop").stdout)


def test_missing_directory_is_made_by_the_first_organisation_only(deskwire: Deskwire, tmp_path: Path) -> None:
    refused = deskwire("user", "list")
    assert refused.exit_code == 1
    assert "deskwire org create" in refused.stderr
    assert not (tmp_path / "data").exists()
    good(deskwire("org", "create", "Acme"))
    assert good(deskwire("user", "list")) == ""


def test_lists_are_tables_or_json(shop: Deskwire) -> None:
    for command, word in (("org", "Acme"), ("project", "Shop"), ("user", "ada@example.com")):
        assert word in good(shop(command, "list"))
        (item,) = listed(shop(command, "list", "--json"))
        assert word in (item.get("name"), item.get("email"))
    (user,) = listed(shop("user", "list", "--json", "--org", "Acme"))
    assert [(each["name"], each["role"]) for each in user["memberships"]] == [("Acme", "owner")]


def test_machine_credential_is_made_rotated_and_revoked_and_each_secret_printed_once(
    shop: Deskwire, tmp_path: Path
) -> None:
    allowed = ("--permission", "tickets.read", "--permission", "surveys.read")
    secret = good(shop("credential", "create", "CRM", *allowed, "--expires-at", "2999-01-31T00:00:00Z"))
    assert re.fullmatch(r"mk_\w{43}", secret)
    (kept,) = listed(shop("credential", "list", "--json"))
    assert (kept["name"], kept["permissions"]) == ("CRM", ["surveys.read", "tickets.read"])
    operator = {"type": "operator", "id": None, "state": "active"}
    assert (kept["secret"], kept["createdBy"]) == (f"mk_…{secret[-4:]}", operator)
    assert kept["expiresAt"] == "2999-01-31T00:00:00.000Z"
    rotated = good(shop("credential", "rotate", kept["id"], "--overlap", "60"))
    (after,) = listed(shop("credential", "list", "--json"))
    assert (after["secret"], rotated != secret) == (f"mk_…{rotated[-4:]}", True)
    assert after["previousExpiresAt"] is not None
    good(shop("credential", "revoke", kept["id"]))
    (gone,) = listed(shop("credential", "list", "--json"))
    assert gone["revokedAt"] is not None
    assert "has been revoked" in shop("credential", "rotate", kept["id"]).stderr
    assert "--permission (number 1): " in shop("credential", "create", "X", "--permission", "all").stderr
    assert "in the future" in shop("credential", "create", "X", "--expires-at", "2020-01-01T00:00:00Z").stderr
    for each in (secret, rotated):
        assert each not in shop("credential", "list").output
        assert all(each.encode() not in path.read_bytes() for path in (tmp_path / "data").iterdir())


def test_a_key_is_printed_once_and_masked_ever_after(shop: Deskwire, tmp_path: Path) -> None:
    key = good(shop("key", "create", "--label", "backend"))
    assert re.fullmatch(r"sk_\w{43}", key)
    (kept,) = listed(shop("key", "list", "--json"))
    assert (kept["label"], kept["key"]) == ("backend", f"sk_…{key[-4:]}")
    good(shop("key", "revoke", kept["id"]))
    (gone,) = listed(shop("key", "list", "--json"))
    assert gone["revokedAt"] is not None
    assert key not in shop("key", "list").output
    assert all(key.encode() not in path.read_bytes() for path in (tmp_path / "data").iterdir())


def test_a_one_time_password_is_printed_once_and_a_given_one_never(shop: Deskwire) -> None:
    one_time = good(shop("user", "create", "bob@example.com", "--role", "agent", "--one-time"))
    assert len(one_time) > 12
    again = good(shop("user", "password", "bob@example.com", "--one-time"))
    assert again not in ("", one_time)
    given = shop("user", "password", "bob@example.com", "--password-stdin", input=f"{PASSWORD}\n")
    assert (given.exit_code, given.stdout) == (0, "")
    assert PASSWORD not in given.output


def test_a_password_is_asked_for_only_on_a_terminal(shop: Deskwire) -> None:
    refused = shop("user", "create", "bob@example.com")
    assert refused.exit_code == 2
    assert "--password-stdin" in refused.stderr
    assert "--password " not in shop("user", "create", "--help").output


def test_a_password_that_is_too_short_is_refused_without_being_repeated(shop: Deskwire) -> None:
    refused = shop("user", "create", "bob@example.com", "--password-stdin", input="hunter2\n")
    assert refused.exit_code == 1
    assert "password: " in refused.stderr
    assert "/password" not in refused.stderr
    assert "hunter2" not in refused.output


@pytest.mark.parametrize("weak", ["Password123!", "bob@example.com1"])
def test_a_password_that_is_easy_to_guess_is_refused_without_being_repeated(
    shop: Deskwire, weak: str
) -> None:
    good(shop("user", "create", "bob@example.com", "--one-time"))
    for command in (
        ("create", "bobby@example.com", "--name", "bob@example.com"),
        ("password", "bob@example.com"),
    ):
        refused = shop("user", *command, "--password-stdin", input=f"{weak}\n")
        assert refused.exit_code == 1
        assert "easy to guess" in refused.stderr
        assert weak not in refused.output


def test_token_is_valid_for_its_user_and_lifetime(shop: Deskwire, tmp_path: Path) -> None:
    token = good(shop("token", "create", "--user", "ada@example.com", "--ttl", "60"))
    (user,) = listed(shop("user", "list", "--json"))
    tokens = Tokens(Secrets.read((tmp_path / "data" / "secret").read_text()))
    assert tokens.identity(token).value == user["id"]
    whole = listed(shop("token", "create", "--user", user["id"], "--json"))
    assert whole.keys() == {"id", "token", "userId", "expiresAt"}
    assert tokens.identity(whole["token"]).token == whole["id"]


def test_tokens_are_listed_without_themselves_and_ended_one_by_one(shop: Deskwire) -> None:
    first = listed(shop("token", "create", "--user", "ada@example.com", "--json"))
    second = listed(shop("token", "create", "--user", "ada@example.com", "--json"))
    table = good(shop("token", "list", "--user", "ada@example.com"))
    assert first["id"] in table
    assert first["token"] not in table
    items = listed(shop("token", "list", "--user", first["userId"], "--json"))
    assert [each["id"] for each in items] == [second["id"], first["id"]]
    assert {each["source"] for each in items} == {"operator"}
    assert listed(shop("token", "end", first["id"], "--json")) == {
        "id": first["id"],
        "userId": first["userId"],
        "ended": True,
    }
    good(shop("token", "end", first["id"]))  # ended already, it stays so
    (left,) = listed(shop("token", "list", "--user", "ada@example.com", "--json"))
    assert left["id"] == second["id"]
    record = listed(shop("audit", "list", "--action", "token.ended", "--json"))
    assert (record["actor"]["type"], record["details"]) == ("operator", {"token": first["id"]})


def test_ending_an_invalid_token_is_refused(shop: Deskwire) -> None:
    refused = shop("token", "end", "tok_01JC4T2V9QZ6D3M8W5N7R1XKPH")
    assert (refused.exit_code, "There is no such access token" in refused.stderr) == (1, True)
    assert shop("token", "list", "--user", "nobody@example.com").exit_code == 1


def test_installation_without_own_tokens_issues_none(shop: Deskwire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKWIRE_OWN_TOKENS", "false")
    monkeypatch.setenv("DESKWIRE_JWT_JWKS_URL", "https://provider.test/jwks.json")
    refused = shop("token", "create", "--user", "ada@example.com")
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_members_come_change_and_go_but_the_last_owner(shop: Deskwire) -> None:
    good(shop("user", "create", "bob@example.com", "--one-time"))
    assert "agent" in good(shop("user", "add", "bob@example.com", "--role", "agent"))
    assert "already" in shop("user", "add", "bob@example.com", "--role", "agent").stderr
    for refused in (
        shop("user", "role", "ada@example.com", "--role", "viewer"),
        shop("user", "remove", "ada@example.com"),
    ):
        assert refused.exit_code == 1
        assert "last owner" in refused.stderr
    good(shop("user", "role", "bob@example.com", "--role", "owner"))
    good(shop("user", "remove", "ada@example.com"))
    assert [each["email"] for each in listed(shop("user", "list", "--org", "Acme", "--json"))] == [
        "bob@example.com"
    ]


def test_settings_of_a_project_are_changed_and_shown(shop: Deskwire) -> None:
    options = ("--no-memory", "--archived-days", "never", "--languages", "de,en", "--primary-language", "DE")
    changed = listed(shop("project", "set", *options, "--upload-quota", "5", "--name", "Bank", "--json"))
    assert changed["settings"] == {
        "memoryEnabled": False,
        "archivedRetentionDays": None,
        "primaryLanguage": "de",
        "languages": ["de", "en"],
        "uploadQuotaBytes": 5,
    }
    assert listed(shop("project", "show", "Bank", "--json")) == changed
    assert "never deleted" in good(shop("project", "show", changed["id"]))
    refused = shop("project", "set", "--languages", "fr,x_y", "--archived-days", "0")
    assert refused.exit_code == 1
    assert "--archived-days: " in refused.stderr
    assert "/" not in refused.stderr
    assert "--languages (number 2): " in shop("project", "set", "--languages", "fr,x_y").stderr
    assert shop("project", "set").exit_code == 2


def test_deleted_user_is_no_longer_listed_and_the_last_owner_stays(shop: Deskwire) -> None:
    made = good(shop("user", "create", "bob@example.com", "--role", "agent", "--one-time", "--json"))
    unasked = shop("user", "delete", "bob@example.com")
    assert (unasked.exit_code, "Acme (agent)" in unasked.stderr, "--yes" in unasked.stderr) == (2, True, True)
    deleted = shop("user", "delete", "bob@example.com", "--yes")
    assert good(deleted) in made
    assert deleted.stderr == "The user bob@example.com has been deleted.\n"
    assert [item["email"] for item in listed(shop("user", "list", "--json"))] == ["ada@example.com"]
    assert shop("user", "delete", "bob@example.com", "--yes").exit_code == 1
    refused = shop("user", "delete", "ada@example.com", "--yes")
    assert (refused.exit_code, "last owner" in refused.stderr) == (1, True)


def test_which_one_is_meant_must_be_clear(shop: Deskwire) -> None:
    second = good(shop("org", "create", "Acme"))
    for command in (("project", "create", "Bank"), ("project", "create", "Bank", "--org", "Acme")):
        refused = shop(*command)
        assert refused.exit_code == 1
    assert second in refused.stderr
    good(shop("org", "rename", second, "Other"))
    good(shop("project", "create", "Bank", "--org", "Other"))
    assert "--project" in shop("key", "create").stderr
    assert "no project Nowhere" in shop("key", "create", "--project", "Nowhere").stderr


def test_a_name_cannot_reach_for_the_terminal(shop: Deskwire) -> None:
    assert shop("org", "create", "\x1b[2Jgone").exit_code == 1
    good(shop("org", "create", "[red]Acme[/red]"))
    assert "[red]Acme[/red]" in good(shop("org", "list"))


def test_bad_settings_are_refused_as_by_serve(shop: Deskwire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKWIRE_PROT", "1")
    refused = shop("org", "list")
    assert refused.exit_code == 2
    assert "DESKWIRE_PROT" in refused.stderr


def test_directory_whose_holder_does_not_answer_times_out(
    shop: Deskwire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deskwire.commands.admin.local_backend.DIRECTORY_TIMEOUT_S", 0.3)
    lock = DirectoryLock(tmp_path / "data")
    try:
        refused = shop("org", "rename", "Acme", "Other")
        assert "Acme" in good(shop("org", "list")), "to look takes no lock"
    finally:
        lock.release()
    assert refused.exit_code == 1
    assert "in use by a Deskwire command" in refused.stderr
    good(shop("org", "rename", "Acme", "Other"))


@pytest.fixture
def two(shop: Deskwire) -> Deskwire:
    """Return commands on a directory with a second organisation, and bob, who was made for the first."""
    good(shop("org", "create", "Other"))
    making = ("user", "create", "bob@example.com", "--org", "Acme", "--role", "agent", "--password-stdin")
    good(shop(*making, input=f"{PASSWORD}\n"))
    return shop


ADDING = ("user", "add", "bob@example.com", "--org", "Other", "--role", "agent")


def memberships(deskwire: Deskwire) -> list[str]:
    """Return the names of bob's organisations."""
    (bob,) = [
        each for each in listed(deskwire("user", "list", "--json")) if each["email"] == "bob@example.com"
    ]
    return [each["name"] for each in bob["memberships"]]


def test_an_account_of_another_organisation_is_not_added_unasked(two: Deskwire) -> None:
    refused = two(*ADDING)
    assert refused.exit_code == 1
    for word in ("Acme", "--yes", "--keep-password"):
        assert word in refused.stderr
    assert memberships(two) == ["Acme"]
    assert two(*ADDING, "--yes", "--keep-password").exit_code == 2


def test_an_account_of_another_organisation_is_added_with_a_new_password(two: Deskwire) -> None:
    added = two(*ADDING, "--yes")
    assert re.fullmatch(r"\w{12,}\n", added.stdout)
    assert "owner of the address" in added.stderr
    assert memberships(two) == ["Acme", "Other"]


def test_operator_can_leave_the_password_unchanged(two: Deskwire) -> None:
    shown = good(two(*ADDING, "--keep-password", "--json"))
    assert "password" not in shown
    assert memberships(two) == ["Acme", "Other"]


@pytest.mark.parametrize(("typed", "organisations"), [("y\n", ["Acme", "Other"]), ("n\n", ["Acme"])])
def test_command_asks_on_a_terminal(
    two: Deskwire, monkeypatch: pytest.MonkeyPatch, typed: str, organisations: list[str]
) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    answer = two(*ADDING, input=typed)
    assert "Continue?" in answer.stderr
    assert memberships(two) == organisations
    assert (len(answer.stdout.strip()) > 10) == (len(organisations) == 2)


def test_account_with_this_home_or_none_is_added_without_a_question(two: Deskwire) -> None:
    good(two("user", "create", "eve@example.com", "--one-time"))
    assert "agent" in good(two("user", "add", "eve@example.com", "--org", "Other", "--role", "agent"))
    good(two("user", "remove", "bob@example.com", "--org", "Acme"))
    assert "agent" in good(two("user", "add", "bob@example.com", "--org", "Acme", "--role", "agent"))
