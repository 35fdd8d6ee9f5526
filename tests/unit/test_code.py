from __future__ import annotations

from pathlib import Path

import pytest

from userturn import code

STAGES = sorted(p.stem for p in (Path(code.__file__).parent / "stages").glob("[a-z]*.py"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "userturn"
    (root / "sub").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "sub" / "__init__.py").write_text("")
    (root / "sub" / "top.py").write_text(
        "from userturn.sub import near\nimport os\n\ndef f():\n    import userturn.far\n"
    )
    (root / "sub" / "near.py").write_text("from ..other import x\n")
    (root / "far.py").write_text("a = 1\n")
    (root / "other.py").write_text("x = 1\n")
    (root / "alone.py").write_text("y = 1\n")
    monkeypatch.setattr(code, "_ROOT", root)
    code._read_module.cache_clear()
    yield root
    code._read_module.cache_clear()


def digest() -> str:
    code._read_module.cache_clear()
    return code.digest("userturn.sub.top")


def test_imports_are_followed_at_any_depth(package: Path) -> None:
    assert list(code.modules("userturn.sub.top")) == [
        "userturn.far",
        "userturn.other",
        "userturn.sub",
        "userturn.sub.near",
        "userturn.sub.top",
    ]


def test_comments_docstrings_and_layout_do_not_count(package: Path) -> None:
    before = digest()
    (package / "other.py").write_text('"""What."""\n\n# why\nx   =  (1)\n')
    assert digest() == before


@pytest.mark.parametrize("file", ["far.py", "other.py", "sub/near.py", "sub/top.py"])
def test_code_that_is_imported_counts(package: Path, file: str) -> None:
    before = digest()
    with (package / file).open("a") as stream:
        stream.write("changed = 2\n")
    assert digest() != before


def test_other_code_does_not_count(package: Path) -> None:
    before = digest()
    (package / "alone.py").write_text("y = 2\n")
    assert digest() == before


def test_unknown_module() -> None:
    with pytest.raises(ValueError, match=r"no module .userturn\.absent"):
        code.modules("userturn.absent")


def test_the_report_is_behind_no_other_stage() -> None:
    for stage in STAGES:
        found = code.modules(f"userturn.stages.{stage}")
        assert ("userturn.stages.report" in found) == (stage == "report"), stage
        assert any(name.startswith("userturn.report") for name in found) == (stage == "report"), stage


def test_generation_does_not_depend_on_judges_statistics_or_the_study_model() -> None:
    for stage in ("assistant_turns", "user_turns"):
        found = code.modules(f"userturn.stages.{stage}")
        assert "userturn.engine.generation" in found
        unrelated = ("userturn.judges", "userturn.statistics", "userturn.numbers", "userturn.config.study")
        assert [name for name in found if name.startswith(unrelated)] == []


def test_what_was_parsed_is_kept_by_content(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".userturn").mkdir()
    kept = tmp_path / ".userturn" / "code.json"

    def again() -> str:
        code._known.cache_clear()
        return digest()

    try:
        first = again()
        assert kept.is_file()
        monkeypatch.setattr(code.ast, "parse", lambda *_: pytest.fail("nothing is parsed twice"))
        assert again() == first
        monkeypatch.undo()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(code, "_ROOT", package)
        (package / "far.py").write_text("a = 2\n")
        changed = again()
        assert changed != first
        for damage in ("", "[]", "not json", '{"x": 1}', kept.read_text().replace(":[", ":[1,")):
            kept.write_text(damage)
            assert again() == changed
    finally:
        code._known.cache_clear()
