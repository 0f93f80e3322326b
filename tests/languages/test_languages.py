"""The desk's languages: the modules are those of the Fluent files, and the languages that are complete lack nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.languages.compile import (
    COMPLETE,
    DESK,
    ENGLISH,
    INDEX,
    Language,
    compiled,
    missing_in,
    problems_of,
    read_language,
    write,
)
from tests.languages.messages import Choice, Message, Pattern, Unusable, path_of, read_messages
from tests.languages.pseudo import accented, desk_with_pseudo

PLURALS = {"en": {"one", "other"}, "de": {"one", "other"}, "pl": {"one", "few", "many", "other"}}
"""The plural categories of languages (Unicode CLDR 48, cardinal numbers)."""


def language(tag: str) -> Language:
    return read_language(DESK / "languages" / tag)


def folder_with(tmp_path: Path, **languages: str) -> Path:
    """Make a desk with one part, `core/texts`, in these languages; `_` in a tag stands for a hyphen."""
    for tag, source in languages.items():
        folder = tmp_path / "languages" / tag.replace("_", "-")
        (folder / "core").mkdir(parents=True)
        (folder / "language.ftl").write_text(f"name = {tag}\nown-name = {tag}\ndirection = ltr\n")
        (folder / "core/texts.ftl").write_text(source)
    (tmp_path / "core").mkdir()
    shutil.copy(DESK / "core/text-forms.js", tmp_path / "core")
    return tmp_path


def choices(pattern: Pattern) -> list[Choice]:
    own = [each for each in pattern if isinstance(each, Choice)]
    return own + [inner for each in own for _, variant in each.variants for inner in choices(variant)]


def test_modules_are_those_of_the_fluent_files() -> None:
    for path, text in compiled(DESK).items():
        assert (DESK / path).read_text() == text, f"{path} is out of date: run `make languages`."


def test_no_module_of_a_language_is_left_without_its_fluent_file() -> None:
    modules = {each.relative_to(DESK).as_posix() for each in (DESK / "languages").glob("*/**/*.js")}
    assert modules <= set(compiled(DESK))


@pytest.mark.parametrize("tag", COMPLETE)
def test_languages_of_the_service_are_complete(tag: str) -> None:
    assert missing_in(language(tag), language(ENGLISH)) == {}


@pytest.mark.parametrize("tag", sorted(json.loads((DESK / INDEX).read_text())))
def test_every_language_has_the_variables_of_english(tag: str) -> None:
    assert list(problems_of(language(tag), language(ENGLISH))) == []


@pytest.mark.parametrize("tag", COMPLETE)
def test_plurals_have_all_forms_of_their_language(tag: str) -> None:
    lacking = [
        f"{part}: {key}"
        for part, messages in language(tag).parts.items()
        for key, message in messages.items()
        for each in choices(message.pattern)
        if each.is_plural and not {k for k in each.keys if not k.isdigit()} >= needed(each, tag)
    ]
    assert lacking == []


def needed(choice: Choice, tag: str) -> set[str]:
    """The forms that a choice needs: all of the language, unless it only tells one number from the others."""
    return {"other"} if any(key.isdigit() for key in choice.keys) else PLURALS[tag]


def test_path_of_a_text_follows_from_its_name() -> None:
    assert path_of("list-empty-mine") == ["list", "empty", "mine"]
    assert path_of("names-first--response") == ["names", "first-response"]
    assert path_of("actions-sign_in__failed") == ["actions", "sign_in.failed"]
    assert path_of("sorts-_") == ["sorts", ""]


def test_a_text_that_a_language_lacks_is_in_english_and_reported(tmp_path: Path) -> None:
    desk = folder_with(
        tmp_path,
        en="hello = Hello\nleft = { $n ->\n    [one] { $n } is left\n   *[other] { $n } are left\n}\n",
        pl="left = { $n ->\n    [one] { $n } a\n    [few] { $n } b\n    [many] { $n } c\n   *[other] { $n } d\n}\n",
    )
    report = write(desk)
    assert report == ["en en: 2 of 2 texts", "pl pl: 1 of 2 texts", "  core/texts.ftl lacks hello"]
    text = (desk / "languages/pl/core/texts.js").read_text()
    assert 'hello: "Hello"' in text
    assert (
        "plural(n, { one: `${number(n)} a`, few: `${number(n)} b`, many: `${number(n)} c`, other: `${number(n)} d` })"
        in text
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_plurals_of_the_first_view_have_their_forms(tmp_path: Path) -> None:
    desk = folder_with(
        tmp_path,
        en="left = { $n ->\n    [one] { $n } is left\n   *[other] { $n } are left\n}\n",
        pl="left = { $n ->\n    [one] { $n } a\n    [few] { $n } b\n    [many] { $n } c\n   *[other] { $n } d\n}\n",
    )
    write(desk)
    (desk / "package.json").write_text('{"type": "module"}')
    module = desk / "languages/pl/core/texts.js"
    script = f'import {{ t }} from "{module.as_uri()}"; console.log([1, 3, 5].map(t.left).join())'
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], check=False, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("1 a,3 b,5 c\n", "")


def test_a_language_without_texts_has_its_plurals_and_numbers(tmp_path: Path) -> None:
    desk = folder_with(tmp_path, en="hello = Hello\n", pl="")
    (desk / "languages/pl/core/texts.ftl").unlink()
    assert write(desk)[1:] == ["pl pl: 0 of 1 texts", "  core/texts.ftl lacks hello"]
    text = (desk / "languages/pl/core/texts.js").read_text()
    assert 'language = "pl"' in text
    assert 'hello: "Hello"' in text


def test_files_that_lost_their_language_are_removed(tmp_path: Path) -> None:
    desk = folder_with(tmp_path, en="hello = Hello\n", pl="hello = Hej\n")
    write(desk)
    shutil.rmtree(desk / "languages/pl/core")
    (desk / "languages/pl/language.ftl").unlink()
    left = desk / "languages/pl/ui/old.js"
    left.parent.mkdir()
    left.touch()
    write(desk)
    assert not left.exists()
    assert json.loads((desk / INDEX).read_text()).keys() == {"en"}


@pytest.mark.parametrize(
    ("german", "problem"),
    [
        ("hi = Hallo\n", "de/core/texts.ftl: hi uses no variables, and has to use $name."),
        ("hi = Hallo { $nmae }\n", "de/core/texts.ftl: hi uses $nmae, and has to use $name."),
        ("hi = { $name }{ NUMBER($name) }\n", "de/core/texts.ftl: hi takes $name for a number."),
        ("ho = Hallo\n", "de/core/texts.ftl: ho is not in English."),
        ("hi = Hallo { $name\n", 'de/core/texts.ftl: Expected token: "}": hi = Hallo { $name'),
        ("hi = { $name }\nhi = { $name }\n", "de/core/texts.ftl: hi occurs twice."),
        (
            "hi = { DATETIME($name) }\n",
            "de/core/texts.ftl: hi: DATETIME() is neither NUMBER($variable) nor LOWER($variable).",
        ),
    ],
)
def test_a_wrong_text_is_refused_with_its_problem(tmp_path: Path, german: str, problem: str) -> None:
    desk = folder_with(tmp_path, en="hi = Hello { $name }\n", de=german)
    with pytest.raises(Unusable) as refused:
        compiled(desk)
    assert refused.value.problems == (problem,)


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    desk = folder_with(tmp_path, en="a = A\nb = { $n }\n", de="a = { $x }\nb = B\n", fr="c = C\n")
    with pytest.raises(Unusable) as refused:
        compiled(desk)
    assert len(refused.value.problems) == 3


def test_texts_with_signs_of_javascript_stay_texts(tmp_path: Path) -> None:
    desk = folder_with(tmp_path, en='a = { $n }: `${"{"}alert(1){"}"}` \\ "quoted"\nb = "\\ `\n')
    text = compiled(desk)["core/texts.js"]
    assert r"`${n}: \`\${alert(1)}\` \\ " in text
    assert r'b: "\"\\ `"' in text


def test_variables_keep_the_order_of_the_english_comment(tmp_path: Path) -> None:
    desk = folder_with(
        tmp_path,
        en="# $who, $n (number)\na = { $n } for { $who }\n",
        de="a = { $who } hat { $n }\n",
    )
    files = compiled(desk)
    assert "a: (/** @type {string} */ who, /** @type {number} */ n) =>" in files["core/texts.js"]
    assert "a: (who, n) => `${who} hat ${number(n)}`" in files["languages/de/core/texts.js"]


def test_a_list_of_texts_is_one_function(tmp_path: Path) -> None:
    source = "loses-1 = { $name }\nloses-2 = All of it\nstays-1 = One\n"
    text = compiled(folder_with(tmp_path, en=source))["core/texts.js"]
    assert 'loses: (/** @type {string} */ name) => [name, "All of it"],' in text
    assert 'stays: ["One"],' in text


def test_language_of_the_tests_is_longer_and_complete(tmp_path: Path) -> None:
    desk = desk_with_pseudo(tmp_path)
    pseudo, english = read_language(desk / "languages/en-XB"), language(ENGLISH)
    assert missing_in(pseudo, english) == {}
    assert list(problems_of(pseudo, english)) == []
    assert json.loads((desk / INDEX).read_text())["en-XB"]["direction"] == "rtl"
    plain = "Conversations show up here when they match its filter."
    assert 1.25 < len(accented(plain)) / len(plain) < 1.5


def test_a_file_with_only_comments_has_no_texts(tmp_path: Path) -> None:
    file = tmp_path / "a.ftl"
    file.write_text("### About\n\n## Group\n\n# $n\n")
    assert read_messages(file, "a.ftl") == dict[str, Message]()
