from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from userturn.artefacts import ArtefactError, canonical, read_jsonl, write_jsonl
from userturn.files import atomic_file

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=5)


@given(rows=ROWS)
def test_rows_come_back_and_give_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, rows: list[dict]) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    write_jsonl(path, rows)
    first = path.read_bytes()
    back = read_jsonl(path)
    assert back == rows
    write_jsonl(path, [dict(reversed(row.items())) for row in back])
    assert path.read_bytes() == first


def test_golden_bytes(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "rows.jsonl"
    write_jsonl(path, [{"b": "é\u2028\n", "a": [1, 1.0, None, True]}])
    assert path.read_bytes() == '{"a":[1,1.0,null,true],"b":"é\u2028\\n"}\n'.encode()
    assert path.stat().st_mode & 0o777 == 0o644


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"value": float("nan")})


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), atomic_file(path) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a":1}\n{"a":\n', r"rows\.jsonl:2: not a JSON line"),
        (b"[1]\n", r"rows\.jsonl:1: expected a JSON object, found list"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match=said):
        read_jsonl(path)
    with pytest.raises(ArtefactError, match="no such file"):
        read_jsonl(tmp_path / "absent.jsonl")
